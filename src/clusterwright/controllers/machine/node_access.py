"""Decide whether the deletion of a Machine may touch its Node, what blocks it, and its time limits. Pure.

`NODE_HANDLING` decides whether the Node is touched at all: never if no API server would be left. The order of the steps is in
`node_shutdown`, for Pods and volumes, and in `host_deletion`, for the host and its templates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from clusterwright.api.core import Machine
from clusterwright.api.wellknown import (
    EXCLUDE_NODE_DRAINING_ANNOTATION,
    EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH_ANNOTATION,
    PRE_DRAIN_HOOK_PREFIX,
    PRE_TERMINATE_HOOK_PREFIX,
)
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced, Unreadable
from clusterwright.controllers.machine.snapshot import Stage
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard, message

STARTED = Stage("Deleting", "Deletion started")
INTERNAL_ERROR = Stage("InternalError", CHECK_LOGS)

NODE_DELETION_TRIES = 6
NODE_DELETION_PAUSE = timedelta(seconds=2)
"""A failed deletion of a Node is retried within the pass: this many times, with this pause between."""


def pre_drain_hooks(machine: Machine) -> tuple[str, ...]:
    """Return the annotations that block the drain, sorted."""
    return _hooks(machine, PRE_DRAIN_HOOK_PREFIX)


def pre_terminate_hooks(machine: Machine) -> tuple[str, ...]:
    """Return the annotations that block the termination of the machine, sorted."""
    return _hooks(machine, PRE_TERMINATE_HOOK_PREFIX)


def _hooks(machine: Machine, prefix: str) -> tuple[str, ...]:
    return tuple(sorted(key for key in machine.metadata.annotations if key.startswith(prefix)))


# ------------------------------------------------------------------------------------------------ whether and how long


def drain_is_allowed(machine: Machine, host: Lookup, now: datetime) -> bool:
    """Return whether to drain the Node: unless it is excluded, its time is over, or a later step has begun."""
    limit = machine.spec.deletion.node_drain_timeout_seconds if machine.spec.deletion else None
    started = machine.status.deletion.node_drain_start_time if machine.status.deletion else None
    return (
        not _is_past_the_node(machine, host)
        and EXCLUDE_NODE_DRAINING_ANNOTATION not in machine.metadata.annotations
        and not is_over(started, limit, now)
    )


def volume_wait_is_allowed(machine: Machine, host: Lookup, now: datetime) -> bool:
    """Return whether to wait for volumes to detach, under the same conditions."""
    limit = machine.spec.deletion.node_volume_detach_timeout_seconds if machine.spec.deletion else None
    started = machine.status.deletion.wait_for_node_volume_detach_start_time if machine.status.deletion else None
    return (
        not _is_past_the_node(machine, host)
        and EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH_ANNOTATION not in machine.metadata.annotations
        and not is_over(started, limit, now)
    )


def is_over(started: datetime | None, limit_seconds: int | None, now: datetime) -> bool:
    """Return whether a wait has exceeded its limit; 0 or None means no limit, and the clock runs from the recorded start."""
    return started is not None and bool(limit_seconds) and now - started >= timedelta(seconds=limit_seconds or 0)


def node_may_stay(machine: Machine, now: datetime) -> bool:
    """Return whether to give up deleting the Node: when its time limit, counted from the deletion of the Machine, is over."""
    limit = machine.spec.deletion.node_deletion_timeout_seconds if machine.spec.deletion else None
    deleted = machine.metadata.deletion_timestamp
    return bool(limit) and deleted is not None and now >= deleted + timedelta(seconds=limit or 0)


def _is_past_the_node(machine: Machine, host: Lookup) -> bool:
    """Return whether a step after the drain has begun, so that evictions and detaching may never finish.

    Owners of pre-terminate hooks remove the Machine from the control plane: its API server may have stopped already. The kubelet stops with
    an infrastructure machine that is being deleted or gone. One that cannot be read is looked at again before anything is done, unless
    there are pre-terminate hooks: to wait for them would end the drain for good.
    """
    if machine.status.deletion is not None and machine.status.deletion.wait_for_pre_terminate_hook_start_time is not None:
        return True
    if isinstance(host, Unreadable):
        return not pre_terminate_hooks(machine)
    return isinstance(host, (Missing, NotReferenced)) or (isinstance(host, Found) and host.object.metadata.deletion_timestamp is not None)


# -------------------------------------------------------------------------------------------------------- node handling


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlingSnapshot:
    """The facts that decide whether the Node of a deleted Machine may be touched.

    `control_planes_left` counts control-plane Machines that stay; it is an error if they could not be listed.
    """

    cluster_deleting: bool = False
    node_known: bool = True
    control_plane: Lookup = field(default_factory=NotReferenced)
    control_planes_left: int | Exception = 1


@guard("the Cluster is being deleted")
def cluster_deleting(s: HandlingSnapshot) -> bool:
    return s.cluster_deleting


@guard("the Node is known")
def node_known(s: HandlingSnapshot) -> bool:
    return s.node_known


@guard("the control plane object could not be read")
def control_plane_unreadable(s: HandlingSnapshot) -> bool:
    return isinstance(s.control_plane, Unreadable)


@guard("the control plane object is being deleted")
def control_plane_deleting(s: HandlingSnapshot) -> bool:
    return isinstance(s.control_plane, Found) and s.control_plane.object.metadata.deletion_timestamp is not None


@guard("the control plane is managed externally")
def externally_managed(s: HandlingSnapshot) -> bool:
    return isinstance(s.control_plane, Found) and s.control_plane.object.at("status", "externalManagedControlPlane") is True


@guard("Machines could be listed")
def machines_listed(s: HandlingSnapshot) -> bool:
    return isinstance(s.control_planes_left, int)


@guard("a control-plane Machine stays")
def control_plane_stays(s: HandlingSnapshot) -> bool:
    return isinstance(s.control_planes_left, int) and s.control_planes_left > 0


@message("<the error>")
def control_plane_error(s: HandlingSnapshot) -> str:
    return s.control_plane.error if isinstance(s.control_plane, Unreadable) else ""


@message("<the error>")
def machines_error(s: HandlingSnapshot) -> str:
    return str(s.control_planes_left)


class Access(Enum):
    """Whether the Node may be touched."""

    ALLOWED = "drain and delete the Node"
    DENIED = "leave the Node alone"


# fmt: off
NODE_HANDLING: Table[HandlingSnapshot] = Table(
    "NodeHandling",
    Row("cluster-deleting",         cluster_deleting, KEEP, act=Access.DENIED),
    Row("no-node",                  ~node_known, KEEP, act=Access.DENIED),
    Row("control-plane-unreadable", control_plane_unreadable, KEEP, error=control_plane_error),
    Row("control-plane-deleting",   control_plane_deleting, KEEP, act=Access.DENIED),
    Row("externally-managed",       externally_managed, KEEP, act=Access.ALLOWED),
    Row("machines-unlisted",        ~machines_listed,         KEEP, error=machines_error),
    Row("last-control-plane",       ~control_plane_stays, KEEP, act=Access.DENIED),
    Row("allowed",                  OTHERWISE, KEEP, act=Access.ALLOWED),
    assuming=[
        machines_listed | ~control_plane_stays,
        ~control_plane_unreadable | ~(control_plane_deleting | externally_managed),
    ],
    about="Whether the Node of a Machine that is deleted is drained and removed: never where no API server would be left to ask.",
)
# fmt: on


# ------------------------------------------------------------------------------------------------------- what was tried


@dataclass(frozen=True, slots=True)
class Untried:
    """The step was not tried in this pass."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The step failed."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done."""
