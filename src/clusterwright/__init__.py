"""Cluster API in Python: controllers, an embedded API server, and decisions that can be read, tested and explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["decide"]
__version__ = "0.1.0"


def decide(objects: Sequence[Mapping[str, Any]], subject: str, controller: str = "") -> Mapping[str, Any]:
    """One reconcile pass of the subject's controller, or of the one named, offline. See `clusterwright.offline.decide`."""
    from clusterwright.offline.decide import decide as run

    return run(objects, subject, controller)
