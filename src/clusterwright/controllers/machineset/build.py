"""Wire the MachineSet controller: its watches, and the objects that each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import selects
from clusterwright.api.wellknown import MACHINE_DEPLOYMENT_NAME_LABEL
from clusterwright.controllers.kit.watching import SETTLE, controller_or_selecting, of_cluster
from clusterwright.controllers.machineset.reconciler import make
from clusterwright.controllers.machineset.snapshot import ClusterFacts, DeploymentFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import changed, gone
from clusterwright.runtime.reconcile import Watch

machine_sets_of = controller_or_selecting(MachineSet, lambda machine_set, labels: selects(machine_set.spec.selector, labels))
"""Map a Machine to the MachineSet that controls it; an orphan to those whose selector it matches."""


async def siblings_of(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """Return the MachineSets of the MachineDeployment of a deleted Machine: there may be room for another now."""
    name = machine.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL, "")
    if not name:
        return ()
    labels = {MACHINE_DEPLOYMENT_NAME_LABEL: name}
    found = await reader.list(MachineSet, namespace=machine.metadata.namespace, labels=labels)
    return tuple(s.key for s in found if (s.status.replicas or 0) < (s.spec.replicas or 0))


async def machine_sets_of_deployment(deployment: MachineDeployment, reader: Reader) -> Sequence[ObjectKey]:
    """Return the MachineSets of a MachineDeployment."""
    labels = {MACHINE_DEPLOYMENT_NAME_LABEL: deployment.metadata.name}
    return tuple(s.key for s in await reader.list(MachineSet, namespace=deployment.metadata.namespace, labels=labels))


CONTROLLER = ControllerDefinition(
    name="machineset",
    kind=MachineSet,
    watches=(
        Watch(Machine, machine_sets_of, settle=SETTLE),
        Watch(Machine, siblings_of, gone, why="there may be room for another Machine now"),
        Watch(MachineDeployment, machine_sets_of_deployment, changed(DeploymentFacts.of)),
        Watch(Cluster, of_cluster(MachineSet), changed(ClusterFacts.of)),
    ),
    make=make,
    access=(
        *providers("create patch delete", "infrastructure", "bootstrap"),
        *providers("", "controlplane"),
        Access("machines.cluster.x-k8s.io", "create patch delete"),
        Access("machines.cluster.x-k8s.io/status", "patch"),
    ),
    workload_wake=WorkloadWake(map=of_cluster(MachineSet)),
    concurrency=10,
)
