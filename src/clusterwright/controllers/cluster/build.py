"""Wire the Cluster controller: its watches, and the Clusters that each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.contract import CONTRACT_VERSIONS, crd_name
from clusterwright.api.core import Cluster, ClusterClass, Machine, MachineDeployment, MachinePool, MachineSet
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.cluster.reconciler import DEFAULT_CONNECTION_GRACE, make
from clusterwright.controllers.cluster.snapshot import ClassFacts, MachineFacts
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit import watching
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake, providers
from clusterwright.kubeadm.certificates import SECRET_TYPE, CertificateError, Purpose, parse_secret_name
from clusterwright.runtime.client import Reader
from clusterwright.runtime.mapping import itself
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch

_CONTRACT_LABELS = tuple(f"cluster.x-k8s.io/{version}" for version in CONTRACT_VERSIONS)


def contract_labels(crd: CustomResourceDefinitionMeta) -> tuple[str | None, ...]:
    """Return the versions of a kind that follow each contract; None if none does."""
    return tuple(crd.metadata.labels.get(label) for label in _CONTRACT_LABELS)


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
    """Return the Clusters that refer to an object of the kind: the way to read it may have changed.

    Skip CRDs without a contract and of templates: no Cluster refers to their objects.
    """
    if all(label is None for label in contract_labels(crd)) or crd.metadata.name.partition(".")[0].endswith("templates"):
        return []
    found = []
    for cluster in await reader.list(Cluster):
        references = (cluster.spec.infrastructure_ref, cluster.spec.control_plane_ref)
        if any(r is not None and crd_name(r.api_group, r.kind) == crd.metadata.name for r in references):
            found.append(cluster.key)
    return found


CONTROLLER = ControllerDefinition(
    name="cluster",
    kind=Cluster,
    watches=(
        Watch(Machine, watching.cluster, changed(MachineFacts.of), watching.SETTLE),
        Watch(MachineDeployment, watching.cluster, settle=watching.SETTLE),
        Watch(MachineSet, watching.cluster, settle=watching.SETTLE),
        Watch(MachinePool, watching.cluster, settle=watching.SETTLE),
        Watch(ClusterClass, clusters_of_class, changed(ClassFacts.of)),
        Watch(Secret, cluster_of_secret, why="the kubeconfig is made from the CA, and made again when it is gone"),
        Watch(CustomResourceDefinitionMeta, clusters_of_crd, changed(contract_labels), why="labels say how an object of the kind is read"),
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
