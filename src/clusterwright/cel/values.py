"""Values that CEL has and JSON has not, and the errors of evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context, Decimal
from typing import Any, Final

from clusterwright.golang.numbers import parse_int, parse_uint
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

_QUANTITY: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_LONGEST: Final = 1000
"""Digits of a quantity, and the largest power of ten that it may name: kube-apiserver loses itself in numbers of more."""
EXACT: Final = Context(prec=4 * _LONGEST, rounding=ROUND_UP)
"""Decimals as Go's inf.Dec holds them: nothing is rounded that is not told to be."""
_NANO: Final = Decimal("1e-9")
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
        return Quantity(EXACT.add(self.amount, other.amount), scale)


def parse_quantity(text: str) -> Quantity:
    """A quantity; raises CelError with the API machinery's text."""
    found = _QUANTITY.fullmatch(text)
    if found is None or not text or len(text) > 2 * _LONGEST:
        raise CelError(_BAD_QUANTITY)
    sign, whole, fraction, suffix = found.groups("")
    whole = whole.lstrip("0") or "0"
    unit = _SUFFIXES.get(suffix)
    power = 0 if unit is not None else _power(suffix)
    # too little to be counted is the least that can be; what that is called does not change it
    power = max(power, -_LONGEST - len(whole))
    if power > _LONGEST or len(whole) + len(fraction) > _LONGEST:
        raise CelError(_BAD_QUANTITY)
    amount = EXACT.multiply(Decimal(f"{whole}.{fraction}e{power}"), unit or _SUFFIXES[""])
    amount = EXACT.quantize(amount, _NANO)  # a part of one counts as a whole one
    if suffix.endswith("i"):
        amount = min(amount, Decimal(INT_MAX))
    return Quantity(-amount if sign == "-" else amount, _scale(whole, fraction, suffix, power))


def _power(suffix: str) -> int:
    try:
        if suffix[0] in "eE":
            return parse_int(suffix[1:], 64)
    except ValueError:
        pass
    raise CelError(_BAD_SUFFIX)


def _scale(whole: str, fraction: str, suffix: str, power: int) -> int | None:
    if suffix.endswith("i"):
        exponent = 10 * (1 + "KMGTPE".index(suffix[0]))
        return 0 if not fraction and 14 - len(whole) - exponent * 3 // 10 >= 0 else None
    scale = (power or _SUFFIXES.get(suffix, _SUFFIXES[""]).adjusted()) - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


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
        parts = [re.sub("^0+(?=[0-9])", "", p) for p in core.split(".")]
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
    identifiers = tuple((0, _uint(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")) if pre else ()
    return Semver(major, minor, last, identifiers)


def _version_number(text: str, noun: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if not text.isascii() or not text.isdigit():
        raise CelError(f"Invalid character(s) found in {noun.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{noun} number must not contain leading zeroes {quote(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    try:
        return parse_uint(text)
    except ValueError as e:
        raise CelError(str(e)) from None


def _check_identifier(text: str, noun: str, of: str) -> None:
    if not text:
        raise CelError(f"{noun} is empty")
    if re.fullmatch(r"[0-9A-Za-z-]+", text, re.ASCII) is None:
        raise CelError(f"Invalid character(s) found in {of} {quote(text)}")
