"""How the Cluster controller is wired: what it watches, and whom each change wakes."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.contract import CONTRACT_VERSIONS, crd_name
from clusterwright.api.core import Cluster, ClusterClass, Machine, MachineDeployment, MachinePool, MachineSet
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.conditions import get
from clusterwright.controllers.cluster.reconciler import DEFAULT_CONNECTION_GRACE, make
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit import watching
from clusterwright.controllers.kit.watching import changed, itself
from clusterwright.controllers.version_counts import of_machines
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.kubeadm.certificates import SECRET_TYPE, CertificateError, Purpose, parse_secret_name
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch

_CONTRACT_LABELS = tuple(f"cluster.x-k8s.io/{version}" for version in CONTRACT_VERSIONS)
_COUNTED = ("Ready", "Available", "UpToDate", "HealthCheckSucceeded", "OwnerRemediated")


async def cluster_of_secret(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the Cluster whose CA or kubeconfig the Secret holds: a stand-alone control plane waits for them."""
    if secret.type not in {SECRET_TYPE, "kubernetes.io/tls", "Opaque"}:
        return []
    try:
        cluster, purpose = parse_secret_name(secret.metadata.name)
    except CertificateError:
        return []
    return [ObjectKey(secret.metadata.namespace, cluster)] if purpose in {Purpose.CA, Purpose.KUBECONFIG} else []


async def clusters_of_class(cluster_class: ClusterClass, reader: Reader) -> Sequence[ObjectKey]:
    """Return the Clusters whose topology names the class."""
    key = cluster_class.key
    found = []
    for cluster in await reader.list(Cluster):
        topology = cluster.spec.topology
        if topology and (topology.class_ref.namespace or cluster.metadata.namespace, topology.class_ref.name) == key:
            found.append(cluster.key)
    return found


async def clusters_of_crd(crd: CustomResourceDefinitionMeta, reader: Reader) -> Sequence[ObjectKey]:
    """Return the Clusters that refer to an object of the kind: whether and how it can be read may have changed.

    Most CRDs follow no contract, and nobody refers to templates: for those, no Cluster is looked at.
    """
    follows_contract = any(label in crd.metadata.labels for label in _CONTRACT_LABELS)
    if not follows_contract or crd.metadata.name.partition(".")[0].endswith("templates"):
        return []
    found = []
    for cluster in await reader.list(Cluster):
        references = (cluster.spec.infrastructure_ref, cluster.spec.control_plane_ref)
        if any(r is not None and crd_name(r.api_group, r.kind) == crd.metadata.name for r in references):
            found.append(cluster.key)
    return found


def contribution(machine: Machine) -> object:
    """Return all that a Machine adds to its Cluster's status; a change of anything else is none of the Cluster's business."""
    metadata, status = machine.metadata, machine.status
    counted = [get(status.conditions, t) for t in _COUNTED]
    return (
        metadata.deletion_timestamp is not None,
        metadata.owner_references,
        [metadata.labels.get(label) for label in (CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_POOL_NAME_LABEL)],
        status.node_ref.name if status.node_ref else "",
        of_machines([machine]),
        [(c.status, c.message, c.last_transition_time) if c else None for c in counted],
    )


CONTROLLER = ControllerDefinition(
    name="cluster",
    kind=Cluster,
    watches=(
        Watch(Machine, watching.cluster, changed(contribution), watching.SETTLE),
        Watch(MachineDeployment, watching.cluster, settle=watching.SETTLE),
        Watch(MachineSet, watching.cluster, settle=watching.SETTLE),
        Watch(MachinePool, watching.cluster, settle=watching.SETTLE),
        Watch(ClusterClass, clusters_of_class, changed(lambda c: c.metadata.generation)),
        Watch(Secret, cluster_of_secret),
        Watch(CustomResourceDefinitionMeta, clusters_of_crd, changed(lambda crd: crd.metadata.labels)),
    ),
    make=make,
    access=(
        *providers("patch delete", "infrastructure", "controlplane"),
        *(Access(f"{plural}.cluster.x-k8s.io", "delete") for plural in ("machinedeployments", "machinesets", "machinepools", "machines")),
        Access("secrets", "create patch"),  # the kubeconfig of a control plane that no provider manages
    ),
    workload_wake=WorkloadWake(map=itself, failing_for=DEFAULT_CONNECTION_GRACE),
    concurrency=50,
)
