"""Find a MachinePool's Nodes by the provider IDs of its infrastructure, and compute what is written on them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterwright.api.core import MachinePool
from clusterwright.api.kubernetes import Node, ObjectReference, Taint
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    CLUSTER_NAME_ANNOTATION,
    CLUSTER_NAMESPACE_ANNOTATION,
    OWNER_KIND_ANNOTATION,
    OWNER_NAME_ANNOTATION,
    UNINITIALIZED_TAINT,
)

UNINITIALIZED = (UNINITIALIZED_TAINT, "NoSchedule")


def by_provider_id(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return the Nodes by providerID, compared exactly; Nodes without one are left out."""
    return {n.spec.provider_id: n for n in nodes if n.spec.provider_id}


@dataclass(frozen=True, slots=True)
class Membership:
    """The Nodes of a pool in the order of its provider IDs, and the numbers of ready and available ones."""

    refs: tuple[ObjectReference, ...] = ()
    ready: int = 0
    available: int = 0


def membership(provider_ids: Sequence[str], nodes: Mapping[str, Node], min_ready: timedelta, now: datetime) -> Membership:
    """Return the Nodes with the provider IDs; empty IDs are skipped, a repeated ID counts twice."""
    found = [nodes[i] for i in provider_ids if i and i in nodes]
    return Membership(
        tuple(ObjectReference(api_version=n.api_version, kind=n.kind, name=n.metadata.name, uid=n.metadata.uid) for n in found),
        sum(is_ready(n) for n in found),
        sum(is_available(n, min_ready, now) for n in found),
    )


def kubelets(refs: Sequence[ObjectReference], nodes: Mapping[str, Node] | None) -> Iterator[str]:
    """Yield the kubelet versions of the referenced Nodes, as far as known."""
    by_name = {n.metadata.name: n for n in (nodes or {}).values()}
    for node in (by_name[r.name] for r in refs if r.name in by_name):
        if node.status.node_info.kubelet_version:
            yield node.status.node_info.kubelet_version


def is_ready(node: Node) -> bool:
    """Return whether the Node reports Ready."""
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


def is_available(node: Node, min_ready: timedelta, now: datetime) -> bool:
    """Return whether the Node has been ready for that long; with zero, whether it is ready."""
    if not is_ready(node):
        return False
    if not min_ready:
        return True
    since = next(c.last_transition_time for c in node.status.conditions if c.type == "Ready")
    return since is not None and since + min_ready < now


def still_there(refs: Sequence[ObjectReference], nodes: Mapping[str, Node]) -> bool:
    """Return whether every reference names an existing Node: the same one, not another of its name."""
    known = {(n.metadata.name, n.metadata.uid) for n in nodes.values()}
    return all((r.name, r.uid) in known for r in refs)


def is_retired(node: Node, provider_ids: Sequence[str]) -> bool:
    """Return whether the infrastructure has removed the Node's machine; False for a Node without providerID."""
    return bool(node.spec.provider_id) and node.spec.provider_id not in provider_ids


def node_patch(node: Node, pool: MachinePool) -> Json | None:
    """Return a merge patch that marks the Node as the pool's and removes the uninitialized taint; None if nothing changes."""
    wanted = {
        CLUSTER_NAME_ANNOTATION: pool.spec.cluster_name,
        CLUSTER_NAMESPACE_ANNOTATION: pool.metadata.namespace,
        OWNER_KIND_ANNOTATION: pool.kind,
        OWNER_NAME_ANNOTATION: pool.metadata.name,
    }
    changes = {k: v for k, v in wanted.items() if node.metadata.annotations.get(k) != v}
    kept = [t for t in node.spec.taints if (t.key, t.effect) != UNINITIALIZED]
    has_taint = len(kept) != len(node.spec.taints)
    if not changes and not has_taint:
        return None
    patch: Json = {"metadata": {"resourceVersion": node.metadata.resource_version, **({"annotations": changes} if changes else {})}}
    if has_taint:
        patch["spec"] = {"taints": [_taint(t) for t in kept] or None}
    return patch


def _taint(taint: Taint) -> Json:
    json: Json = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        json["value"] = taint.value
    if taint.time_added is not None:
        json["timeAdded"] = f"{taint.time_added:%Y-%m-%dT%H:%M:%SZ}"
    return json
