"""The deprecated v1beta1 conditions of a Cluster as tables. Pure.

Decided after the others; `Ready` last, because it sums up two of them.
"""

from __future__ import annotations

from typing import Final

from clusterwright.conditions import v1beta1
from clusterwright.controllers.cluster.guards import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    Snapshot,
    already_initialized_v1beta1,
    asks,
    control_plane,
    control_plane_deleting,
    control_plane_found,
    control_plane_garbled,
    control_plane_missing,
    control_plane_not_ready,
    control_plane_ready,
    control_plane_unreadable,
    deleting,
    infrastructure,
    infrastructure_found,
    infrastructure_garbled,
    infrastructure_missing,
    infrastructure_ready,
    infrastructure_unreadable,
    no_control_plane_ref,
    no_infrastructure_ref,
)
from clusterwright.controllers.cluster.plan import PAST_CONTROL_PLANE, Deletion
from clusterwright.controllers.cluster.providers import Found, Lookup
from clusterwright.controllers.cluster.snapshot import ClusterDone
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, Transition, computed, false, guard, true


@guard("Machines could be listed")
def machines_listed(c: Snapshot) -> bool:
    return c.control_plane_machines is not None


@guard("any active machine has nodeRef")
def any_active_node(c: Snapshot) -> bool:
    machines = [m for m in c.control_plane_machines or () if m.metadata.deletion_timestamp is None]
    return any(m.status.node_ref and m.status.node_ref.name for m in machines)


def _mirrored_v1beta1(lookup: Lookup) -> Outcome:
    assert isinstance(lookup, Found)
    found = v1beta1.get(lookup.v1beta1_conditions, "Ready")
    assert found is not None
    return Outcome(found.status, found.reason, found.message, found.severity, found.last_transition_time)


@guard("reconcileDelete found no infrastructure left")
def past_infrastructure(c: ClusterDone) -> bool:
    return c.deletion is not None and c.deletion.act is Deletion.REMOVE_FINALIZER


@guard("reconcileDelete found no control plane left")
def past_control_plane(c: ClusterDone) -> bool:
    return c.deletion is not None and c.deletion.act in PAST_CONTROL_PLANE


infrastructure_reports_v1beta1_ready = asks(
    "infrastructure reports v1beta1 Ready", infrastructure, lambda o: v1beta1.get(o.v1beta1_conditions, "Ready") is not None
)
control_plane_reports_v1beta1_ready = asks(
    "controlPlane reports v1beta1 Ready", control_plane, lambda o: v1beta1.get(o.v1beta1_conditions, "Ready") is not None
)
mirror_infrastructure_v1beta1: Transition[Snapshot] = computed(
    lambda c: _mirrored_v1beta1(c.infrastructure), status="<status>", reason="<reason>", message="<message>"
)
mirror_control_plane_v1beta1: Transition[Snapshot] = computed(
    lambda c: _mirrored_v1beta1(c.control_plane), status="<status>", reason="<reason>", message="<message>"
)

# fmt: off
V1BETA1_INFRASTRUCTURE_READY: Table[ClusterDone] = Table(
    "InfrastructureReady (v1beta1)",
    Row("no-ref-deleting",       no_infrastructure_ref & deleting,                 KEEP),
    Row("no-ref",                no_infrastructure_ref & ~deleting,                true("")),
    Row("deleted",               infrastructure_missing & past_infrastructure,     false("Deleted", severity="Info")),
    Row("not-read",              infrastructure_missing | infrastructure_unreadable | infrastructure_garbled, KEEP),
    Row("mirrored",              infrastructure_reports_v1beta1_ready,             mirror_infrastructure_v1beta1),
    Row("deleting",              infrastructure_found & deleting,                  false("Deleting", severity="Info")),
    Row("provisioned",           infrastructure_ready,                             true("")),
    Row("not-provisioned",       infrastructure_found & ~infrastructure_ready,     false("WaitingForInfrastructure", severity="Info")),
    v1beta1="InfrastructureReady",
    about="Deprecated. Mirrors `Ready` of the infrastructure object.",
    exactly_one=[INFRASTRUCTURE],
    assuming=[~infrastructure_reports_v1beta1_ready | infrastructure_found, ~infrastructure_ready | infrastructure_found, ~infrastructure_garbled | infrastructure_found,
              ~past_infrastructure | deleting],
)

