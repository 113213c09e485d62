"""The wiring of the MachinePool controller."""

from __future__ import annotations

from typing import Any

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.conditions import get, is_true
from clusterwright.controllers.kit.watching import SETTLE, changed, of_cluster
from clusterwright.controllers.machinepool.reconciler import make
from clusterwright.controllers.machinepool.wakes import pools_by_label
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.reconcile import Watch


def _of_cluster(cluster: Cluster) -> Any:
    """What a pool goes by: pause, and whether there can be Nodes."""
    return bool(cluster.spec.paused), is_true(cluster.status.conditions, "ControlPlaneInitialized")


def machine_facts(machine: Machine) -> object:
    """What a pool counts of its Machines, and what it keeps of them."""
    told = (get(machine.status.conditions, type) for type in ("Ready", "Available", "UpToDate"))
    metadata = machine.metadata
    return (
        [c.status if c is not None else "" for c in told],
        (metadata.deletion_timestamp, metadata.labels, metadata.annotations, metadata.owner_references),
        machine.spec,
    )


CONTROLLER = ControllerDefinition(
    name="machinepool",
    kind=MachinePool,
    watches=(
        Watch(Cluster, of_cluster(MachinePool), changed(_of_cluster)),
        Watch(Machine, pools_by_label, changed(machine_facts), SETTLE),
    ),
    make=make,
    access=(
        *providers("patch delete", "infrastructure", "bootstrap"),
        Access("machines.cluster.x-k8s.io", "get list watch create patch delete"),
        Access("machines.cluster.x-k8s.io/status", "patch"),
    ),
    workload_wake=WorkloadWake(map=of_cluster(MachinePool)),
    gate="MachinePool",
)
