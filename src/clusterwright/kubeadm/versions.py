"""Kubernetes versions, read as tolerantly as kubeadm's users write them."""

from __future__ import annotations

import re
from typing import NamedTuple

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
