"""Kubernetes versions, parsed as tolerantly as kubeadm does."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from clusterwright.golang.numbers import parse_uint
from clusterwright.golang.quoting import quote

_IDENTIFIERS = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")


class Version(NamedTuple):
    """A semantic version. Tuples of its first three parts compare like kubeadm's releases: without pre-release and build."""

    major: int
    minor: int = 0
    patch: int = 0
    pre: str = ""
    build: str = ""

    @property
    def release(self) -> tuple[int, int, int]:
        """The tuple (major, minor, patch)."""
        return (self.major, self.minor, self.patch)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}{'-' + self.pre if self.pre else ''}{'+' + self.build if self.build else ''}"


def compare(one: Version, other: Version, *, build: bool = False) -> int | None:
    """Return -1, 0 or 1 by the precedence of semantic versions; with `build`, equal ones are ordered by their build.

    None: they differ without an order, because their builds are names, not numbers.
    """
    before = _precedence(one), _precedence(other)
    if before[0] != before[1]:
        return -1 if before[0] < before[1] else 1
    return _compare_builds(one.build, other.build) if build else 0


def _precedence(version: Version) -> tuple[Any, ...]:
    """Return a sort key: a release comes after its pre-releases; numbers before words."""
    words = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version.pre.split(".")] if version.pre else []
    return (version.release, not words, words)


def _compare_builds(one: str, other: str) -> int | None:
    parts, others = one.split(".") if one else [], other.split(".") if other else []
    for part, that in zip(parts, others, strict=False):
        if part == that:
            continue
        if part.isdigit() and that.isdigit():
            size, other_size = _size(part), _size(that)
            if size != other_size:
                return -1 if size < other_size else 1
        elif part.isdigit() or that.isdigit():
            return -1 if part.isdigit() else 1
        else:
            return None
    return (len(parts) > len(others)) - (len(parts) < len(others))


def _size(digits: str) -> tuple[int, str]:
    """Return a sort key of numbers of any length."""
    digits = digits.lstrip("0")
    return len(digits), digits


def parse_version(text: str) -> Version:
    """Return the version in a text; a leading `v`, spaces around, leading zeros and missing minor or patch are tolerated.

    Raises ValueError.
    """
    parts = [_without_zeros(part) for part in text.strip().removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("Short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    patch, suffix = _split(parts[2])
    major, minor, patch_number = (_number(*part) for part in ((parts[0], "major"), (parts[1], "minor"), (patch, "patch")))
    return Version(major, minor, patch_number, *_suffixes(suffix))


def _split(text: str) -> tuple[str, str]:
    """Return the text before the first `-` or `+`, and the rest."""
    end = next((position for position, char in enumerate(text) if char in "-+"), len(text))
    return text[:end], text[end:]


def _without_zeros(part: str) -> str:
    """Return the text without leading zeros, as other parsers do; one zero is kept if no digit would be left in front."""
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1].isascii() and rest[:1].isdigit() else f"0{rest}"


def _number(part: str, of: str) -> int:
    if not part:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if not part.isascii() or not part.isdigit():
        raise ValueError(f"Invalid character(s) found in {of} number {quote(part)}")
    return parse_uint(part)


def _suffixes(suffix: str) -> tuple[str, str]:
    if not suffix:
        return "", ""
    pre, plus, build = suffix.partition("+")
    pre = pre.removeprefix("-")
    if suffix[0] == "-":
        if _IDENTIFIERS.fullmatch(pre) is None:
            raise ValueError(f"Invalid pre-release version {pre!r}")
        for identifier in pre.split("."):
            if identifier.isdigit() and len(identifier) > 1 and identifier[0] == "0":
                raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{identifier}"')
            if identifier.isdigit():
                parse_uint(identifier)
    if plus and _IDENTIFIERS.fullmatch(build) is None:
        raise ValueError(f"Invalid build meta data {build!r}")
    return pre, build
