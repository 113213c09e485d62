"""Values that CEL has and JSON has not, and the errors of evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from clusterwright.golang import times
from clusterwright.golang.quoting import quote

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1


class CelError(Exception):
    """Evaluation failed; the text is CEL's."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """The type of a value, as `type(x)` gives it."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """optional.of(value), or optional.none() when `present` is false."""

    value: Any = None
    present: bool = False


NONE: Final = Optional()

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_BAD_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A Kubernetes quantity."""

    amount: Decimal
    scale: int | None = field(default=0, compare=False)
    """By which power of ten Go counts it in 64 bits; None: it holds it as a decimal of any length, and takes it for no integer."""

    def added(self, other: Quantity) -> Quantity:
        """The sum."""
        scales = (self.scale, other.scale)
        scale = None if None in scales else other.scale if not self.amount else min(s for s in scales if s is not None)
        return Quantity(self.amount + other.amount, scale)


def parse_quantity(text: str) -> Quantity:
    """A quantity; raises CelError with the API machinery's text."""
    found = _QUANTITY.fullmatch(text)
    if found is None or not text.isascii():
        raise CelError(_BAD_QUANTITY)
    number, suffix = found.groups()
    try:
        amount = Decimal(number) if number.strip("+-.") or "." not in number else Decimal(0)
        if suffix in _SUFFIXES:
            return Quantity(amount * _SUFFIXES[suffix], _scale(number, suffix))
        if re.fullmatch(r"[eE][+-]?[0-9]+", suffix):
            return Quantity(amount * Decimal(10) ** int(suffix[1:]), _scale(number, suffix))
    except (InvalidOperation, OverflowError):
        raise CelError(_BAD_QUANTITY) from None
    raise CelError(_BAD_SUFFIX)


def _scale(number: str, suffix: str) -> int | None:
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = len(whole.lstrip("0") or "0")
    if suffix.endswith("i"):
        exponent = 10 * (1 + "KMGTPE".index(suffix[0]))
        return 0 if not fraction and 14 - digits - exponent * 3 // 10 >= 0 else None
    exponent = int(suffix[1:]) if suffix[:1] in ("e", "E") and len(suffix) > 1 else _SUFFIXES[suffix].adjusted()
    scale = exponent - len(fraction)
    return scale if digits + len(fraction) <= 18 and scale >= -9 else None


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version."""

    major: int
    minor: int
    patch: int
    pre: tuple[tuple[int, int, str], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """For comparison: a pre-release is before its release."""
        return (self.major, self.minor, self.patch, not self.pre, self.pre)


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """A semantic version; raises CelError."""
    if normalize:
        text = text.removeprefix("v")
        core, mark, rest = text, "", ""
        for m in ("-", "+"):
            if m in core:
                core, mark, tail = core.partition(m)
                rest = mark + tail + rest
        parts = [p.lstrip("0") or "0" for p in core.split(".")]
        text = ".".join(parts + ["0"] * (3 - len(parts))) + rest
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) < 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, minus, pre = rest.partition("-")
    major, minor, last = (_version_number(*p) for p in ((parts[0], "Major"), (parts[1], "Minor"), (patch, "Patch")))
    for identifier in pre.split(".") if minus else ():
        if identifier.isdigit() and len(identifier) > 1 and identifier[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quote(identifier)}")
        _check_identifier(identifier, "Prerelease", "prerelease")
    for identifier in build.split(".") if plus else ():
        _check_identifier(identifier, "Build meta data", "build meta data")
    identifiers = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")) if pre else ()
    return Semver(major, minor, last, identifiers)


def _version_number(text: str, noun: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if not text.isascii() or not text.isdigit():
        raise CelError(f"Invalid character(s) found in {noun.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{noun} number must not contain leading zeroes {quote(text)}")
    return int(text)


def _check_identifier(text: str, noun: str, of: str) -> None:
    if not text:
        raise CelError(f"{noun} is empty")
    if re.fullmatch(r"[0-9A-Za-z-]+", text, re.ASCII) is None:
        raise CelError(f"Invalid character(s) found in {of} {quote(text)}")


def parse_duration(text: str) -> timedelta:
    """Go's duration syntax (`1h30m`), to the microsecond; raises CelError."""
    found = times.parse_duration(text)
    if found is None:
        raise CelError(f'time: invalid duration "{text}"')
    return timedelta(microseconds=found / 1000)


def show_duration(value: timedelta) -> str:
    """A duration as CEL's string() shows it: seconds with an `s`."""
    micros = value // timedelta(microseconds=1)
    whole, rest = divmod(abs(micros), 10**6)
    sign = "-" if micros < 0 else ""
    return f"{sign}{whole}s" if not rest else f"{sign}{whole}.{rest:06d}".rstrip("0") + "s"


def parse_timestamp(text: str) -> datetime:
    """An RFC 3339 time; raises CelError."""
    found = times.parse_rfc3339(text)
    if found is not None:
        return found
    raise CelError(times.parse_problem(text))


def show_timestamp(value: datetime) -> str:
    """A timestamp as CEL's string() shows it."""
    text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return text + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "") + "Z"
