"""Wire the collection of templates of deleted MachineSets."""

from __future__ import annotations

from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.wellknown import MACHINE_SET_TOPOLOGY_FINALIZER, TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.kit import watching
from clusterwright.controllers.kit.owners import ClusterFacts, owner_key
from clusterwright.controllers.templates.collecting import by_deployment, by_topology, collector, delete_unused, in_use
from clusterwright.controllers.wiring import Access, ControllerDefinition, Dependencies, providers
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


async def clean_up(deps: Dependencies, machine_set: MachineSet) -> None:
    """Delete the templates that neither the MachineDeployment nor its other MachineSets use; without an owner, nor the whole topology."""
    owner = owner_key(machine_set, "MachineDeployment")
    namespace = machine_set.metadata.namespace
    if owner is None:
        used = await in_use(deps, namespace, None, by_topology(machine_set.spec.cluster_name))
    else:
        deployment = await deps.client.find(MachineDeployment, owner)
        used = await in_use(deps, namespace, deployment, by_deployment(owner.name))
    await delete_unused(deps, machine_set, used)


CONTROLLER = ControllerDefinition(
    name="topology/machineset",
    kind=MachineSet,
    watches=(Watch(Cluster, watching.of_cluster(MachineSet, having=TOPOLOGY_OWNED_LABEL), changed(ClusterFacts.of)),),
    make=lambda deps: collector(deps, MachineSet, MACHINE_SET_TOPOLOGY_FINALIZER, clean_up),
    access=(*providers("delete", "infrastructure", "bootstrap"), Access("machinedeployments.cluster.x-k8s.io", "get")),
    gate="ClusterTopology",
)
