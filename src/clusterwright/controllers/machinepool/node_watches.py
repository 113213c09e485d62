"""Map a change of a Node to its MachinePool. State is kept in memory only: after a restart every pool is reconciled once anyway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.api.core import MachinePool
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_ANNOTATION, CLUSTER_NAME_LABEL, CLUSTER_NAMESPACE_ANNOTATION, MACHINE_POOL_NAME_LABEL
from clusterwright.kubeadm.naming import label_value
from clusterwright.runtime.client import Reader


@dataclass(frozen=True, slots=True)
class _Known:
    cluster: ObjectKey
    names: frozenset[str]
    provider_ids: frozenset[str]


class NodeWatches:
    """Finds the pool of a Node: by the Nodes that the pools had, else by their provider IDs."""

    def __init__(self, enqueue: Callable[[ObjectKey, str], None]) -> None:
        self._enqueue = enqueue
        self._known: dict[ObjectKey, _Known] = {}
        self._of: dict[ObjectKey, set[ObjectKey]] = {}
        """The pools of a cluster."""

    def learn(self, pool: MachinePool, cluster: ObjectKey) -> None:
        """Remember which Nodes a pool has or awaits. Call this before reading Nodes, so that no change is missed."""
        names = frozenset(r.name for r in pool.status.node_refs)
        self._known[pool.key] = _Known(cluster, names, frozenset(filter(None, pool.spec.provider_id_list)))
        self._of.setdefault(cluster, set()).add(pool.key)

    def forget(self, pool: ObjectKey) -> None:
        """Forget a pool that is gone."""
        known = self._known.pop(pool, None)
        if known is not None:
            self._of[known.cluster].discard(pool)
            if not self._of[known.cluster]:
                del self._of[known.cluster]

    def node_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return the handler for changes of Nodes in a cluster."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Node) and _is_of(obj, cluster):
                for pool in self.pools_of(cluster, obj.metadata.name, obj.spec.provider_id):
                    self._enqueue(pool, f"Node {obj.metadata.name} changed")

        return notify

    def pools_of(self, cluster: ObjectKey, name: str, provider_id: str) -> tuple[ObjectKey, ...]:
        """Return the pool of a Node; none if that is ambiguous."""
        here = [(key, self._known[key]) for key in sorted(self._of.get(cluster, ()))]
        found = [key for key, known in here if name in known.names] or [k for k, known in here if provider_id in known.provider_ids]
        return (found[0],) if len(found) == 1 else ()


def _is_of(node: Node, cluster: ObjectKey) -> bool:
    """Return whether the Node belongs to this Cluster by its annotation; a Node without one, before the first sync, may."""
    annotations = node.metadata.annotations
    if CLUSTER_NAME_ANNOTATION not in annotations:
        return True
    return (annotations.get(CLUSTER_NAMESPACE_ANNOTATION, ""), annotations[CLUSTER_NAME_ANNOTATION]) == tuple(cluster)


async def pools_by_label(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Return the pool that the labels of a Machine or infrastructure machine name: directly or by hash."""
    labels = obj.metadata.labels
    name, cluster = labels.get(MACHINE_POOL_NAME_LABEL), labels.get(CLUSTER_NAME_LABEL)
    if not name or not cluster:
        return ()
    pools = await reader.list(MachinePool, namespace=obj.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster})
    return [p.key for p in pools if name == label_value(p.metadata.name)]
