"""What wakes a control plane beside objects of the management cluster: Nodes and static Pods whose health changed, and time.

Without them a sick component of a settled control plane would go unnoticed until something else happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.health import UNREACHABLE_TAINT
from clusterwright.controllers.kubeadmcontrolplane.scope import KUBE_SYSTEM, Scope
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError

STATIC_PODS = "tier=control-plane"
_LONGEST = 86400.0
_Seen = dict[tuple[str, str], Any]


class Alarms:
    """Wakes a control plane at a moment; one alarm each, the last one set counts."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._handles: dict[ObjectKey, asyncio.TimerHandle] = {}

    def set(self, key: ObjectKey, moment: datetime | None) -> None:
        """Wake the key at `moment`; None: not at all."""
        handle = self._handles.pop(key, None)
        if handle is not None:
            handle.cancel()
        if moment is not None:
            delay = (moment - self._dependencies.clock.now()).total_seconds()
            # longer delays than a day are taken in steps: no event loop keeps a timer of years exactly
            self._handles[key] = asyncio.get_running_loop().call_later(min(max(delay, 0.0), _LONGEST), self._ring, key)

    def _ring(self, key: ObjectKey) -> None:
        self._handles.pop(key, None)
        self._dependencies.enqueue(key, "time has come")


class WorkloadWatches:
    """Watches in workload clusters, one pair per control plane and connection."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._seen: dict[ObjectKey, _Seen] = {}

    def forget(self, key: ObjectKey) -> None:
        """The control plane is gone."""
        self._seen.pop(key, None)

    async def ensure(self, scope: Scope) -> None:
        """Watch, if there is a connection; without one the connection wakes us, and we come here again."""
        if not scope.initialized or scope.deleting:
            return
        workload, cluster = self._dependencies.workload, scope.cluster_key
        seen = self._seen.setdefault(scope.key, {})
        name = f"kubeadmcontrolplane-{scope.control_plane.metadata.uid}"
        try:
            await workload.watch(cluster, name, Node, self._notify(scope.key, seen, "Node", node_state), labels=names.NODE_ROLE)
            await workload.watch(
                cluster, name, Pod, self._notify(scope.key, seen, "Pod", pod_state), namespace=KUBE_SYSTEM, labels=STATIC_PODS
            )
        except ApiError:
            return

    def _notify(self, key: ObjectKey, seen: _Seen, kind: str, state: Callable[[Any], Any]) -> Callable[[Any], None]:
        def notify(obj: Object) -> None:
            now = state(obj)
            identity = (kind, obj.metadata.name)
            if identity in seen and seen[identity] == now:
                return
            seen[identity] = now
            self._dependencies.enqueue(key, f"{kind} {obj.metadata.name} of the workload cluster changed")

        return notify


def node_state(node: Node) -> Any:
    """What of a Node matters to a control plane; heartbeats do not."""
    ready = next((c.status for c in node.status.conditions if c.type == "Ready"), "") if node.status is not None else ""
    taints = node.spec.taints if node.spec is not None else ()
    marks = frozenset((t.key, t.effect) for t in taints or () if t.key in {names.NODE_ROLE, UNREACHABLE_TAINT})
    return node.metadata.uid, names.NODE_ROLE in node.metadata.labels, marks, ready, node.metadata.deletion_timestamp is not None


def pod_state(pod: Pod) -> Any:
    """What of a static Pod matters: its phase and its conditions."""
    status = pod.status
    conditions = frozenset((c.type, c.status) for c in status.conditions or ()) if status is not None else frozenset()
    return pod.metadata.uid, status.phase if status is not None else "", conditions, pod.metadata.deletion_timestamp is not None
