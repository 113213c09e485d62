"""The decision about a binding. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from clusterwright.api.addons import ClusterResourceSetBinding
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.wellknown import CORE_GROUP, OK_TO_DELETE_ANNOTATION
from clusterwright.controllers.external import refers_to
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard


class Fate(Enum):
    """The action on a binding."""

    STAYS = "nothing"
    GOES = "delete the binding"
    WAITS = "nothing, before the Cluster may be deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingSnapshot(Snapshot[ClusterResourceSetBinding]):
    """A binding and its Cluster."""

    name: str
    cluster: Cluster | None
    """The Cluster; None: it does not exist."""
    has_hooks: bool
    """Whether hooks may block the deletion of a Cluster with a topology."""


@guard("the Cluster does not exist")
def cluster_gone(c: BindingSnapshot) -> bool:
    return c.cluster is None


@guard("the Cluster is being deleted")
def cluster_deleting(c: BindingSnapshot) -> bool:
    return c.cluster is not None and c.cluster.metadata.deletion_timestamp is not None


@guard("RuntimeSDK and ClusterTopology are on, the Cluster has a topology and no annotation runtime.cluster.x-k8s.io/ok-to-delete")
def hooks_pending(c: BindingSnapshot) -> bool:
    cluster = c.cluster
    has_topology = cluster is not None and cluster.spec.topology is not None
    return c.has_hooks and has_topology and cluster is not None and OK_TO_DELETE_ANNOTATION not in cluster.metadata.annotations


FATE: Table[BindingSnapshot] = Table(
    "Fate of a binding",
    Row("cluster-gone", cluster_gone, KEEP, act=Fate.GOES),
    Row("hooks-pending", cluster_deleting & hooks_pending, KEEP, act=Fate.WAITS),
    Row("cluster-deleting", cluster_deleting, KEEP, act=Fate.GOES),
    Row("bound", OTHERWISE, KEEP, act=Fate.STAYS),
)


def cluster_name(binding: ClusterResourceSetBinding) -> str:
    """Return the name of a binding's Cluster; old bindings have it only in their owner references. Raises ValueError."""
    if binding.spec.cluster_name:
        return binding.spec.cluster_name
    owners = (r for r in binding.metadata.owner_references if r.kind == "Cluster" and r.api_version.partition("/")[0] == CORE_GROUP)
    owner = next(owners, None)
    if owner is None:
        raise ValueError("failed to find cluster name in ownerRefs: no cluster ownerRef")
    if not owner.name:
        raise ValueError("failed to find cluster name in ownerRefs: ref name is empty")
    return owner.name


def modern(binding: ClusterResourceSetBinding, cluster: str) -> ClusterResourceSetBinding:
    """Return the binding with the Cluster in its spec, if an old version had it only in owner references."""
    metadata = binding.metadata
    owners = tuple(r for r in metadata.owner_references if not refers_to(r, CORE_GROUP, "Cluster", cluster))
    return replace(binding, metadata=replace(metadata, owner_references=owners), spec=replace(binding.spec, cluster_name=cluster))
