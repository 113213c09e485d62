"""The final conditions of a MachinePool, and the one that it sets on its Machines, as tables. Pure.

The newer form has none of a pool but Paused; `plan` decides the deprecated ones of the phases.
"""

from __future__ import annotations

from clusterwright.conditions import v1beta1
from clusterwright.controllers.machinepool.snapshot import MachineFacts, PoolSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, computed, false, guard, true

OWNED = ("Paused",)
READY_TYPES = ("BootstrapReady", "InfrastructureReady", "ReplicasReady")
OWNED_V1BETA1 = ("Ready", *READY_TYPES)
MACHINE_OWNED = ("UpToDate",)


@guard("BootstrapReady, InfrastructureReady or ReplicasReady is reported")
def any_reported(s: PoolSnapshot) -> bool:
    return any(c.type in READY_TYPES for c in s.v1beta1_conditions)


def _summary(s: PoolSnapshot) -> Outcome:
    found = v1beta1.summary(s.object.kind, s.object.metadata.name, s.v1beta1_conditions, types=READY_TYPES)
    return Outcome(found.status, found.reason, found.message, found.severity) if found else Outcome("Unknown", "")


@guard("metadata.deletionTimestamp is set")
def machine_deleting(m: MachineFacts) -> bool:
    return m.deleting


# fmt: off
READY: Table[PoolSnapshot] = Table(
    "Ready (v1beta1)",
    Row("summary",   any_reported,     computed(_summary, status="summary", reason="", message="of BootstrapReady, InfrastructureReady and ReplicasReady")),
    Row("unknown",   OTHERWISE,        KEEP),
    v1beta1="Ready",
)

UP_TO_DATE: Table[MachineFacts] = Table(
    "UpToDate",
    Row("deleting",  machine_deleting, false("NotUpToDate", "Machine is being deleted")),
    Row("up-to-date", OTHERWISE,       true("UpToDate")),
    about="Set on a Machine of the pool: the infrastructure keeps its machines up to date, or replaces them.",
)
# fmt: on
