"""The sample clusters of `clusterwright.simulation.samples`, for commands."""

from __future__ import annotations

from clusterwright.simulation.samples import (
    VERSION,
    cluster,
    cluster_class,
    control_plane,
    machine,
    machine_health_check,
    machine_pool,
    topology,
    workers,
)

__all__ = [
    "VERSION",
    "cluster",
    "cluster_class",
    "control_plane",
    "machine",
    "machine_health_check",
    "machine_pool",
    "topology",
    "workers",
]
