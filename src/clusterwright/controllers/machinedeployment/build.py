"""Wire the MachineDeployment controller: its watches, and the objects that each change reconciles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import is_empty, selects
from clusterwright.controllers.kit.owners import ClusterFacts
from clusterwright.controllers.kit.watching import SETTLE, controller_or_selecting, of_cluster, same_cluster
from clusterwright.controllers.machinedeployment.reconciler import make
from clusterwright.controllers.machinedeployment.snapshot import MachineFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


def _selects(deployment: MachineDeployment, labels: Mapping[str, str]) -> bool:
    return not is_empty(deployment.spec.selector) and selects(deployment.spec.selector, labels)


deployments_of = controller_or_selecting(MachineDeployment, _selects)
"""Map a MachineSet to the MachineDeployment that controls it; an orphan to those whose selector it matches."""


async def deployments_of_machine(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """Return the MachineDeployments whose selector matches the Machine: their conditions report it."""
    labels = machine.metadata.labels
    found = await reader.list(MachineDeployment, namespace=machine.metadata.namespace, labels=same_cluster(labels)) if labels else ()
    return tuple(d.key for d in found if _selects(d, labels))


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
