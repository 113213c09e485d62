"""Semantic versions and constraints on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.gotemplate.sprig.signatures import Library
from clusterwright.gotemplate.values import Opaque

LIBRARY: Final = Library()
_IDENTIFIERS: Final = r"[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*"
_VERSION: Final = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?")
_PART: Final = r"[0-9xX*|]+"
_PATTERN: Final = rf"v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(-{_IDENTIFIERS})?(?:\+{_IDENTIFIERS})?"
_OPERATORS: Final = r"=>|=<|>=|<=|!=|~>|=|>|<|~|\^|"
_CONSTRAINT: Final = re.compile(rf"({_OPERATORS})\s*({_PATTERN})")
_PLAIN: Final = _PATTERN.replace("(v", "v").replace("(-", "(?:-").replace(f"({_PART})", f"(?:{_PART})")
_VALID: Final = re.compile(rf"\s*(?:{_OPERATORS})\s*{_PLAIN}\s*(?:(?:\s+|,\s*)(?:{_OPERATORS})\s*{_PLAIN}\s*)*")
_RANGE: Final = re.compile(rf"\s*({_PLAIN})\s+-\s+({_PLAIN})\s*")
_ANY: Final = ("x", "X", "*")
_LONGEST: Final = 256
"""The longest constraint, in characters: these patterns backtrack."""


def _prerelease_key(pre: str) -> tuple[Any, ...]:
    """Return a sort key of pre-releases: numbers before words, and any of them before none."""
    if not pre:
        return (1,)
    return (0, tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")))


@dataclass(frozen=True, slots=True)
class Version(Opaque):
    """A semantic version, with the members for templates."""

    major: int
    minor: int
    patch: int
    pre: str
    metadata: str
    original: str

    go_type = "*semver.Version"
    go_kind = "ptr"

    def __str__(self) -> str:
        pre, build = f"-{self.pre}" if self.pre else "", f"+{self.metadata}" if self.metadata else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{build}"

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a sort key of versions; metadata do not count."""
        return (self.major, self.minor, self.patch, _prerelease_key(self.pre))

    def member(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the result of a method of the version."""
        plain = {
            "Major": self.major,
            "Minor": self.minor,
            "Patch": self.patch,
            "Prerelease": self.pre,
            "Metadata": self.metadata,
            "Original": self.original,
            "String": str(self),
        }
        if name in plain and not arguments:
            return plain[name]
        if name in _COMPARISONS and len(arguments) == 1 and isinstance(arguments[0], Version):
            return _COMPARISONS[name](self.key, arguments[0].key)
        return Opaque.member(self, name, arguments)


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Compare": lambda a, b: (a > b) - (a < b),
    "Equal": lambda a, b: a == b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanEqual": lambda a, b: a >= b,
    "LessThan": lambda a, b: a < b,
    "LessThanEqual": lambda a, b: a <= b,
}


def version(text: str) -> Version:
    """Return the version in a text; a leading `v`, and a missing minor or patch, are tolerated. Raises ValueError."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError("invalid semantic version")
    major, minor, patch, pre, metadata = match.groups()
    if any(p.isdigit() and len(p) > 1 and p[0] == "0" for p in (pre or "").split(".")):
        raise ValueError("version segment starts with 0")
    return Version(int(major), int(minor or 0), int(patch or 0), pre or "", metadata or "", text)


@dataclass(frozen=True, slots=True)
class _Constraint:
    operator: str
    version: Version
    any_major: bool
    any_minor: bool
    any_patch: bool

    @property
    def is_open(self) -> bool:
        """Whether a part of the version is open."""
        return self.any_major or self.any_minor or self.any_patch


def _constraint(text: str) -> _Constraint:
    match = _CONSTRAINT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"improper constraint: {text}")
    operator, whole, major, minor, patch, pre = match.groups()
    any_major = major in _ANY
    any_minor = not any_major and (minor is None or minor in _ANY)
    any_patch = not any_major and not any_minor and (patch is None or patch in _ANY)
    if any_major:
        whole = f"0.0.0{pre or ''}"
    elif any_minor:
        whole = f"{major}.0.0{pre or ''}"
    elif any_patch:
        whole = f"{major}.{minor}.0{pre or ''}"
    return _Constraint(operator, version(whole), any_major, any_minor, any_patch)


def _not_equal(v: Version, c: _Constraint) -> bool:
    if not c.is_open:
        return v.key != c.version.key
    if v.major != c.version.major:
        return True
    if c.any_minor:
        return False
    if v.minor != c.version.minor:
        return True
    if c.any_patch:
        return bool(v.pre or c.version.pre) and v.pre != c.version.pre
    return v.key != c.version.key


def _greater(v: Version, c: _Constraint) -> bool:
    if not c.is_open:
        return v.key > c.version.key
    if v.major != c.version.major:
        return v.major > c.version.major
    if c.any_minor:
        return False
    return v.minor > c.version.minor if c.any_patch else bool(v.key > c.version.key)


def _at_most(v: Version, c: _Constraint) -> bool:
    if not c.is_open:
        return v.key <= c.version.key
    return not (v.major > c.version.major or (v.major == c.version.major and v.minor > c.version.minor and not c.any_minor))


def _tilde(v: Version, c: _Constraint) -> bool:
    w = c.version
    if v.key < w.key:
        return False
    if (w.major, w.minor, w.patch) == (0, 0, 0) and not c.any_minor and not c.any_patch:
        return True
    return v.major == w.major and (v.minor == w.minor or c.any_minor)


def _caret(v: Version, c: _Constraint) -> bool:
    w = c.version
    if v.key < w.key:
        return False
    if w.major > 0 or c.any_minor or v.major > 0:
        return v.major == w.major
    if w.minor > 0 or c.any_patch or v.minor > 0:
        return v.minor == w.minor
    return v.patch == w.patch


def _equal(v: Version, c: _Constraint) -> bool:
    return _tilde(v, c) if c.is_open else v.key == c.version.key


_CHECKS: Final[Mapping[str, Callable[[Version, _Constraint], bool]]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda v, c: v.key < c.version.key,
    ">=": lambda v, c: v.key >= c.version.key,
    "=>": lambda v, c: v.key >= c.version.key,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def satisfies(constraint: str, text: str) -> bool:
    """Return whether a version meets a constraint. A pre-release does only if the constraint has one. Raises ValueError."""
    if len(constraint) > _LONGEST:
        raise ValueError("improper constraint: it is too long")
    alternatives = []
    for alternative in _RANGE.sub(lambda m: f">= {m[1]}, <= {m[2]} ", constraint).split("||"):
        if _VALID.fullmatch(alternative) is None:
            raise ValueError(f"improper constraint: {alternative}")
        alternatives.append([_constraint(m[0]) for m in _CONSTRAINT.finditer(alternative)])
    found = version(text)
    return any(
        all(_CHECKS[c.operator](found, c) for c in parts) and (not found.pre or any(c.version.pre for c in parts)) for parts in alternatives
    )


LIBRARY.define("semver", "string", version, steps=4, weight=4)
LIBRARY.define("semverCompare", "string string", satisfies, steps=50, weight=4)
