"""Kubernetes versions, read as tolerantly as kubeadm's users write them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_IDENTIFIERS = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")


class Version(NamedTuple):
    """A semantic version. Tuples of the first three parts compare as kubeadm compares releases: without pre-release and build."""

    major: int
    minor: int = 0
    patch: int = 0
    pre: str = ""
    build: str = ""

    @property
    def release(self) -> tuple[int, int, int]:
        """major, minor, patch."""
        return (self.major, self.minor, self.patch)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}{'-' + self.pre if self.pre else ''}{'+' + self.build if self.build else ''}"


def compare(one: Version, other: Version, *, build: bool = False) -> int | None:
    """-1, 0 or 1 by the precedence of semantic versions; with `build` equal ones also by what they were built from.

    None: they differ, but neither comes first, because their builds are named and not numbered.
    """
    before = _precedence(one), _precedence(other)
    if before[0] != before[1]:
        return -1 if before[0] < before[1] else 1
    return _compare_builds(one.build, other.build) if build else 0


def _precedence(version: Version) -> tuple[Any, ...]:
    """A release comes after all that were before it; numbers before words."""
    words = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version.pre.split(".")] if version.pre else []
    return (version.release, not words, words)


def _compare_builds(one: str, other: str) -> int | None:
    parts, others = one.split(".") if one else [], other.split(".") if other else []
    for part, that in zip(parts, others, strict=False):
        if part == that:
            continue
        if part.isdigit() and that.isdigit():
            if int(part) != int(that):
                return -1 if int(part) < int(that) else 1
        elif part.isdigit() or that.isdigit():
            return -1 if part.isdigit() else 1
        else:
            return None
    return (len(parts) > len(others)) - (len(parts) < len(others))


def parse_version(text: str) -> Version:
    """The version that a text means; a leading `v`, spaces around, leading zeros and missing minor or patch are tolerated.

    Raises ValueError.
    """
    rest = text.strip().removeprefix("v")
    core, _, suffix = _split(rest)
    parts = core.split(".")
    if len(parts) > 3:
        raise ValueError(f'Invalid character(s) found in patch number "{".".join(parts[2:])}"')
    if suffix and len(parts) < 3:
        raise ValueError("Short version cannot contain PreRelease/Build meta data")
    numbers = [_number(part, of) for part, of in zip(parts, ("major", "minor", "patch"), strict=False)]
    pre, build = _suffixes(suffix)
    major, minor, patch = (*numbers, 0, 0)[:3]
    return Version(major, minor, patch, pre, build)


def _split(text: str) -> tuple[str, str, str]:
    """Numbers, and from the first `-` or `+` on the rest."""
    for position, char in enumerate(text):
        if char in "-+":
            return text[:position], char, text[position:]
    return text, "", ""


def _number(part: str, of: str) -> int:
    if not part.isascii() or not part.isdigit():
        shown = (
            part if len(part) < 2 else part.lstrip("0")
        )  # as others report it: leading zeros are dropped before the digits are looked at
        shown = shown if shown[:1].isdigit() or len(part) < 2 else f"0{shown}"
        raise ValueError(f'Invalid character(s) found in {of} number "{shown}"')
    return int(part)


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
    if plus and _IDENTIFIERS.fullmatch(build) is None:
        raise ValueError(f"Invalid build meta data {build!r}")
    return pre, build
