"""The wiring of the Machine controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL
from clusterwright.conditions import is_true
from clusterwright.controllers.machine.reconciler import MachineReconciler
from clusterwright.controllers.machine.snapshot import GRACE_PERIOD
from clusterwright.controllers.wiring import ControllerDefinition, WorkloadWake
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch


async def machines_of_cluster(cluster: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Every Machine of a Cluster."""
    machines = await reader.list(Machine, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name})
    return [m.key for m in machines if m.spec.cluster_name == cluster.metadata.name]


async def machines_of_machine_set(machine_set: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Every Machine that a MachineSet owns."""
    machines = await reader.list(Machine, namespace=machine_set.metadata.namespace, owner=machine_set.metadata.uid)
    return [m.key for m in machines]


async def machines_of_deployment(deployment: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Every Machine that carries the name of a MachineDeployment."""
    labels = {MACHINE_DEPLOYMENT_NAME_LABEL: deployment.metadata.name}
    return [m.key for m in await reader.list(Machine, namespace=deployment.metadata.namespace, labels=labels)]


def cluster_matters(old: Any | None, new: Any | None) -> bool:
    """Whether a Machine would be judged otherwise: paused, deletion, infrastructure, control plane."""
    return _facts(old) != _facts(new)


def _facts(cluster: Cluster | None) -> tuple[Any, ...] | None:
    if cluster is None:
        return None
    flags = cluster.status.initialization
    return (
        bool(cluster.spec.paused),
        cluster.metadata.deletion_timestamp is not None,
        flags is not None and bool(flags.infrastructure_provisioned),
        is_true(cluster.status.conditions, "ControlPlaneInitialized"),
        cluster.spec.control_plane_ref,
    )


def template_matters(old: Any | None, new: Any | None) -> bool:
    """Whether the template, the revision or the rollout of an owner of Machines changed."""
    if old is None or new is None:
        return old is not new
    return bool(old.spec != new.spec or old.metadata.annotations != new.metadata.annotations or old.metadata.labels != new.metadata.labels)


CONTROLLER = ControllerDefinition(
    name="machine",
    kind=Machine,
    watches=(
        Watch(Cluster, machines_of_cluster, cluster_matters),
        Watch(MachineSet, machines_of_machine_set, template_matters),
        Watch(MachineDeployment, machines_of_deployment, template_matters),
    ),
    make=MachineReconciler,
    workload_wake=WorkloadWake(map=machines_of_cluster, failing_for=GRACE_PERIOD),
)
