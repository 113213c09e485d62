"""The actions of a pass in the workload cluster: find and sync the Node, drain it, read its volumes, delete it.

`node`, `drain` and `volumes` make every choice; here are the requests between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterwright.api.contract import MalformedField
from clusterwright.api.core import Machine, MachineDrainRule
from clusterwright.api.kubernetes import DaemonSet, Namespace, Node, PersistentVolume, Pod, VolumeAttachment
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.machine import drain, node, volumes
from clusterwright.controllers.machine.guards import control_plane_initialized
from clusterwright.controllers.machine.infrastructure import is_interruptible
from clusterwright.controllers.machine.node_access import NODE_DELETION_PAUSE, NODE_DELETION_TRIES
from clusterwright.controllers.machine.node_watches import NodeWatches
from clusterwright.controllers.machine.snapshot import (
    ClusterFacts,
    MachineSnapshot,
    NodeFound,
    NodeLookup,
    NodeMissing,
    NodeOutOfReach,
    NodeUnreadable,
    NodeUnsought,
)
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.logging import get_logger
from clusterwright.workload.access import NotConnected, WorkloadClusters

_SYNC_TRIES = 3

_log = get_logger("machine")


@dataclass(frozen=True, slots=True)
class NodeSync:
    """The additional labels and annotations that a Machine propagates to its Node."""

    labels: Sequence[re.Pattern[str]] = ()
    annotations: Sequence[re.Pattern[str]] = ()


async def observe_node(workload: WorkloadClusters, watches: NodeWatches, s: MachineSnapshot, sync: NodeSync) -> NodeLookup:
    """Find the Machine's Node and update its labels, annotations and taints."""
    key = s.cluster.key
    try:
        if control_plane_initialized(s):
            await _watch(workload, key, watches)
        if not s.machine.spec.provider_id:
            return NodeUnsought()
        client = await workload.client(key)
        # the first Node of a stand-alone control plane is what initializes it: nobody else would tell us of that Node
        await _watch(workload, key, watches)
        found = node.node_with(s.machine.spec.provider_id, await client.list(Node))
    except NotConnected as error:
        return NodeOutOfReach(error)
    except (ApiError, node.AmbiguousNode) as error:
        return NodeUnreadable(error)
    if found is None:
        return NodeMissing()
    try:
        await _sync(client, found, s, sync)
    except (ApiError, node.NodeSyncError, MalformedField) as error:
        return NodeFound(found, error)
    return NodeFound(found)


async def _watch(workload: WorkloadClusters, cluster: ObjectKey, watches: NodeWatches) -> None:
    await workload.watch(cluster, "machine-nodes", Node, watches.node_changed(cluster))


async def _sync(client: Client, found: Node, s: MachineSnapshot, sync: NodeSync) -> None:
    desired = node.Desired(
        labels=node.labels_for_node(s.machine, interruptible=is_interruptible(s.infrastructure), also=sync.labels),
        annotations=node.annotations_for_node(s.machine, also=sync.annotations),
        taints=s.machine.spec.taints if s.features.get("MachineTaintPropagation", False) else None,
        outdated=node.is_outdated(s.machine_set, s.deployment),
    )
    for attempt in range(1, _SYNC_TRIES + 1):
        patch = node.node_patch(found, desired)
        if patch is None:
            return
        try:
            await client.patch(Node, found.key, patch)
            return
        except Conflict:
            # kubelets write to their Nodes all the time
            if attempt == _SYNC_TRIES:
                raise
        found = await client.live.get(Node, found.key)


async def find_node_name(workload: WorkloadClusters, cluster: ObjectKey, provider_id: str) -> str:
    """Return the name of the Node with this providerID, as far as known; empty if unknown."""
    try:
        client = await workload.client(cluster)
        found = node.node_with(provider_id, await client.list(Node))
    except (ApiError, node.AmbiguousNode) as error:
        _log.info("the Node of a Machine that is deleted could not be looked up", provider_id=provider_id, error=str(error))
        return ""
    return found.metadata.name if found else ""


