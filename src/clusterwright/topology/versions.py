"""Kubernetes versions of clusters: how they compare, build tags included."""

from __future__ import annotations

from typing import Final

from clusterwright.kubeadm import versions
from clusterwright.kubeadm.versions import Version, parse_version

UNKNOWN: Final = 2
"""Two versions differ, and nobody can say which is newer: their build tags have no order."""

__all__ = ["UNKNOWN", "Version", "compare", "equal", "parse"]


def parse(text: str) -> Version:
    """Return a version as people write it; raises ValueError."""
    return parse_version(text)


def compare(a: Version, b: Version) -> int:
    """-1, 0 or 1; UNKNOWN where only build tags differ that have no order."""
    order = versions.compare(a, b, build=True)
    return UNKNOWN if order is None else order


def equal(a: Version, b: Version) -> bool:
    """Return whether two versions are the same in every part."""
    return str(a) == str(b)
