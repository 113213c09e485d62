"""The wiring of the MachinePool controller."""

from __future__ import annotations

from typing import Any

from clusterwright.api.core import Cluster, MachinePool
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.watching import changed, of_cluster
from clusterwright.controllers.machinepool.reconciler import make
from clusterwright.controllers.wiring import ControllerDefinition, WorkloadWake
from clusterwright.runtime.reconcile import Watch


def _of_cluster(cluster: Cluster) -> Any:
    """What a pool goes by: pause, and whether there can be Nodes."""
    return bool(cluster.spec.paused), is_true(cluster.status.conditions, "ControlPlaneInitialized")


CONTROLLER = ControllerDefinition(
    name="machinepool",
    kind=MachinePool,
    watches=(Watch(Cluster, of_cluster(MachinePool), changed(_of_cluster)),),
    make=make,
    workload_wake=WorkloadWake(map=of_cluster(MachinePool)),
    gate="MachinePool",
)
