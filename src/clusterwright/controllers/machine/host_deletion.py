"""The order in which the parts of a deleted Machine are removed: hooks, infrastructure, bootstrap config, Node, finalizer. Pure.

The table is asked again and again within a pass: a row that names an action has it done, and its outcome is in the next snapshot;
any other row ends the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from clusterwright.api.core import Machine
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced
from clusterwright.controllers.machine.node_access import Done, Failed, Untried, node_may_stay, pre_terminate_hooks
from clusterwright.tables import KEEP, OTHERWISE, Guard, Row, Table, Transition, guard, message, true


class Removal(Enum):
    """The next action. After a deletion the table is evaluated again with its outcome."""

    AWAIT_HOOKS = "wait until the pre-terminate hooks are gone"
    DELETE_INFRASTRUCTURE = "delete the infrastructure machine"
    DELETE_BOOTSTRAP = "delete the bootstrap config"
    DELETE_NODE = "delete the Node"
    AWAIT_OBJECT = "wait until the object is gone"
    TRY_AGAIN = "end the pass in the error"
    REMOVE_FINALIZER = "remove the finalizer"


class Remains(Enum):
    """The state of a provider's object during deletion."""

    NEVER = "is not referred to"
    ALIVE = "exists"
    GOING = "is being deleted, or cannot be seen"
    REFUSED = "refuses to be deleted"
    GONE = "is gone"


def remains(lookup: Lookup) -> Remains:
    """Return the state of an object from its lookup; an unreadable one is waited for."""
    match lookup:
        case NotReferenced():
            return Remains.NEVER
        case Missing():
            return Remains.GONE
        case Found(obj) if obj.metadata.deletion_timestamp is None:
            return Remains.ALIVE
        case _:
            return Remains.GOING


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """The progress of removing a machine."""

    machine: Machine
    now: datetime
    handles_node: bool
    infrastructure: Remains
    bootstrap: Remains
    node: Untried | Failed | Done = field(default_factory=Untried)


@guard("there are pre-terminate hooks")
def pre_terminate_hooked(s: HostSnapshot) -> bool:
    return bool(pre_terminate_hooks(s.machine))


def _infrastructure(state: Remains) -> Guard[HostSnapshot]:
    return Guard(f"the infrastructure machine {state.value}", lambda s: s.infrastructure is state)


def _bootstrap(state: Remains) -> Guard[HostSnapshot]:
    return Guard(f"the bootstrap config {state.value}", lambda s: s.bootstrap is state)


INFRASTRUCTURE = {state: _infrastructure(state) for state in Remains}
BOOTSTRAP = {state: _bootstrap(state) for state in Remains}


@guard("the Node may be touched")
def handles_node(s: HostSnapshot) -> bool:
    return s.handles_node


@guard("the Node was not deleted in this pass")
def node_untried(s: HostSnapshot) -> bool:
    return isinstance(s.node, Untried)


@guard("the Node could not be deleted")
def node_failed(s: HostSnapshot) -> bool:
    return isinstance(s.node, Failed)


@guard("the Node is deleted")
def node_deleted(s: HostSnapshot) -> bool:
    return isinstance(s.node, Done)


@guard("the time for that is over")
def node_time_over(s: HostSnapshot) -> bool:
    return node_may_stay(s.machine, s.now)


@message("Waiting for pre-terminate hooks to succeed (hooks: <names>)")
def awaiting_pre_terminate(s: HostSnapshot) -> str:
    return f"Waiting for pre-terminate hooks to succeed (hooks: {','.join(pre_terminate_hooks(s.machine))})"


def _infrastructure_kind(s: HostSnapshot) -> str:
    return s.machine.spec.infrastructure_ref.kind


def _bootstrap_kind(s: HostSnapshot) -> str:
    return s.machine.spec.bootstrap.config_ref.kind if s.machine.spec.bootstrap.config_ref else ""


def _about(kind: Callable[[HostSnapshot], str], form: str) -> Callable[[HostSnapshot], str]:
    return lambda s: form.replace("<Kind>", kind(s))


_WAITING, _UNDELETABLE = "Waiting for <Kind> to be deleted", "Failed to delete <Kind>, please check controller logs for errors"
infrastructure_awaited = message(_WAITING)(_about(_infrastructure_kind, _WAITING))
infrastructure_undeletable = message(_UNDELETABLE)(_about(_infrastructure_kind, _UNDELETABLE))
bootstrap_awaited = message(_WAITING)(_about(_bootstrap_kind, _WAITING))
bootstrap_undeletable = message(_UNDELETABLE)(_about(_bootstrap_kind, _UNDELETABLE))


@message("<the error>")
def node_error(s: HostSnapshot) -> str:
    return (str(s.node.error) or type(s.node.error).__name__) if isinstance(s.node, Failed) else ""


NODE_ERROR = "Error deleting Node, please check controller logs for errors"
_COMPLETED: Transition[HostSnapshot] = true("DeletionCompleted", "Deletion completed")

# fmt: off
HOST_DELETION: Table[HostSnapshot] = Table(
    "HostDeletion",
    Row("pre-terminate-hooks",        pre_terminate_hooked,             true("WaitingForPreTerminateHook", awaiting_pre_terminate), act=Removal.AWAIT_HOOKS),
    Row("delete-infrastructure",      INFRASTRUCTURE[Remains.ALIVE],    KEEP, act=Removal.DELETE_INFRASTRUCTURE),
    Row("infrastructure-undeletable", INFRASTRUCTURE[Remains.REFUSED],  true("InternalError", infrastructure_undeletable), act=Removal.TRY_AGAIN),
    Row("infrastructure-remains",     INFRASTRUCTURE[Remains.GOING],    true("WaitingForInfrastructureDeletion", infrastructure_awaited), act=Removal.AWAIT_OBJECT),
    Row("delete-bootstrap",           BOOTSTRAP[Remains.ALIVE],         KEEP, act=Removal.DELETE_BOOTSTRAP),
    Row("bootstrap-undeletable",      BOOTSTRAP[Remains.REFUSED],       true("InternalError", bootstrap_undeletable), act=Removal.TRY_AGAIN),
    Row("bootstrap-remains",          BOOTSTRAP[Remains.GOING],         true("WaitingForBootstrapDeletion", bootstrap_awaited), act=Removal.AWAIT_OBJECT),
    Row("delete-node",                handles_node & node_untried,      KEEP, act=Removal.DELETE_NODE),
    Row("node-undeletable",           node_failed & ~node_time_over,    true("DeletingNode", NODE_ERROR), error=node_error, act=Removal.TRY_AGAIN),
    Row("completed",                  OTHERWISE,                        _COMPLETED, act=Removal.REMOVE_FINALIZER),
    exactly_one=[tuple(INFRASTRUCTURE.values()), tuple(BOOTSTRAP.values()), (node_untried, node_failed, node_deleted)],
    about="The order in which the parts of the machine are removed: first what runs on it, then its origins, the Node last.",
)
# fmt: on
