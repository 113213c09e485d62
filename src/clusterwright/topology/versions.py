"""Kubernetes versions of clusters: how they compare, build tags included."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Final

from clusterwright.kubeadm.versions import Version, parse_version

UNKNOWN: Final = 2
"""Two versions differ, and nobody can say which is newer: their build tags have no order."""

__all__ = ["UNKNOWN", "Version", "compare", "equal", "parse"]


def parse(text: str) -> Version:
    """A version as people write it; raises ValueError."""
    return parse_version(text)


def _release_key(version: Version) -> tuple[Any, ...]:
    parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in version.pre.split(".")) if version.pre else ()
    return (*version.release, 0 if version.pre else 1, parts)


def compare(a: Version, b: Version, *, builds: bool = True) -> int:
    """-1, 0 or 1; UNKNOWN where only build tags differ that have no order."""
    first, second = _release_key(a), _release_key(b)
    if first != second:
        return 1 if first > second else -1
    return _compare_builds(a.build, b.build) if builds else 0


def _compare_builds(a: str, b: str) -> int:
    for x, y in zip_longest(a.split(".") if a else [], b.split(".") if b else []):
        if x == y:
            continue
        if x is None or y is None:
            return -1 if x is None else 1
        if x.isdigit() and y.isdigit():
            return 1 if int(x) > int(y) else -1
        if x.isdigit() or y.isdigit():
            return -1 if x.isdigit() else 1
        return UNKNOWN
    return 0


def equal(a: Version, b: Version) -> bool:
    """Whether two versions are the same in every part."""
    return str(a) == str(b)
