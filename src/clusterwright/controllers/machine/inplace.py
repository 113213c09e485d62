"""In-place updates of a Machine: the next step. Pure; the call of the extension is in the reconciler.

The owner marks the Machine, its infrastructure machine and its bootstrap config, and makes the hook `UpdateMachine` pending;
then an extension updates the host, and the marks are taken away again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import PENDING_HOOKS_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION
from clusterwright.controllers.kit.lookup import Found, Missing, NotReferenced
from clusterwright.controllers.machine.guards import infra_found, node_ref
from clusterwright.controllers.machine.snapshot import MachineSnapshot, Stage
from clusterwright.controllers.owned_machines import UPDATE_MACHINE_HOOK, is_marked_for_update, pending_hooks
from clusterwright.controllers.update_patches import reduced
from clusterwright.runtime import models
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard
from clusterwright.topology.answers import Answer
from clusterwright.topology.hooks import as_annotation

INFRA_GONE = Stage("InPlaceUpdateFailed", "In-place update not possible: InfraMachine not found")
HOOK_FAILED = Stage("InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


def in_progress(answer: Answer) -> Stage:
    """Return the stage during the extension's work."""
    return Stage("InPlaceUpdating", f"In-place update in progress: {answer.message}" if answer.message else "In-place update in progress")


@guard("gate InPlaceUpdates is on")
def gate_on(s: MachineSnapshot) -> bool:
    return s.features.get("InPlaceUpdates", False)


@guard("the Machine is marked")
def marked(s: MachineSnapshot) -> bool:
    return is_marked_for_update(s.machine)


@guard("hook UpdateMachine is pending")
def hook_pending(s: MachineSnapshot) -> bool:
    return UPDATE_MACHINE_HOOK in pending_hooks(s.machine)


@guard("the Machine is set up")
def set_up(s: MachineSnapshot) -> bool:
    return s.provisioned and s.data_secret_created and node_ref(s)


@guard("infrastructure machine and bootstrap config, if there is one, are marked, too")
def all_marked(s: MachineSnapshot) -> bool:
    return _is_marked(s.infrastructure) and (isinstance(s.bootstrap, NotReferenced | Missing) or _is_marked(s.bootstrap))


def _is_marked(lookup: object) -> bool:
    return isinstance(lookup, Found) and UPDATE_IN_PROGRESS_ANNOTATION in lookup.object.metadata.annotations


class Update(Enum):
    """The next step."""

    CLEAN_UP = "take the marks away"
    FAIL = "end the pass in an error: nothing can be updated"
    CALL = "let the extension work"


# fmt: off
IN_PLACE_UPDATE: Table[MachineSnapshot] = Table(
    "InPlaceUpdate",
    Row("gate-off",       ~gate_on,                KEEP),
    Row("orphaned",       ~marked & hook_pending,  KEEP, act=Update.CLEAN_UP),
    Row("none",           ~marked,                 KEEP),
    Row("not-triggered",  ~hook_pending,           KEEP),
    Row("not-set-up",     ~set_up,                 KEEP),
    Row("infra-missing",  ~infra_found,            KEEP, act=Update.FAIL),
    Row("not-all-marked", ~all_marked,             KEEP),
    Row("update",         OTHERWISE,               KEEP, act=Update.CALL),
    assuming=[infra_found | ~all_marked],
)
# fmt: on


def request(machine: Machine, seen: MachineSnapshot) -> Json:
    """Return the request to the extension: the changed objects as stored, and the Machine as the pass leaves it."""
    objects = {"machine": models.to_json(machine)}
    for part, lookup in (("infrastructureMachine", seen.infrastructure), ("bootstrapConfig", seen.bootstrap)):
        if isinstance(lookup, Found):
            objects[part] = dict(lookup.object.json)
    return {"desired": {part: reduced(obj) for part, obj in objects.items()}}


def without_mark(machine: Machine) -> Machine:
    """Return the Machine without the update mark, so that the update is not requested again."""
    return _annotated(machine, {k: v for k, v in machine.metadata.annotations.items() if k != UPDATE_IN_PROGRESS_ANNOTATION})


def without_hook(machine: Machine) -> Machine:
    """Return the Machine without the pending hook: no cleanup is left."""
    annotations = {k: v for k, v in machine.metadata.annotations.items() if k != PENDING_HOOKS_ANNOTATION}
    left = as_annotation(hook for hook in pending_hooks(machine) if hook != UPDATE_MACHINE_HOOK)
    return _annotated(machine, annotations if left is None else {**annotations, PENDING_HOOKS_ANNOTATION: left})


def _annotated(machine: Machine, annotations: Mapping[str, str]) -> Machine:
    return replace(machine, metadata=replace(machine.metadata, annotations=annotations))