V1BETA1_CONTROL_PLANE_READY: Table[ClusterDone] = Table(
    "ControlPlaneReady (v1beta1)",
    Row("no-ref",                no_control_plane_ref,                             KEEP),
    Row("deleted",               control_plane_missing & past_control_plane,       false("Deleted", severity="Info")),
    Row("missing",               control_plane_missing & ~deleting,                false("WaitingForControlPlane", severity="Info")),
    Row("not-read",              control_plane_missing | control_plane_unreadable | control_plane_garbled, KEEP),
    Row("mirrored",              control_plane_reports_v1beta1_ready,              mirror_control_plane_v1beta1),
    Row("deleting",              control_plane_found & deleting,                   false("Deleting", severity="Info")),
    Row("initialized",           control_plane_ready,                              true("")),
    Row("not-initialized",       control_plane_found & ~control_plane_ready,       false("WaitingForControlPlane", severity="Info")),
    v1beta1="ControlPlaneReady",
    about="Deprecated. Mirrors `Ready` of the control-plane object.",
    exactly_one=[CONTROL_PLANE],
    assuming=[~control_plane_reports_v1beta1_ready | control_plane_found, ~control_plane_ready | control_plane_found, ~control_plane_garbled | control_plane_found,
              ~past_control_plane | deleting],
)

V1BETA1_CONTROL_PLANE_INITIALIZED: Table[Snapshot] = Table(
    "ControlPlaneInitialized (v1beta1)",
    Row("already-initialized",   already_initialized_v1beta1,                      KEEP),
    Row("cp-initialized",        control_plane_ready & ~control_plane_deleting,    true("")),
    Row("cp-uninitialized",      control_plane_not_ready & ~control_plane_deleting, false("WaitingForControlPlaneProviderInitialized", "Waiting for control plane provider to indicate the control plane has been initialized", "Info")),
    Row("not-told",              ~no_control_plane_ref | deleting | ~machines_listed, KEEP),
    Row("first-node-up",         no_control_plane_ref & any_active_node,           true("")),
    Row("no-node-yet",           no_control_plane_ref & ~any_active_node,          false("MissingNodeRef", "Waiting for the first control plane machine to have its status.nodeRef set", "Info")),
    v1beta1="ControlPlaneInitialized",
    about="Deprecated, and one-way too. Machines that are being deleted do not count here.",
    exactly_one=[CONTROL_PLANE],
    assuming=[~(control_plane_ready | control_plane_not_ready) | control_plane_found, ~(control_plane_ready & control_plane_not_ready)],
)
# fmt: on


def _ready_v1beta1(c: Snapshot) -> Outcome:
    found = v1beta1.summary("Cluster", c.metadata.name, c.v1beta1_conditions, types=["ControlPlaneReady", "InfrastructureReady"])
    assert found is not None
    return Outcome(found.status, found.reason, found.message, found.severity)


@guard("neither v1beta1 ControlPlaneReady nor InfrastructureReady is reported")
def nothing_to_summarize(c: Snapshot) -> bool:
    return not any(t.type in {"ControlPlaneReady", "InfrastructureReady"} for t in c.v1beta1_conditions)


# fmt: off
V1BETA1_READY: Table[Snapshot] = Table(
    "Ready (v1beta1)",
    Row("nothing-reported",      nothing_to_summarize,                             KEEP),
    Row("summarized",            OTHERWISE,                                        computed(_ready_v1beta1, status="<status>", reason="<reason>", message="<message>")),
    v1beta1="Ready",
    about="Deprecated. Summary of v1beta1 ControlPlaneReady and InfrastructureReady.",
)
# fmt: on

V1BETA1_TABLES: Final[tuple[Table[ClusterDone], ...]] = (
    V1BETA1_INFRASTRUCTURE_READY,
    V1BETA1_CONTROL_PLANE_READY,
    V1BETA1_CONTROL_PLANE_INITIALIZED,
    V1BETA1_READY,
)
OWNED_V1BETA1: Final = ("Ready", "ControlPlaneReady", "InfrastructureReady")
