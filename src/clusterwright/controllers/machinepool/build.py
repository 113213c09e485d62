"""The wiring of the MachinePool controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.core import Cluster, MachinePool
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.watching import changed
from clusterwright.controllers.machinepool.reconciler import make
from clusterwright.controllers.wiring import ControllerDefinition, WorkloadWake
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch


async def pools_of_cluster(cluster: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Every pool of a Cluster."""
    pools = await reader.list(MachinePool, namespace=cluster.metadata.namespace)
    return [p.key for p in pools if p.spec.cluster_name == cluster.metadata.name]


def _of_cluster(cluster: Cluster) -> Any:
    """What a pool goes by: pause, and whether there can be Nodes."""
    return bool(cluster.spec.paused), is_true(cluster.status.conditions, "ControlPlaneInitialized")


CONTROLLER = ControllerDefinition(
    name="machinepool",
    kind=MachinePool,
    watches=(Watch(Cluster, pools_of_cluster, changed(_of_cluster)),),
    make=make,
    workload_wake=WorkloadWake(map=pools_of_cluster),
    gate="MachinePool",
)
