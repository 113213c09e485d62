"""Owned fields after any write."""

from __future__ import annotations

from clusterwright.apiserver.managedfields.applying import apply
from clusterwright.apiserver.managedfields.updating import update

__all__ = ["apply", "update"]
