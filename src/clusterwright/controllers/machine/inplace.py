"""In-place updates of a Machine: what to do next. Pure; the call of the extension is in the reconciler.

The owner marks the Machine, its infrastructure machine and its bootstrap config, and makes the hook `UpdateMachine` pending;
then an extension updates the host, and the marks are taken away again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from msgspec.structs import replace

from clusterwright.api.core import Machine
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import PENDING_HOOKS_ANNOTATION, UPDATE_IN_PROGRESS_ANNOTATION
from clusterwright.controllers.kit.lookup import Found, NotReferenced
from clusterwright.controllers.machine.guards import UPDATE_MACHINE_HOOK, infra_found, node_ref
from clusterwright.controllers.machine.snapshot import MachineSnapshot, Stage
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard

INFRA_GONE = Stage("InPlaceUpdateFailed", "In-place update not possible: InfraMachine not found")
HOOK_FAILED = Stage("InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


@dataclass(frozen=True, slots=True)
class UpdateAnswer:
    """What an extension says: `retry_after` is set while the update goes on."""

    message: str = ""
    retry_after: timedelta | None = None


UpdateExtension = Callable[[Machine, Unstructured, Unstructured | None], Awaitable[UpdateAnswer]]
"""An extension that handles UpdateMachine, given the Machine, its infrastructure machine and its bootstrap config."""


def in_progress(answer: UpdateAnswer) -> Stage:
    """The stage in which the extension works."""
    return Stage("InPlaceUpdating", f"In-place update in progress: {answer.message}" if answer.message else "In-place update in progress")


@guard("gate InPlaceUpdates is on")
def gate_on(s: MachineSnapshot) -> bool:
    return s.features.get("InPlaceUpdates", False)


@guard("the Machine is marked")
def marked(s: MachineSnapshot) -> bool:
    return UPDATE_IN_PROGRESS_ANNOTATION in s.machine.metadata.annotations


@guard("hook UpdateMachine is pending")
def hook_pending(s: MachineSnapshot) -> bool:
    return UPDATE_MACHINE_HOOK in s.machine.metadata.annotations.get(PENDING_HOOKS_ANNOTATION, "").split(",")


@guard("the Machine is set up")
def set_up(s: MachineSnapshot) -> bool:
    return s.provisioned and s.data_secret_created and node_ref(s)


@guard("infrastructure machine and bootstrap config are marked, too")
def all_marked(s: MachineSnapshot) -> bool:
    return _is_marked(s.infrastructure) and (isinstance(s.bootstrap, NotReferenced) or _is_marked(s.bootstrap))


def _is_marked(lookup: object) -> bool:
    return isinstance(lookup, Found) and UPDATE_IN_PROGRESS_ANNOTATION in lookup.object.metadata.annotations


class Update(Enum):
    """What comes next."""

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


def without_mark(machine: Machine) -> Machine:
    """The Machine without the mark and without the pending hook."""
    annotations = {k: v for k, v in machine.metadata.annotations.items() if k != UPDATE_IN_PROGRESS_ANNOTATION}
    hooks = [h for h in annotations.pop(PENDING_HOOKS_ANNOTATION, "").split(",") if h and h != UPDATE_MACHINE_HOOK]
    if hooks:
        annotations[PENDING_HOOKS_ANNOTATION] = ",".join(hooks)
    return replace(machine, metadata=replace(machine.metadata, annotations=annotations))
