"""The counters of a MachineSet. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.kubernetes import Node
from clusterwright.api.selectors import InvalidSelector, selector_text
from clusterwright.conditions import is_true
from clusterwright.controllers import version_counts
from clusterwright.controllers.machineset.snapshot import MachineSetSnapshot
from clusterwright.controllers.owned_machines import is_updating

COUNTERS_WAIT: Final = timedelta(seconds=15)
"""The requeue in case a watch misses an event: a Node may become ready before its Machine reports it."""


@dataclass(frozen=True, slots=True)
class V1Beta1Counters:
    """The deprecated counters: of Nodes, and of labels."""

    fully_labeled: int = 0
    ready: int = 0
    available: int = 0


def counted(snapshot: MachineSetSnapshot) -> MachineSet:
    """Return the MachineSet with its counters; unchanged if its Machines could not be listed."""
    machine_set, machines = snapshot.object, snapshot.machines
    try:
        selector = selector_text(machine_set.spec.selector)
    except InvalidSelector:
        selector = machine_set.status.selector
    if machines is None:
        return replace(machine_set, status=replace(machine_set.status, selector=selector))
    settled = [m for m in machines if not is_updating(m)]
    return replace(
        machine_set,
        status=replace(
            machine_set.status,
            selector=selector,
            replicas=len(machines),
            ready_replicas=_having("Ready", settled),
            available_replicas=_having("Available", settled),
            up_to_date_replicas=_having("UpToDate", settled),
            versions=version_counts.of_machines(machines),
        ),
    )


def _having(type: str, machines: list[Machine]) -> int:
    return sum(is_true(m.status.conditions, type) for m in machines)


def v1beta1_counters(snapshot: MachineSetSnapshot) -> V1Beta1Counters:
    """Return the deprecated counters; an unreadable Node does not count."""
    template = snapshot.object.spec.template
    labels = dict(template.metadata.labels) if template.metadata else {}
    wait = timedelta(seconds=template.spec.min_ready_seconds or 0)
    labeled = ready = available = 0
    for machine in snapshot.machines or ():
        labeled += labels.items() <= dict(machine.metadata.labels).items()
        node = _node_of(machine, snapshot)
        since = _ready_since(node) if node is not None else None
        if since is not None:
            ready += 1
            available += not wait or since + wait <= snapshot.now
    return V1Beta1Counters(labeled, ready, available)


def _node_of(machine: Machine, snapshot: MachineSetSnapshot) -> Node | None:
    name = machine.status.node_ref.name if machine.status.node_ref else ""
    return (snapshot.nodes or {}).get(name) if name else None


_EVER: Final = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


def _ready_since(node: Node) -> datetime | None:
    for condition in node.status.conditions:
        if condition.type == "Ready":
            return (condition.last_transition_time or _EVER) if condition.status == "True" else None
    return None


def look_again(machine_set: MachineSet) -> timedelta | None:
    """Return when counters may change without an event of a Machine."""
    status, replicas = machine_set.status, machine_set.spec.replicas or 0
    wait = machine_set.spec.template.spec.min_ready_seconds or 0
    if wait > 0 and (status.ready_replicas or 0) == replicas and (status.available_replicas or 0) != replicas:
        return timedelta(seconds=wait)
    return COUNTERS_WAIT if (status.ready_replicas or 0) != replicas else None
