"""Wire the MachinePool controller."""

from __future__ import annotations

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.controllers.kit.watching import SETTLE, of_cluster
from clusterwright.controllers.machinepool.node_watches import pools_by_label
from clusterwright.controllers.machinepool.reconciler import make
from clusterwright.controllers.machinepool.snapshot import ClusterFacts, MachineFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch

CONTROLLER = ControllerDefinition(
    name="machinepool",
    kind=MachinePool,
    watches=(
        Watch(Cluster, of_cluster(MachinePool), changed(ClusterFacts.of)),
        Watch(Machine, pools_by_label, changed(MachineFacts.of), SETTLE),
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
