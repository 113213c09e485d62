"""The deprecated conditions of a control plane. Pure."""

from __future__ import annotations

from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.conditions import HealthFacts, nodes_unlisted
from clusterwright.controllers.kubeadmcontrolplane.guards import (
    Snapshot,
    deleting,
    deletion_failed,
    descendants_unlisted,
    enough,
    no_machines,
    not_too_many,
    workers_left,
)
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone
from clusterwright.tables import KEEP, OTHERWISE, Guard, Message, Row, Table, false, guard, message, true, unknown

READY_INPUTS = ("MachinesCreated", "MachinesSpecUpToDate", "Resized", "MachinesReady", "Available", "CertificatesAvailable")
OWNED_V1BETA1 = (*READY_INPUTS, "Ready", names.COMPONENTS_HEALTHY, names.ETCD_CLUSTER_HEALTHY)


@guard("all Machines are Ready")
def all_ready(c: Snapshot) -> bool:
    return all(m.is_true("Ready") for m in c.owned)


@message("Scaling up control plane to <d> replicas (actual <c>)")
def scaling_up(c: Snapshot) -> str:
    return f"Scaling up control plane to {c.desired} replicas (actual {len(c.owned)})"


@message("Scaling down control plane to <d> replicas (actual <c>)")
def scaling_down(c: Snapshot) -> str:
    return f"Scaling down control plane to {c.desired} replicas (actual {len(c.owned)})"


# fmt: off
RESIZED: Table[ControlPlaneDone] = Table(
    "Resized (v1beta1)",
    Row("deletion-fails", deleting & (descendants_unlisted | deletion_failed), KEEP),
    Row("deleted",        deleting & no_machines,                              KEEP),
    Row("workers-left",   deleting & workers_left,                             false("Deleting", "Waiting for worker nodes to be deleted first", "Info")),
    Row("deleting",       deleting,                                            false("Deleting", "", "Info")),
    Row("scaling-up",     ~enough,                                             false("ScalingUp", scaling_up, "Warning")),
    Row("scaling-down",   ~not_too_many,                                       false("ScalingDown", scaling_down, "Warning")),
    Row("resized",        all_ready,                                           true("")),
    Row("not-ready",      OTHERWISE,                                           KEEP),
    about="whether there are as many Machines as wanted, and they are ready",
    v1beta1="Resized",
    assuming=[deleting | ~(workers_left | descendants_unlisted | deletion_failed), ~(no_machines & (workers_left | descendants_unlisted | deletion_failed))],
    at_most_one=[(descendants_unlisted, workers_left, deletion_failed)],
)
MACHINES_CREATED: Table[Snapshot] = Table(
    "MachinesCreated (v1beta1)",
    Row("deleting", deleting,  KEEP),
    Row("too-few",  ~enough,   KEEP),
    Row("created",  OTHERWISE, true("")),
    about="that all Machines were created; a failure is reported when it happens",
    v1beta1="MachinesCreated",
)
# fmt: on

CONCLUSIONS_V1BETA1 = (RESIZED, MACHINES_CREATED)
"""The deprecated tables at the end of every pass."""


# ------------------------------------------------------------------------------------------------ health


def _reporting(f: HealthFacts, state: str) -> list[str]:
    """Return the Machines that report a severity, or a status without one."""
    return sorted(
        m.name
        for m in f.machines
        if any(c.type in f.types and (c.severity if c.status == "False" else c.status) == state for c in m.v1beta1_conditions)
    )


def _any(state: str, words: str) -> Guard[HealthFacts]:
    return Guard(f"a Machine reports {words}", lambda f: bool(_reporting(f, state)))


errors = Guard[HealthFacts]("there are errors about no Machine", lambda f: bool(f.errors))
any_error, any_warning, any_info = _any("Error", "an error"), _any("Warning", "a warning"), _any("Info", "an information")
any_true, any_unknown = _any("True", "that it is healthy"), _any("Unknown", "that its health is unknown")


def _text(note: str, state: str, what: str) -> Message[HealthFacts]:
    form = f"Following Machines are reporting {note} {what}: "

    def make(f: HealthFacts) -> str:
        who = _reporting(f, state)
        return "; ".join([*f.errors, *([form + ", ".join(who)] if who else [])])

    return Message(f"{form}<names>", make)


def _health(type: str, reason: str, note: str, unlisted: str | Message[HealthFacts]) -> Table[HealthFacts]:
    return Table(
        f"{type} (v1beta1)",
        Row("nodes-unlisted", nodes_unlisted, unknown(f"{reason}InspectionFailed", unlisted)),
        Row("errors", errors | any_error, false(f"{reason}Unhealthy", _text(note, "Error", "errors"), "Error")),
        Row("warnings", any_warning, false(f"{reason}Unhealthy", _text(note, "Warning", "warnings"), "Warning")),
        Row("infos", any_info, false(f"{reason}Unhealthy", _text(note, "Info", "info"), "Info")),
        Row("unknown", any_unknown & ~any_true, unknown(f"{reason}Unknown", _text(f"unknown {note}", "Unknown", "status"))),
        Row("healthy", OTHERWISE, true("")),
        about="the deprecated conditions of the Machines, merged: the worst counts",
        v1beta1=type,
    )


@message("Failed to list Nodes which are hosting control plane components: <error>")
def component_nodes_error(f: HealthFacts) -> str:
    return f"Failed to list Nodes which are hosting control plane components: {f.nodes_error}"


COMPONENTS_V1BETA1 = _health(names.COMPONENTS_HEALTHY, "ControlPlaneComponents", "control plane", component_nodes_error)
ETCD_V1BETA1 = _health(names.ETCD_CLUSTER_HEALTHY, "EtcdCluster", "etcd member", "Failed to list Nodes which are hosting the etcd members")


# ---------------------------------------------------------------------------------------------- aggregates


def mark(type: str, status: str, severity: str = "", reason: str = "", message: str = "") -> V1Beta1Condition:
    """Return a deprecated condition."""
    return V1Beta1Condition(type=type, status=status, severity=severity, reason=reason, message=message)


def machines_ready(c: Snapshot) -> V1Beta1Condition | None:
    """Return the aggregate of the Machines' Ready.

    Upstream's objects have lost their kind after a patch instead of an apply, that is while they or the control plane are deleted; the
    reason, which quotes the kind, is kept as users know it.
    """
    reporters = [("" if c.deleting or m.deleting else "Machine", m.name, m.v1beta1_conditions) for m in c.owned]
    return v1beta1.aggregate(reporters, "MachinesReady", source_ref=True)


def ready(c: Snapshot) -> V1Beta1Condition | None:
    """Return the summary."""
    return v1beta1.summary("KubeadmControlPlane", c.key.name, c.v1beta1_conditions, types=READY_INPUTS)
