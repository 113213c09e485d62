"""Wire the ClusterResourceSet controller: its watches, and the sets that each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.addons import ClusterResourceSet
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import is_empty, parsed
from clusterwright.api.wellknown import RESOURCE_SET_SECRET_TYPE
from clusterwright.controllers.clusterresourceset.reconciler import make
from clusterwright.controllers.clusterresourceset.snapshot import ClusterFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import appeared_or_changed, changed
from clusterwright.runtime.reconcile import Watch


async def sets_of_cluster(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """Return the sets whose selector matches the Cluster; skip a set with an invalid selector."""
    return tuple(
        s.key for s in await reader.list(ClusterResourceSet, namespace=cluster.metadata.namespace) if _matches(s, cluster.metadata.labels)
    )


def _matches(resource_set: ClusterResourceSet, labels: Any) -> bool:
    selector = resource_set.spec.cluster_selector
    try:
        return not is_empty(selector) and parsed(selector).matches(labels)
    except ValueError:
        return False


async def sets_of_resource(resource: ConfigMap | Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the sets that own the resource; if none does, those that list it."""
    namespace, name = resource.key
    owners = tuple(ObjectKey(namespace, r.name) for r in resource.metadata.owner_references if r.kind == "ClusterResourceSet")
    if owners:
        return owners
    sets = await reader.list(ClusterResourceSet, namespace=namespace)
    return tuple(s.key for s in sets if any((r.kind, r.name) == (resource.kind, name) for r in s.spec.resources))


def _content(resource: ConfigMap | Secret) -> Any:
    return resource.metadata.resource_version


_resource_changed = appeared_or_changed(_content)


def _resource_secret_changed(old: Secret | None, new: Secret | None) -> bool:
    """Return whether a Secret may be applied, or was: there are many others."""
    return any(s is not None and s.type == RESOURCE_SET_SECRET_TYPE for s in (old, new)) and _resource_changed(old, new)


CONTROLLER = ControllerDefinition(
    name="clusterresourceset",
    kind=ClusterResourceSet,
    watches=(
        Watch(Cluster, sets_of_cluster, changed(ClusterFacts.of)),
        Watch(ConfigMap, sets_of_resource, _resource_changed, why="its content is applied to clusters"),
        Watch(Secret, sets_of_resource, _resource_secret_changed, why="its content is applied to clusters"),
    ),
    make=make,
    access=(
        Access("clusterresourcesetbindings.addons.cluster.x-k8s.io", "get list create patch delete"),
        Access("configmaps", "patch"),
        Access("secrets", "patch"),
    ),
    workload_wake=WorkloadWake(map=sets_of_cluster),
)
