"""The conditions that are concluded of a MachinePool, and the one that it sets on its Machines, as tables. Pure.

The newer form has none of a pool but Paused; `plan` decides the deprecated ones of the phases.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.core import Machine
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.conditions import v1beta1_conditions
from clusterwright.controllers.machinepool.snapshot import PoolSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, computed, false, guard, true

OWNED = ("Paused",)
READY_TYPES = ("BootstrapReady", "InfrastructureReady", "ReplicasReady")
OWNED_V1BETA1 = ("Ready", *READY_TYPES)
MACHINE_OWNED = ("UpToDate",)


@guard("BootstrapReady, InfrastructureReady or ReplicasReady is reported")
def any_reported(s: PoolSnapshot) -> bool:
    return any(c.type in READY_TYPES for c in v1beta1_conditions(s.object))


def _summary(s: PoolSnapshot) -> Outcome:
    found = v1beta1.summary(s.object.kind, s.object.metadata.name, v1beta1_conditions(s.object), types=READY_TYPES)
    return Outcome(found.status, found.reason, found.message, found.severity) if found else Outcome("Unknown", "")


@dataclass(frozen=True, slots=True)
class PoolMachine:
    """A Machine of a pool."""

    machine: Machine


@guard("metadata.deletionTimestamp is set")
def machine_deleting(m: PoolMachine) -> bool:
    return m.machine.metadata.deletion_timestamp is not None


# fmt: off
READY: Table[PoolSnapshot] = Table(
    "Ready (v1beta1)",
    Row("summary",   any_reported,     computed(_summary, status="summary", reason="", message="of BootstrapReady, InfrastructureReady and ReplicasReady")),
    Row("unknown",   OTHERWISE,        KEEP),
    v1beta1="Ready",
)

UP_TO_DATE: Table[PoolMachine] = Table(
    "UpToDate",
    Row("deleting",  machine_deleting, false("NotUpToDate", "Machine is being deleted")),
    Row("up-to-date", OTHERWISE,       true("UpToDate")),
    about="Of a Machine of the pool: the infrastructure keeps its machines up to date, or replaces them.",
)
# fmt: on
