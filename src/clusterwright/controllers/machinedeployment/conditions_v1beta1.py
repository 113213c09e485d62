"""The deprecated condition tables of a MachineDeployment. Pure."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.conditions import v1beta1_conditions
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentDone, MachineDeploymentSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Guard, Outcome, Row, Table, computed, false, guard, message, true

Snapshot = MachineDeploymentSnapshot
Done = MachineDeploymentDone


def _available(c: Snapshot) -> int:
    deprecated = c.object.status.deprecated
    return deprecated.v1beta1.available_replicas if deprecated and deprecated.v1beta1 else 0


@guard("v1beta1 availableReplicas >= spec.replicas - maxUnavailable")
def enough_available(c: Snapshot) -> bool:
    return _available(c) >= c.least_available


@message("Minimum availability requires <Y> replicas, current <X> available")
def too_few_available(c: Snapshot) -> str:
    """Return how many are available, and how many must be."""
    # upstream decides by one counter and prints the other
    return f"Minimum availability requires {c.least_available} replicas, current {c.object.status.available_replicas or 0} available"


@guard("there is a MachineSet that is rolled out")
def has_new(c: Done) -> bool:
    return c.new_machine_set is not None


def _mirrored(c: Done) -> Outcome:
    source = v1beta1_conditions(c.new_machine_set) if c.new_machine_set else ()
    fallback = v1beta1.false("MachineSetReady", "WaitingForMachineSet", "Info")
    return _outcome(v1beta1.mirror(source, "MachineSetReady", fallback)) or Outcome("True", "")


def _summary(c: Snapshot) -> V1Beta1Condition | None:
    return v1beta1.summary(c.object.kind, c.metadata.name, c.v1beta1_conditions, types=("Available",))


def _outcome(condition: V1Beta1Condition | None) -> Outcome | None:
    if condition is None:
        return None
    return Outcome(condition.status, condition.reason, condition.message, condition.severity)


anything_reported: Guard[Snapshot] = Guard("Available is reported", lambda c: _summary(c) is not None)


@guard("this pass did not come to the end of the rollout's step")
def unsettled(c: Done) -> bool:
    return not c.settled


# fmt: off
AVAILABLE: Table[Done] = Table(
    "Available (v1beta1)",
    Row("unsettled",         unsettled,                                              KEEP),
    Row("available",         enough_available,                                       true("")),
    Row("not-available",     OTHERWISE,                                              false("WaitingForAvailableMachines", too_few_available, "Warning")),
    about="Enough Nodes are available.",
    v1beta1="Available",
)
MACHINE_SET_READY: Table[Done] = Table(
    "MachineSetReady (v1beta1)",
    Row("unsettled",         unsettled,                                              KEEP),
    Row("mirror",            has_new,                                                computed(_mirrored, status="<Ready>", reason="<reason>", message="<message>")),
    Row("none",              OTHERWISE,                                              false("WaitingForMachineSet", "MachineSet not found", "Info")),
    about="The deprecated Ready condition of the MachineSet that is rolled out.",
    v1beta1="MachineSetReady",
)
READY: Table[Snapshot] = Table(
    "Ready (v1beta1)",
    Row("nothing-reported",  ~anything_reported,                                     KEEP),
    Row("summary",           anything_reported,                                      computed(lambda c: _outcome(_summary(c)) or Outcome("True", ""), status="<Available>", reason="<reason>", message="<message>")),
    about="Summary of Available.",
    v1beta1="Ready",
)
# fmt: on

V1BETA1_TABLES: Final[tuple[Table[Done], ...]] = (AVAILABLE, MACHINE_SET_READY, READY)
OWNED_V1BETA1: Final = tuple(t.v1beta1 for t in V1BETA1_TABLES)
