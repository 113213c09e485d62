"""Watches in the workload cluster that reconcile a control plane: Nodes and static Pods whose health changed.

Without them a failing component of a settled control plane would go unnoticed until something else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import NODE_ROLE_CONTROL_PLANE_LABEL
from clusterwright.controllers.kubeadmcontrolplane.machines.health import UNREACHABLE_TAINT, node_ready_status
from clusterwright.controllers.kubeadmcontrolplane.names import KUBE_SYSTEM
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError

STATIC_PODS = "tier=control-plane"
_Seen = dict[tuple[str, str], Any]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of a Node that matter to a control plane; heartbeats do not."""

    uid: str
    has_role: bool
    taints: frozenset[tuple[str, str]]
    ready: str
    deleting: bool

    @staticmethod
    def of(node: Node) -> NodeFacts:
        """Return the facts of a Node."""
        marks = {NODE_ROLE_CONTROL_PLANE_LABEL, UNREACHABLE_TAINT}
        return NodeFacts(
            uid=node.metadata.uid,
            has_role=NODE_ROLE_CONTROL_PLANE_LABEL in node.metadata.labels,
            taints=frozenset((t.key, t.effect) for t in node.spec.taints if t.key in marks),
            ready=node_ready_status(node),
            deleting=node.metadata.deletion_timestamp is not None,
        )


@dataclass(frozen=True, slots=True)
class PodHealth:
    """The facts of a static Pod that matter: its phase and its conditions."""

    uid: str
    phase: str
    conditions: frozenset[tuple[str, str]]
    deleting: bool

    @staticmethod
    def of(pod: Pod) -> PodHealth:
        """Return the facts of a Pod."""
        return PodHealth(
            uid=pod.metadata.uid,
            phase=pod.status.phase,
            conditions=frozenset((c.type, c.status) for c in pod.status.conditions),
            deleting=pod.metadata.deletion_timestamp is not None,
        )


class WorkloadWatches:
    """Watches in workload clusters, one pair per control plane and connection."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._seen: dict[ObjectKey, _Seen] = {}

    def forget(self, key: ObjectKey) -> None:
        """Forget a control plane that is gone."""
        self._seen.pop(key, None)

    async def ensure(self, seen: ControlPlaneSnapshot) -> None:
        """Watch, if there is a connection; otherwise the new connection starts a pass, which calls this again."""
        if not seen.initialized or seen.deleting:
            return
        workload, cluster = self._deps.workload, seen.cluster.key
        known = self._seen.setdefault(seen.key, {})
        name = f"kubeadmcontrolplane-{seen.object.metadata.uid}"
        nodes, pods = self._notify(seen.key, known, NodeFacts.of), self._notify(seen.key, known, PodHealth.of)
        try:
            await workload.watch(cluster, name, Node, nodes, labels=NODE_ROLE_CONTROL_PLANE_LABEL)
            await workload.watch(cluster, name, Pod, pods, namespace=KUBE_SYSTEM, labels=STATIC_PODS)
        except ApiError:
            return

    def _notify(self, key: ObjectKey, known: _Seen, facts: Callable[[Any], Any]) -> Callable[[Any], None]:
        def notify(obj: Object) -> None:
            now = facts(obj)
            identity = (obj.kind, obj.metadata.name)
            if identity in known and known[identity] == now:
                return
            known[identity] = now
            self._deps.enqueue(key, f"{obj.kind} {obj.metadata.name} of the workload cluster changed")

        return notify
