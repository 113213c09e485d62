"""The wiring of the KubeadmControlPlane controller: what wakes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.external import group_of
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.reconcile import KubeadmControlPlaneReconciler
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.kubeadm.certificates import CertificateError, parse_secret_name
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch

ALARMS_EVERY = 60.0
"""Seconds: nobody reports an etcd alarm that is raised or cleared, nor a certificate that comes near its end."""
_GROUP, _KIND = "controlplane.cluster.x-k8s.io", "KubeadmControlPlane"


async def control_plane_of_machine(machine: Machine, _reader: Reader) -> Sequence[ObjectKey]:
    """The control plane that controls the Machine."""
    for reference in machine.metadata.owner_references:
        if reference.controller and reference.kind == _KIND and _group(reference.api_version) == _GROUP:
            return [ObjectKey(machine.metadata.namespace, reference.name)]
    return []


async def control_plane_of_cluster(cluster: Cluster, _reader: Reader) -> Sequence[ObjectKey]:
    """The control plane that the Cluster refers to; the group counts too."""
    reference = cluster.spec.control_plane_ref
    if reference is None or reference.kind != _KIND or reference.api_group != _GROUP:
        return []
    return [ObjectKey(cluster.metadata.namespace, reference.name)]


async def control_plane_of_secret(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """The control plane of the Cluster whose certificates or kubeconfig the Secret holds: what is gone or changed is looked after."""
    try:
        name, _ = parse_secret_name(secret.metadata.name)
    except CertificateError:
        return []
    cluster = await reader.find(Cluster, ObjectKey(secret.metadata.namespace, name))
    return [] if cluster is None else await control_plane_of_cluster(cluster, reader)


def _group(api_version: str) -> str:
    try:
        return group_of(api_version)
    except ValueError:
        return ""


def cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """Whether a change of the Cluster concerns its control plane: pause, provisioning, endpoint, wanted version, failure domains."""
    if old is None or new is None:
        return new is not None
    return _relevant(old) != _relevant(new)


def _relevant(cluster: Cluster) -> tuple[Any, ...]:
    initialization, topology = cluster.status.initialization, cluster.spec.topology
    return (
        cluster.spec.paused is True,
        initialization is not None and initialization.infrastructure_provisioned is True,
        cluster.spec.control_plane_endpoint,
        topology.version if topology is not None else "",
        cluster.metadata.annotations.get(names.UPGRADE_STEP, ""),
        cluster.status.failure_domains,
    )


CONTROLLER = ControllerDefinition(
    name="kubeadmcontrolplane",
    kind=KubeadmControlPlane,
    watches=(
        Watch(Machine, control_plane_of_machine),
        Watch(Cluster, control_plane_of_cluster, cluster_matters),
        Watch(Secret, control_plane_of_secret),
    ),
    make=KubeadmControlPlaneReconciler,
    access=(
        *providers("create patch delete", "infrastructure", "bootstrap"),
        Access("machines.cluster.x-k8s.io", "create patch delete"),
        Access("machines.cluster.x-k8s.io/status", "patch"),
        Access("secrets", "create update patch"),
    ),
    look=ALARMS_EVERY,
    workload_wake=WorkloadWake(map=control_plane_of_cluster, failing_for=names.REMOTE_CONDITIONS_GRACE),
)
