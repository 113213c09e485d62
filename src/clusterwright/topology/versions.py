"""Kubernetes versions of clusters: their order, with build tags."""

from __future__ import annotations

from typing import Final

from clusterwright.kubeadm import versions
from clusterwright.kubeadm.versions import Version, parse_version

UNKNOWN: Final = 2
"""The result for two different versions without an order: their build tags cannot be compared."""

__all__ = ["UNKNOWN", "Version", "compare", "equal", "parse"]


def parse(text: str) -> Version:
    """Return a version from its usual text; raises ValueError."""
    return parse_version(text)


def compare(a: Version, b: Version) -> int:
    """Return -1, 0 or 1; UNKNOWN if only build tags differ that have no order."""
    order = versions.compare(a, b, build=True)
    return UNKNOWN if order is None else order


def equal(a: Version, b: Version) -> bool:
    """Return whether two versions are the same in every part."""
    return str(a) == str(b)
