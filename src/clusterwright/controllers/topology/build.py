"""How the topology controller is wired: what it watches, and whom each change wakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.core import Cluster, ClusterClass, MachineDeployment, MachinePool
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.kit import watching
from clusterwright.controllers.kit.watching import itself
from clusterwright.controllers.topology.reconciler import make
from clusterwright.controllers.wiring import ControllerDefinition, WorkloadWake
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch


async def clusters_of_class(cluster_class: ClusterClass, reader: Reader) -> Sequence[ObjectKey]:
    """The Clusters whose topology names the class."""
    found = []
    for cluster in await reader.list(Cluster):
        topology = cluster.spec.topology
        if topology and (topology.class_ref.namespace or cluster.metadata.namespace, topology.class_ref.name) == cluster_class.key:
            found.append(cluster.key)
    return found


def belongs_to_topology(old: Any, new: Any) -> bool:
    """Whether the object belongs to a topology."""
    return any(o is not None and TOPOLOGY_OWNED_LABEL in o.metadata.labels for o in (old, new))


CONTROLLER = ControllerDefinition(
    name="topology/cluster",
    kind=Cluster,
    watches=(
        Watch(ClusterClass, clusters_of_class),
        Watch(MachineDeployment, watching.cluster, belongs_to_topology),
        Watch(MachinePool, watching.cluster, belongs_to_topology),
    ),
    make=make,
    workload_wake=WorkloadWake(map=itself),
    gate="ClusterTopology",
)
