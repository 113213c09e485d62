"""Wire the Machine controller."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL
from clusterwright.controllers.kit.watching import owned
from clusterwright.controllers.machine.reconciler import make
from clusterwright.controllers.machine.snapshot import GRACE_PERIOD, ClusterFacts, OwnerFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


async def machines_of_cluster(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """Return every Machine of a Cluster."""
    machines = await reader.list(Machine, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name})
    return [m.key for m in machines if m.spec.cluster_name == cluster.metadata.name]


async def machines_of_deployment(deployment: MachineDeployment, reader: Reader) -> Sequence[ObjectKey]:
    """Return every Machine with the label of a MachineDeployment."""
    labels = {MACHINE_DEPLOYMENT_NAME_LABEL: deployment.metadata.name}
    return [m.key for m in await reader.list(Machine, namespace=deployment.metadata.namespace, labels=labels)]


CONTROLLER = ControllerDefinition(
    name="machine",
    kind=Machine,
    watches=(
        Watch(Cluster, machines_of_cluster, changed(ClusterFacts.of)),
        Watch(MachineSet, owned(Machine), changed(OwnerFacts.of)),
        Watch(MachineDeployment, machines_of_deployment, changed(OwnerFacts.of)),
    ),
    make=make,
    access=(
        *providers("patch delete", "infrastructure", "bootstrap"),
        *providers("", "controlplane"),
        Access("machinedrainrules.cluster.x-k8s.io", "list"),
    ),
    workload_wake=WorkloadWake(map=machines_of_cluster, failing_for=GRACE_PERIOD),
)
