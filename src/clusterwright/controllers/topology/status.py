"""The topology's part of a Cluster's status: the versions of an upgrade. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ReplicaCounters
from clusterwright.api.core.shared import UpgradePlanVersion
from clusterwright.topology.model import Progress

_MOST: Final = 32
"""The largest number of steps that the API allows."""


def with_upgrade_plan(cluster: Cluster, progress: Progress) -> Cluster:
    """Return the Cluster with the upcoming versions of its control plane and workers.

    MachinePools are upgraded after MachineDeployments, so the plan of MachinePools is that of the workers.
    """
    status = cluster.status
    plane = _planned(status.control_plane, progress.control_plane.plan)
    workers = _planned(status.workers, progress.machine_pools.plan or progress.machine_deployments.plan)
    return replace(cluster, status=replace(status, control_plane=plane, workers=workers))


def _planned(counters: ReplicaCounters | None, plan: Sequence[str]) -> ReplicaCounters | None:
    if counters is None and not plan:
        return None
    return replace(counters or ReplicaCounters(), upgrade_plan=tuple(UpgradePlanVersion(version=v) for v in plan[:_MOST]))
