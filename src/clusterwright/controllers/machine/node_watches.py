"""Map a change in a workload cluster to Machines, and limit how often a drain is checked.

State is kept in memory only: after a restart every Machine is reconciled once anyway.
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
    """The facts of a Machine's Node from its last pass."""

    cluster: ObjectKey
    node_name: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class Rest:
    """The wait of a Machine in deletion: its stage, its end, and the facts that it saw; a change of those ends it."""

    stage: Shutdown
    since: datetime
    until: datetime
    seen: Any


SHORTEST_REST = timedelta(seconds=1)
"""The shortest interval between two checks of a drain, however much happens on a Node."""


class NodeWatches:
    """Finds Machines for Nodes, Pods and VolumeAttachments, and limits requests of drains to a workload cluster."""

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
        """Remember which Node a Machine has or awaits. Call this before reading Nodes, so that no change is missed."""
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
        """Forget a Machine that is gone."""
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
        """Return the handler for changes of Nodes in a cluster."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Node) and belongs_to(obj, cluster):
                for machine in self.machines_of(cluster, obj.metadata.name, obj.spec.provider_id):
                    self._enqueue(machine, f"Node {obj.metadata.name} changed")

        return notify

    def pod_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return the handler for changes of Pods in a cluster: a Pod that leaves its Node, or finishes, advances a drain."""

        def notify(obj: Object) -> None:
            if isinstance(obj, Pod) and obj.spec.node_name and _is_leaving(obj):
                self._stir(cluster, obj.spec.node_name, f"Pod {obj.key} changed")

        return notify

    def attachment_changed(self, cluster: ObjectKey) -> Callable[[Object], None]:
        """Return the handler for changes of VolumeAttachments in a cluster."""

        def notify(obj: Object) -> None:
            if isinstance(obj, VolumeAttachment):
                self._stir(cluster, obj.spec.node_name, f"VolumeAttachment {obj.key} changed")

        return notify

    def machines_of(self, cluster: ObjectKey, node_name: str, provider_id: str) -> tuple[ObjectKey, ...]:
        """Return the Machine of a Node: by name, else by providerID; none if that is ambiguous."""
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
        """Record that the Machine's deletion needs a watch: the Pods of a cluster are cached only then."""
        self._watched.setdefault((cluster, watcher, kind), set()).add(machine)

    def end_watches(self, machine: ObjectKey) -> None:
        """Record that the Machine needs no such watch any more; end watches that no Machine needs."""
        for watch in [w for w, machines in self._watched.items() if machine in machines]:
            self._watched[watch].discard(machine)
            if not self._watched[watch]:
                del self._watched[watch]
                self._unwatch(*watch)

    # ------------------------------------------------------------------------------------------------------- rests

    def begin_look(self, machine: ObjectKey) -> None:
        """Record the start of a check of the Machine's Node, which may miss later changes."""
        self._stirred.discard(machine)

    def rest(self, machine: ObjectKey, stage: Shutdown, now: datetime, usual: timedelta, seen: Any) -> timedelta:
        """Return how long the Machine can wait: the usual time, or a short one if something happened during the check."""
        length = SHORTEST_REST if machine in self._stirred else usual
        self._rests[machine] = Rest(stage, now, now + length, seen)
        return length

    def resting(self, machine: ObjectKey, now: datetime, seen: Any) -> Rest | None:
        """Return the Machine's wait, if it lasts; a relevant change shortens it."""
        rest = self._rests.get(machine)
        if rest is not None and rest.seen != seen:
            rest = replace(rest, until=min(rest.until, rest.since + SHORTEST_REST))
        if rest is None or now >= rest.until:
            self._rests.pop(machine, None)
            return None
        return rest


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in {"Succeeded", "Failed"}
