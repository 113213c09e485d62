"""How the MachineDeployment controller is wired: what it watches, and whom each change wakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import InvalidSelector, is_empty, parsed
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.watching import SETTLE, of_cluster, same_cluster
from clusterwright.controllers.machinedeployment.reconciler import make
from clusterwright.controllers.machinedeployment.snapshot import MachineFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch

_GROUP = "cluster.x-k8s.io/"


async def deployments_of(machine_set: MachineSet, reader: Reader) -> Sequence[ObjectKey]:
    """Return the MachineDeployment that controls the MachineSet; of an orphan, those whose selector it matches."""
    metadata = machine_set.metadata
    controller = metadata.controller
    if controller is not None:
        is_ours = controller.kind == "MachineDeployment" and controller.api_version.startswith(_GROUP)
        return (ObjectKey(metadata.namespace, controller.name),) if is_ours else ()
    return await _selecting(metadata.namespace, metadata.labels, reader)


async def deployments_of_machine(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """Return the MachineDeployments whose selector matches the Machine: their conditions tell of it."""
    return await _selecting(machine.metadata.namespace, machine.metadata.labels, reader)


async def _selecting(namespace: str, labels: Mapping[str, str], reader: Reader) -> Sequence[ObjectKey]:
    if not labels:
        return ()
    found = await reader.list(MachineDeployment, namespace=namespace, labels=same_cluster(labels))
    return tuple(d.key for d in found if _selects(d, labels))


def _selects(deployment: MachineDeployment, labels: Mapping[str, str]) -> bool:
    try:
        return not is_empty(deployment.spec.selector) and parsed(deployment.spec.selector).matches(labels)
    except InvalidSelector:
        return False


CONTROLLER = ControllerDefinition(
    name="machinedeployment",
    kind=MachineDeployment,
    watches=(
        Watch(MachineSet, deployments_of, settle=SETTLE),
        Watch(Machine, deployments_of_machine, changed(MachineFacts.of), SETTLE),
        Watch(Cluster, of_cluster(MachineDeployment), changed(ClusterFacts.of)),
    ),
    make=make,
    access=(*providers("patch", "infrastructure", "bootstrap"), Access("machinesets.cluster.x-k8s.io", "create patch delete")),
    concurrency=10,
)
