"""Wire the MachineHealthCheck controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.core import Cluster, Machine, MachineHealthCheck
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import selects
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.kit.watching import SETTLE, of_cluster
from clusterwright.controllers.machinehealthcheck.evaluation import ClusterFacts, MachineFacts
from clusterwright.controllers.machinehealthcheck.reconciler import make
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


async def checks_of_machine(machine: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Return every check that selects a Machine of its Cluster."""
    cluster = machine.metadata.labels.get(CLUSTER_NAME_LABEL)
    if not cluster:
        return ()
    checks = await reader.list(MachineHealthCheck, namespace=machine.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster})
    return [c.key for c in checks if selects(c.spec.selector, machine.metadata.labels)]


CONTROLLER = ControllerDefinition(
    name="machinehealthcheck",
    kind=MachineHealthCheck,
    watches=(
        Watch(Cluster, of_cluster(MachineHealthCheck), changed(ClusterFacts.of)),
        Watch(Machine, checks_of_machine, changed(MachineFacts.of), SETTLE),
    ),
    make=make,
    access=(
        *providers("create delete", "infrastructure"),  # remediation by somebody else's kinds
        Access("machines.cluster.x-k8s.io", "patch"),
        Access("machines.cluster.x-k8s.io/status", "patch"),
    ),
    workload_wake=WorkloadWake(map=of_cluster(MachineHealthCheck)),
)