async def judge_pods(
    management: Reader, client: Client, cluster: ClusterFacts, machine: Machine, target: Node, now: datetime
) -> tuple[drain.Verdict, ...]:
    """Return the drain's decision about each Pod on the Node. Raises DrainError or ApiError; then no Pod may be evicted."""
    pods = await client.live.list(Pod, fields=f"spec.nodeName={target.metadata.name}")
    rules = drain.applicable_rules(
        await management.list(MachineDrainRule, namespace=machine.metadata.namespace), machine.metadata.labels, cluster.labels
    )
    namespaces = {n.metadata.name: n.metadata.labels for n in await client.list(Namespace)}
    described = []
    for pod in pods:
        daemon_set = drain.daemon_set_of(pod)
        exists = None if daemon_set is None else await client.find(DaemonSet, daemon_set) is not None
        described.append(drain.describe(pod, daemon_set_exists=exists))
    return drain.judge_all(described, rules=rules, namespaces=namespaces, unreachable=node.is_unreachable(target), now=now)


async def drain_node(
    management: Reader, client: Client, clock: Clock, cluster: ClusterFacts, machine: Machine, node_name: str
) -> drain.DrainProgress | None:
    """Cordon the Node and evict the Pods whose turn it is; return None if the Node is gone. Raises DrainError or ApiError."""
    target = await client.find(Node, ObjectKey("", node_name))
    if target is None or not node.is_of(target, machine):
        return None
    if not target.spec.unschedulable:
        await client.patch(Node, target.key, {"spec": {"unschedulable": True}})
    unreachable = node.is_unreachable(target)
    plan = drain.plan(await judge_pods(management, client, cluster, machine, target, clock.now()))
    started = clock.monotonic()
    evicted: list[ObjectKey] = []
    failures: dict[str, list[ObjectKey]] = {}
    for verdict in plan.evict:
        key = verdict.pod.key
        if clock.monotonic() - started >= drain.EVICTION_TIMEOUT.total_seconds():
            failures.setdefault(drain.timed_out(), []).append(key)
            continue
        try:
            await client.create_subresource(Pod, key, "eviction", drain.eviction_body(key, unreachable=unreachable))
            evicted.append(key)
            _log.info("Pod evicted", node=node_name, pod=str(key), warnings=", ".join(verdict.warnings))
        except NotConnected:
            raise
        except ApiError as error:
            if (text := drain.eviction_failure(error)) is not None:
                failures.setdefault(text, []).append(key)
    return drain.DrainProgress(plan, tuple(evicted), {text: tuple(keys) for text, keys in failures.items()})


async def observe_volumes(
    management: Reader,
    client: Client,
    cluster: ClusterFacts,
    machine: Machine,
    node_name: str,
    *,
    consider_attachments: bool,
    now: datetime,
) -> volumes.VolumeWait:
    """Return the volumes to wait for; none on a Node that is gone or unreachable. Raises VolumeError, DrainError or ApiError."""
    target = await client.find(Node, ObjectKey("", node_name))
    if target is None or node.is_unreachable(target) or not node.is_of(target, machine):
        return volumes.VolumeWait()
    attached = volumes.attached_volumes(target, await client.live.list(VolumeAttachment) if consider_attachments else ())
    if attached.empty:
        return volumes.VolumeWait()
    ignored = drain.skipped_claims(await judge_pods(management, client, cluster, machine, target, now))
    return volumes.volume_wait(attached, await client.live.list(PersistentVolume), ignored)


async def delete_node(workload: WorkloadClusters, clock: Clock, cluster: ObjectKey, machine: Machine, node_name: str) -> ApiError | None:
    """Delete the Machine's Node with retries; return the last error, or None when it is gone."""
    last: ApiError | None = None
    key = ObjectKey("", node_name)
    for attempt in range(NODE_DELETION_TRIES):
        if attempt:
            await clock.sleep(NODE_DELETION_PAUSE.total_seconds())
        try:
            client = await workload.client(cluster)
            found = await client.find(Node, key)
            if found is not None and not node.is_of(found, machine):
                return None
            await client.delete(Node, key, uid=found.metadata.uid if found else "")
            return None
        except NotFound:
            return None
        except ApiError as error:
            last = error
    return last
