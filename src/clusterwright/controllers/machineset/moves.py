"""Machines that move to another MachineSet for an in-place update: which ones, and the patch. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from clusterwright.api.codec import to_json
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.meta import Json, OwnerReference
from clusterwright.api.wellknown import (
    ACKNOWLEDGED_MOVE_ANNOTATION,
    MACHINE_TEMPLATE_HASH_LABEL,
    PENDING_ACKNOWLEDGE_MOVE_ANNOTATION,
    PENDING_HOOKS_ANNOTATION,
    RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION,
    UPDATE_IN_PROGRESS_ANNOTATION,
)
from clusterwright.conditions import get
from clusterwright.controllers.owned_machines import (
    UPDATE_MACHINE_HOOK,
    awaits_acknowledgement,
    is_deleting,
    is_marked_for_update,
    is_to_be_remediated,
    is_updating,
    pending_hooks,
)


class Fate(Enum):
    """The action on a Machine of a MachineSet that gives Machines away."""

    DELETED = "deleted: it would have to be replaced anyway"
    GONE = "goes already"
    STAYS = "stays: it cannot be moved now"
    MOVED = "moved"


_COUNTS: Final = {Fate.DELETED, Fate.GONE, Fate.MOVED}


def fate(machine: Machine) -> Fate:
    """Return what to do with the Machine."""
    if is_deleting(machine):
        return Fate.GONE
    if is_to_be_remediated(machine):
        return Fate.DELETED
    has_node = machine.status.node_ref is not None and bool(machine.status.node_ref.name)
    return Fate.STAYS if is_updating(machine) or not has_node else Fate.MOVED


def fates(ordered: Iterable[Machine], count: int) -> list[tuple[Machine, Fate]]:
    """Return the Machines to handle, in deletion order, until `count` of them have moved."""
    dealt: list[tuple[Machine, Fate]] = []
    left = count
    for machine in ordered:
        if left <= 0:
            break
        found = fate(machine)
        dealt.append((machine, found))
        left -= found in _COUNTS
    return dealt


GIVEN_UP_AFTER: Final = timedelta(minutes=10)
"""How long a Machine may wait for an in-place update while the feature gate is off."""


def abandoned(machines: Collection[Machine], now: datetime) -> tuple[Machine | None, timedelta | None]:
    """Return the Machine that has waited too long for its update with the feature gate off, or the requeue; one at a time.

    While one is being deleted, return no other.
    """
    since = {m.metadata.name: _updating_since(m) for m in machines if is_updating(m)}
    waiting = sorted((t, name) for name, t in since.items() if t is not None)
    if not waiting or any(is_deleting(m) for m in machines):
        return None, None
    left = waiting[0][0] + GIVEN_UP_AFTER - now
    if left > timedelta():
        return None, left
    return next(m for m in machines if m.metadata.name == waiting[0][1]), None


def _updating_since(machine: Machine) -> datetime | None:
    condition = get(machine.status.conditions, "Updating")
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def names_in(annotation: str) -> set[str]:
    """Return the names in a comma-separated list."""
    return {name for part in annotation.split(",") if (name := part.strip())}


def accepts_from(target: MachineSet, name: str) -> bool:
    """Return whether the target accepts Machines from this MachineSet."""
    return name in names_in(target.metadata.annotations.get(RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION, ""))


def move_patch(machine: Machine, owner: MachineSet, target: MachineSet) -> Json:
    """Return the patch that moves the Machine to the target and marks it; with resourceVersion, because it replaces a list."""
    reference = OwnerReference(
        api_version=target.api_version,
        kind=target.kind,
        name=target.metadata.name,
        uid=target.metadata.uid,
        controller=True,
    )
    kept = [r for r in machine.metadata.owner_references if r.uid != owner.metadata.uid]
    return {
        "metadata": {
            "resourceVersion": machine.metadata.resource_version,
            "uid": machine.metadata.uid,
            "ownerReferences": [to_json(r) for r in (*kept, reference)],
            "labels": {MACHINE_TEMPLATE_HASH_LABEL: target.metadata.labels[MACHINE_TEMPLATE_HASH_LABEL]},
            "annotations": {UPDATE_IN_PROGRESS_ANNOTATION: "", PENDING_ACKNOWLEDGE_MOVE_ANNOTATION: ""},
        }
    }


def is_to_be_triggered(machine: Machine, machine_set: MachineSet) -> bool:
    """Return whether the in-place update of a received Machine may start: it was acknowledged, or no MachineSet moves Machines now."""
    if not is_marked_for_update(machine) or UPDATE_MACHINE_HOOK in pending_hooks(machine):
        return False
    annotations = machine_set.metadata.annotations
    if not awaits_acknowledgement(machine) or not annotations.get(RECEIVE_MACHINES_FROM_MACHINE_SETS_ANNOTATION):
        return True
    return machine.metadata.name in names_in(annotations.get(ACKNOWLEDGED_MOVE_ANNOTATION, ""))


def trigger_patch(machine: Machine) -> Json:
    """Return the last patch of the start: the hook is pending, and the Machine counts."""
    hooks = ",".join(sorted({*pending_hooks(machine), UPDATE_MACHINE_HOOK}))
    annotations: Json = {PENDING_HOOKS_ANNOTATION: hooks}
    if awaits_acknowledgement(machine):
        annotations[PENDING_ACKNOWLEDGE_MOVE_ANNOTATION] = None
    return {"metadata": {"annotations": annotations, "uid": machine.metadata.uid}}
