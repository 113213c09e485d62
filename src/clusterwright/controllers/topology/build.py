"""Wire the topology controller: its watches, and the Clusters that each change reconciles."""

from __future__ import annotations

from typing import Any

from clusterwright.api.core import Cluster, ClusterClass, MachineDeployment, MachinePool
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.kit import watching
from clusterwright.controllers.topology.mapping import clusters_of_class
from clusterwright.controllers.topology.reconciler import make
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.mapping import itself
from clusterwright.runtime.reconcile import Watch


def belongs_to_topology(old: Any, new: Any) -> bool:
    """Return whether the object belongs to a topology."""
    return any(o is not None and TOPOLOGY_OWNED_LABEL in o.metadata.labels for o in (old, new))


CONTROLLER = ControllerDefinition(
    name="topology/cluster",
    kind=Cluster,
    watches=(
        Watch(ClusterClass, clusters_of_class, why="the whole class is read, as JSON"),
        Watch(MachineDeployment, watching.cluster, belongs_to_topology, why="the whole object is read, as JSON"),
        Watch(MachinePool, watching.cluster, belongs_to_topology, why="the whole object is read, as JSON"),
    ),
    make=make,
    access=(
        *providers("create patch delete", "infrastructure", "bootstrap", "controlplane"),
        *(
            Access(f"{plural}.cluster.x-k8s.io", "get list watch create patch delete")
            for plural in ("machinedeployments", "machinepools", "machinehealthchecks")
        ),
        Access("machines.cluster.x-k8s.io", "list"),
        Access("secrets", "create delete"),  # the shim that owns what no Cluster refers to yet
    ),
    workload_wake=WorkloadWake(map=itself),
    gate="ClusterTopology",
)
