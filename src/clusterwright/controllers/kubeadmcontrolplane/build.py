"""Wire the KubeadmControlPlane controller: the changes that reconcile a control plane."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_GROUP
from clusterwright.controllers.kit.watching import by_reference
from clusterwright.controllers.kubeadmcontrolplane.names import REMOTE_CONDITIONS_GRACE
from clusterwright.controllers.kubeadmcontrolplane.reconciler import make
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ClusterFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.kubeadm.certificates import CertificateError, parse_secret_name
from clusterwright.runtime.client import Reader
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.predicates import appeared_or_changed
from clusterwright.runtime.reconcile import Watch

ALARMS_EVERY = 300.0
"""Seconds between checks of what no watch reports: etcd alarms, and certificates near their expiry."""
_KIND = "KubeadmControlPlane"


control_plane_of_machine = owners(CONTROL_PLANE_GROUP, _KIND, controller_only=True)
"""Map a Machine to the control plane that controls it."""

control_plane_of_cluster = by_reference(CONTROL_PLANE_GROUP, _KIND, lambda cluster: (cluster.spec.control_plane_ref,))
"""Map a Cluster to the control plane that it refers to; the group must match too."""


async def control_plane_of_secret(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the control plane of the Cluster whose certificates or kubeconfig the Secret holds, to restore missing or changed ones."""
    try:
        name, _ = parse_secret_name(secret.metadata.name)
    except CertificateError:
        return []
    cluster = await reader.find(Cluster, ObjectKey(secret.metadata.namespace, name))
    return [] if cluster is None else await control_plane_of_cluster(cluster, reader)


CONTROLLER = ControllerDefinition(
    name="kubeadmcontrolplane",
    kind=KubeadmControlPlane,
    watches=(
        Watch(Machine, control_plane_of_machine),
        Watch(Cluster, control_plane_of_cluster, appeared_or_changed(ClusterFacts.of)),
        Watch(Secret, control_plane_of_secret, why="certificates and kubeconfig are made and renewed"),
    ),
    make=make,
    access=(
        *providers("create patch delete", "infrastructure", "bootstrap"),
        Access("machines.cluster.x-k8s.io", "create patch delete"),
        Access("machines.cluster.x-k8s.io/status", "patch"),
        Access("machinepools.cluster.x-k8s.io", "list"),
        Access("secrets", "create update patch"),
    ),
    look=ALARMS_EVERY,
    workload_wake=WorkloadWake(map=control_plane_of_cluster, failing_for=REMOTE_CONDITIONS_GRACE),
)
