"""Simulate how kubelets treat Pods: deleted Pods end, and the static Pods of a Node come back.

They have no containers. A deleted or evicted Pod is gone at once, if its kubelet runs; the mirror of a static Pod, and a Pod of a
DaemonSet, are created again, as the kubelet and the DaemonSet controller would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Entry, Event, object_key
from clusterwright.inmemory.distributions import REMOVALS
from clusterwright.inmemory.etcd import LEADER_FROM, REMOVED
from clusterwright.inmemory.objects import KUBELET_STOPPED

_DAEMON_SET: Final = "DaemonSet"
MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of the mirror Pod of a static Pod."""
_KEPT: Final = ("name", "namespace", "labels", "annotations")


class Kubelets:
    """The kubelets of one cluster, called for each write to its Pods and Nodes."""

    def __init__(self, server: ApiServer, make: Callable[[Json], bool], node_gone: Callable[[str], None]) -> None:
        """Create the kubelets. `make` creates an object with its status; `node_gone` gets the name of a deleted Node."""
        self._server, self._make, self._node_gone = server, make, node_gone
        self._pods, self._nodes, self._daemon_sets = (server.store.table(name) for name in ("pods", "nodes", "daemonsets.apps"))
        self._pods.hooks.append(_Ear(self._hear_of_pod))
        self._nodes.hooks.append(_Ear(self._hear_of_node))
        for entry in list(self._pods.objects.values()):  # deleted before a restart
            self._end(entry.key)

    def _hear_of_pod(self, event: Event) -> None:
        pod = _POD.decode(event.entry.raw)
        if event.type == "DELETED":
            if MIRROR in pod.metadata.annotations or any(o.kind == _DAEMON_SET for o in pod.metadata.owner_references):
                self._server.later(lambda: self._bring_back(event.entry))
        elif pod.metadata.deletion_timestamp and pod.spec.node_name:
            self._server.later(lambda: self._end(event.entry.key))

    def _hear_of_node(self, event: Event) -> None:
        if event.type == "DELETED":
            self._node_gone(event.entry.name)
            return
        annotations = _POD.decode(event.entry.raw).metadata.annotations
        for asked, confirmed in REMOVALS:
            if annotations.get(asked) == "true" and confirmed not in annotations:
                self._server.later(lambda name=event.entry.name, said=confirmed: self._leave_etcd(name, said))  # type: ignore[misc]
        if _is_alive(event.entry) and (event.old is None or not _is_alive(event.old)):
            for entry in list(self._pods.objects.values()):
                self._server.later(lambda key=entry.key: self._end(key))  # type: ignore[misc]

    def _leave_etcd(self, node: str, confirmed: str) -> None:
        """Remove a Node's etcd member, as the supervisors of some distributions do on request, and confirm it on the Node."""
        entry, pod = self._nodes.objects.get(node), self._pods.objects.get(f"kube-system/etcd-{node}")
        if entry is None or not self.is_served(node):
            return
        if pod is not None:
            obj: Json = msgspec.json.decode(pod.raw)
            annotations = {**(obj["metadata"].get("annotations") or {}), REMOVED: ""}
            annotations.pop(LEADER_FROM, None)
            obj["metadata"]["annotations"] = annotations
            self._server.put_system(self._pods, pod, obj)
        shown: Json = msgspec.json.decode(entry.raw)
        shown["metadata"]["annotations"] = {**(shown["metadata"].get("annotations") or {}), confirmed: node}
        self._server.put_system(self._nodes, entry, shown)

    def is_served(self, node: str) -> bool:
        """Return whether a kubelet of that name runs."""
        entry = self._nodes.objects.get(node)
        return entry is not None and _is_alive(entry)

    def _end(self, key: str) -> None:
        """Remove a deleted Pod."""
        entry = self._pods.objects.get(key)
        pod = _POD.decode(entry.raw) if entry is not None else None
        if entry is None or pod is None or not pod.metadata.deletion_timestamp or not self.is_served(pod.spec.node_name):
            return
        if not pod.metadata.finalizers:
            self._server.remove_system(self._pods, entry)
        elif pod.metadata.deletion_grace_period_seconds:  # the rest is up to whoever set the finalizers
            obj = msgspec.json.decode(entry.raw)
            obj["metadata"]["deletionGracePeriodSeconds"] = 0
            self._server.put_system(self._pods, entry, obj)

    def _bring_back(self, entry: Entry) -> None:
        """Create a Pod again whose Node still exists, and its DaemonSet: else garbage collection would delete it, again and again."""
        obj: Json = msgspec.json.decode(entry.raw)
        metadata = {k: v for k, v in obj["metadata"].items() if k in _KEPT}
        owners = [o for o in obj["metadata"].get("ownerReferences") or () if o["kind"] == _DAEMON_SET]
        if MIRROR not in (metadata.get("annotations") or {}):
            if not owners or not all(self._is_kept(entry.namespace, owner) for owner in owners):
                return
            metadata["ownerReferences"] = owners
        if self.is_served(str(obj["spec"].get("nodeName"))):
            self._make({**obj, "metadata": metadata})

    def _is_kept(self, namespace: str, owner: Json) -> bool:
        """Return whether a DaemonSet exists and is not being deleted."""
        entry = self._daemon_sets.objects.get(object_key(namespace, owner["name"]))
        return entry is not None and entry.uid == owner["uid"] and not _POD.decode(entry.raw).metadata.deletion_timestamp


class _Ear:
    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.offer = tell


class _Owner(msgspec.Struct):
    kind: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_POD: Final = msgspec.json.Decoder(_Pod)


def _is_alive(node: Entry) -> bool:
    return KUBELET_STOPPED not in _POD.decode(node.raw).metadata.annotations
