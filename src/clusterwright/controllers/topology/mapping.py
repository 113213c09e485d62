"""Map a change of a class or a template to Clusters."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.core import Cluster, ClusterClass
from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.runtime.client import Reader


async def clusters_of_class(cluster_class: ClusterClass, reader: Reader) -> Sequence[ObjectKey]:
    """Return the Clusters whose topology names the class."""
    return await _clusters_of(cluster_class.key, reader)


async def clusters_of_template(template: Unstructured, reader: Reader) -> Sequence[ObjectKey]:
    """Return the Clusters of the classes that own a template. Objects that a Cluster owns are mapped by their owner."""
    metadata = template.metadata
    classes = {ObjectKey(metadata.namespace, r.name) for r in metadata.owner_references if r.kind == "ClusterClass"}
    return [key for owner in sorted(classes) for key in await _clusters_of(owner, reader)]


async def _clusters_of(cluster_class: ObjectKey, reader: Reader) -> list[ObjectKey]:
    found = []
    for cluster in await reader.list(Cluster):
        topology = cluster.spec.topology
        if topology and (topology.class_ref.namespace or cluster.metadata.namespace, topology.class_ref.name) == cluster_class:
            found.append(cluster.key)
    return found
