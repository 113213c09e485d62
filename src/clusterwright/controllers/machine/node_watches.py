"""Which Machine a change in a workload cluster concerns, and how long a Machine rests between two looks at a drain.

Held in memory only: after a restart everything is looked at once, which is as good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node, Pod, VolumeAttachment
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.controllers.machine.node import belongs_to
from clusterwright.controllers.machine.node_shutdown import Shutdown


@dataclass(frozen=True, slots=True)
class Known:
    """What a pass knew of a Machine's Node."""

    cluster: ObjectKey
    node_name: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class Rest:
    """At which stage of its deletion a Machine rests, until when, and what it saw: if that changes, there is something to do."""

    stage: Shutdown
    since: datetime
    until: datetime
    seen: Any


SHORTEST_REST = timedelta(seconds=1)
"""However much happens on a Node, a workload cluster is not asked more often about one drain."""


class NodeWatches:
    """Finds Machines for Nodes, Pods and VolumeAttachments, and keeps drains from asking a workload cluster too often."""

    def __init__(self, enqueue: Callable[[ObjectKey, str], None], unwatch: Callable[[ObjectKey, str, type[Object]], None]) -> None:
        self._enqueue = enqueue
        self._unwatch = unwatch
        self._watched: dict[tuple[ObjectKey, str, type[Object]], set[ObjectKey]] = {}
        self._known: dict[ObjectKey, Known] = {}
        self._by_name: dict[tuple[ObjectKey, str], set[ObjectKey]] = {}
        self._by_provider_id: dict[tuple[ObjectKey, str], set[ObjectKey]] = {}
        self._rests: dict[ObjectKey, Rest] = {}
        self._stirred: set[ObjectKey] = set()

    def learn(self, machine: Machine, cluster: ObjectKey) -> None:
        """Remember which Node a Machine has or awaits. To be called before Nodes are read, so that no change is missed."""
        name = machine.status.node_ref.name if machine.status.node_ref else ""
        known = Known(cluster, name, machine.spec.provider_id)
        if self._known.get(machine.key) == known:
            return
        self._unlink(machine.key)
        self._known[machine.key] = known
        if name:
            self._by_name.setdefault((cluster, name), set()).add(machine.key)
        if known.provider_id:
            self._by_provider_id.setdefault((cluster, known.provider_id), set()).add(machine.key)

    def forget(self, machine: ObjectKey) -> None:
        """The Machine is gone."""
        self.end_watches(machine)
        self._unlink(machine)
        self._rests.pop(machine, None)
        self._stirred.discard(machine)

    def _unlink(self, machine: ObjectKey) -> None:
        known = self._known.pop(machine, None)
        if known is None:
            return
        for index, value in ((self._by_name, known.node_name), (self._by_provider_id, known.provider_id)):
            machines = index.get((known.cluster, value))
            if machines is not None:
                machines.discard(machine)
                if not machines:
                    del index[known.cluster, value]

    # ---------------------------------------------------------------------------------------------------- changes

    def node_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return what to call for changes of Nodes of a cluster."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Node) and belongs_to(obj, cluster):
                for machine in self.machines_of(cluster, obj.metadata.name, obj.spec.provider_id):
                    self._enqueue(machine, f"Node {obj.metadata.name} changed")

        return notify

    def pod_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return what to call for changes of Pods of a cluster: one that leaves its Node, or has finished, moves a drain on."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Pod) and obj.spec.node_name and _is_leaving(obj):
                self._stir(cluster, obj.spec.node_name, f"Pod {obj.key} changed")

        return notify

    def attachment_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return what to call for changes of VolumeAttachments of a cluster."""

        def notify(obj: Object) -> None:
            if isinstance(obj, VolumeAttachment):
                self._stir(cluster, obj.spec.node_name, f"VolumeAttachment {obj.key} changed")

        return notify

    def machines_of(self, cluster: ObjectKey, node_name: str, provider_id: str) -> tuple[ObjectKey, ...]:
        """Return the Machine of a Node: by name, else by providerID; none where that is not exactly one."""
        found = self._by_name.get((cluster, node_name)) or (
            self._by_provider_id.get((cluster, provider_id), set()) if provider_id else set()
        )
        return tuple(found) if len(found) == 1 else ()

    def _stir(self, cluster: ObjectKey, node_name: str, reason: str) -> None:
        for machine in self._by_name.get((cluster, node_name), ()):
            self._stirred.add(machine)
            rest = self._rests.get(machine)
            if rest is not None:
                self._rests[machine] = replace(rest, until=min(rest.until, rest.since + SHORTEST_REST))
                self._enqueue(machine, reason)

    # -------------------------------------------------------------------------------- watches that a deletion needs

    def needs_watch(self, machine: ObjectKey, cluster: ObjectKey, watcher: str, kind: type[Object]) -> None:
        """The Machine's deletion goes by what is watched: all Pods of a cluster are not kept in memory without need."""
        self._watched.setdefault((cluster, watcher, kind), set()).add(machine)

    def end_watches(self, machine: ObjectKey) -> None:
        """The Machine needs no such watch any more; one that nobody needs is ended."""
        for watch in [w for w, machines in self._watched.items() if machine in machines]:
            self._watched[watch].discard(machine)
            if not self._watched[watch]:
                del self._watched[watch]
                self._unwatch(*watch)

    # ------------------------------------------------------------------------------------------------------- rests

    def begin_look(self, machine: ObjectKey) -> None:
        """A look at the Machine's Node begins: what happens from now on may be missed by it."""
        self._stirred.discard(machine)

    def rest(self, machine: ObjectKey, stage: Shutdown, now: datetime, usual: timedelta, seen: Any) -> timedelta:
        """How long there is nothing to do for the Machine's Node: as usual, or hardly at all if something happened during the look."""
        length = SHORTEST_REST if machine in self._stirred else usual
        self._rests[machine] = Rest(stage, now, now + length, seen)
        return length

    def resting(self, machine: ObjectKey, now: datetime, seen: Any) -> Rest | None:
        """Return the Machine's rest, if it lasts; what there is to see having changed makes it short."""
        rest = self._rests.get(machine)
        if rest is not None and rest.seen != seen:
            rest = replace(rest, until=min(rest.until, rest.since + SHORTEST_REST))
        if rest is None or now >= rest.until:
            self._rests.pop(machine, None)
            return None
        return rest


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in {"Succeeded", "Failed"}
