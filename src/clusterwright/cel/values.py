"""Values of CEL that JSON lacks, and the errors of evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.golang.numbers import parse_uint
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
    """The type of a value: the result of `type(x)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """optional.of(value), or optional.none() when `present` is false."""

    value: Any = None
    present: bool = False


NONE: Final = Optional()


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version."""

    major: int
    minor: int
    patch: int
    pre: tuple[tuple[int, int, str], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a sort key: a pre-release comes before its release."""
        return (self.major, self.minor, self.patch, not self.pre, self.pre)


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Return a semantic version; raises CelError."""
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
