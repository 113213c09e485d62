"""The deprecated condition tables of a MachineSet. Pure."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.machineset.guards import refused, replicas_unset, unlisted
from clusterwright.controllers.machineset.snapshot import MachineSetDone, MachineSetSnapshot
from clusterwright.controllers.machineset.status import v1beta1_counters
from clusterwright.tables import KEEP, OTHERWISE, Guard, Outcome, Row, Table, computed, guard, message, true
from clusterwright.tables import false as not_so

Snapshot = MachineSetSnapshot
Done = MachineSetDone
_SUMMARIZED: Final = ("MachinesCreated", "Resized", "MachinesReady")


@guard("fewer Machines than wanted")
def fewer(c: Snapshot) -> bool:
    return c.count < c.desired


@guard("more Machines than wanted")
def more(c: Snapshot) -> bool:
    return c.count > c.desired


@guard("every Machine's Node is ready")
def all_ready(c: Snapshot) -> bool:
    return v1beta1_counters(c).ready == c.count


def _refusal(c: Done) -> Outcome:
    return Outcome("False", c.refusal.reason, c.refusal.message, "Error") if c.refusal else Outcome("True", "")


@message("Scaling up MachineSet to <Y> replicas (actual <X>)")
def scaling_up(c: Snapshot) -> str:
    """Return how many are wanted, and how many exist."""
    return f"Scaling up MachineSet to {c.desired} replicas (actual {c.count})"


@message("Scaling down MachineSet to <Y> replicas (actual <X>)")
def scaling_down(c: Snapshot) -> str:
    """Return how many are wanted, and how many exist."""
    return f"Scaling down MachineSet to {c.desired} replicas (actual {c.count})"


def _aggregate(c: Done) -> V1Beta1Condition | None:
    # upstream's reason names the kind of those Machines only that it has just applied; programs compare reasons
    named = ((m.kind if m.metadata.name in c.kept else "", m) for m in c.machines or ())
    reporters = [(kind, m.metadata.name, v1beta1.reporter_conditions(m)) for kind, m in named]
    return v1beta1.aggregate(reporters, "MachinesReady", source_ref=True)


def _machines_ready(c: Done) -> Outcome:
    return _outcome(_aggregate(c)) or Outcome("True", "")


def _summary(c: Snapshot) -> V1Beta1Condition | None:
    return v1beta1.summary(c.object.kind, c.metadata.name, c.v1beta1_conditions, types=_SUMMARIZED)


def _outcome(condition: V1Beta1Condition | None) -> Outcome | None:
    if condition is None:
        return None
    return Outcome(condition.status, condition.reason, condition.message, condition.severity)


anything_reported: Guard[Snapshot] = Guard("one of the summarized conditions is reported", lambda c: _summary(c) is not None)
no_machines: Guard[Snapshot] = Guard("there are no Machines", lambda c: c.count == 0)
none_reports: Guard[Done] = Guard("no Machine reports Ready", lambda c: _aggregate(c) is None)


# fmt: off
MACHINES_CREATED: Table[Done] = Table(
    "MachinesCreated (v1beta1)",
    Row("refused",           refused,                                                computed(_refusal, status="False", reason="<reason>", message="<error>")),
    Row("unlisted",          unlisted | replicas_unset,                              KEEP),
    Row("scaling-up",        fewer,                                                  KEEP),
    Row("created",           OTHERWISE,                                              true("")),
    about="Whether all wanted Machines could be created.",
    v1beta1="MachinesCreated",
)
RESIZED: Table[Snapshot] = Table(
    "Resized (v1beta1)",
    Row("unlisted",          unlisted | replicas_unset,                              KEEP),
    Row("scaling-up",        fewer,                                                  not_so("ScalingUp", scaling_up, "Warning")),
    Row("scaling-down",      more,                                                   not_so("ScalingDown", scaling_down, "Warning")),
    Row("resized",           all_ready,                                              true("")),
    Row("not-all-ready",     OTHERWISE,                                              KEEP),
    about="Whether there are as many Machines as wanted, and all their Nodes are ready.",
    v1beta1="Resized",
    assuming=[~(fewer & more)],
)
MACHINES_READY: Table[Done] = Table(
    "MachinesReady (v1beta1)",
    Row("unlisted",          unlisted | replicas_unset,                              KEEP),
    Row("none",              no_machines,                                            true("")),
    Row("none-reports",      none_reports,                                           KEEP),
    Row("aggregate",         OTHERWISE,                                              computed(_machines_ready, status="<worst>", reason="<reason> @ Machine/<name>", message="<x> of <n> completed")),
    about="The deprecated Ready conditions of the Machines, aggregated.",
    v1beta1="MachinesReady",
    assuming=[~no_machines | none_reports],
)
READY: Table[Snapshot] = Table(
    "Ready (v1beta1)",
    Row("nothing-reported",  ~anything_reported,                                     KEEP),
    Row("summary",           anything_reported,                                      computed(lambda c: _outcome(_summary(c)) or Outcome("True", ""), status="<worst>", reason="<reason>", message="<message>")),
    about="Summary of MachinesCreated, Resized and MachinesReady.",
    v1beta1="Ready",
)
# fmt: on

V1BETA1_TABLES: Final[tuple[Table[Done], ...]] = (MACHINES_CREATED, RESIZED, MACHINES_READY, READY)
OWNED_V1BETA1: Final = tuple(t.v1beta1 for t in V1BETA1_TABLES)
