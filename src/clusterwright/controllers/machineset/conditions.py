"""The condition tables of a MachineSet. Pure."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.wellknown import MAX_REPLICAS_ANNOTATION
from clusterwright.controllers.machineset.guards import (
    deleting,
    machines_left,
    missing_templates,
    replicas_unset,
    too_few,
    too_many,
    unlisted,
)
from clusterwright.controllers.machineset.snapshot import MachineSetDone, MachineSetSnapshot
from clusterwright.controllers.owned_machines import (
    INTERNAL_ERROR,
    MOST_CREATED,
    awaits_acknowledgement,
    machines_ready,
    machines_up_to_date,
    missing_text,
    remediating,
    stale_text,
)
from clusterwright.tables import OTHERWISE, Row, Table, false, message, true, unknown

Snapshot = MachineSetSnapshot
Done = MachineSetDone


# --------------------------------------------------------------------------------------------------- ScalingUp


def obstacles(c: Done) -> list[str]:
    """Return what keeps Machines from being created."""
    found = [*c.preflight.messages, *([c.preflight.error] if c.preflight.error else [])]
    if len(c.existing) >= c.desired:
        found.append(f"{len(c.existing)} Machines exist already, {len(c.existing) - c.count} of them are not seen yet")
    elif c.room is not None and c.room <= 0:
        limit = c.metadata.annotations.get(MAX_REPLICAS_ANNOTATION, "")
        found.append(f"the MachineDeployment has at least {limit} Machines already, as many as it may")
    return [*found, *([missing_text(c.missing)] if c.missing else [])]


@message(
    "Scaling up from <X> to <Y> replicas[, 50 at a time: <N> are still to be created][ is blocked because:<one line for each obstacle>]"
)
def scaling_up(c: Done) -> str:
    """Return how many Machines are wanted, how many are left to later passes, and what blocks creation."""
    text = f"Scaling up from {c.count} to {c.desired} replicas"
    if c.postponed:
        text += f", {MOST_CREATED} at a time: {c.postponed} are still to be created"
    blocked = obstacles(c)
    return text + " is blocked because:" + "".join(f"\n* {o}" for o in blocked) if blocked else text


@message("Scaling up would be blocked because <Kinds> do not exist")
def would_be_blocked(c: Snapshot) -> str:
    """Return what would block creation."""
    return f"Scaling up would be blocked because {missing_text(c.missing)}"


# fmt: off
SCALING_UP: Table[Done] = Table(
    "ScalingUp",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("replicas-unset",    replicas_unset,                                         unknown("WaitingForReplicasSet", "Waiting for spec.replicas set")),
    Row("scaling-up",        too_few,                                                true("ScalingUp", scaling_up)),
    Row("would-be-blocked",  missing_templates & ~deleting,                          false("NotScalingUp", would_be_blocked)),
    Row("not-scaling-up",    OTHERWISE,                                              false("NotScalingUp")),
    about="Fewer Machines than wanted, and the blocker, if any.",
    assuming=[~(too_few & deleting), ~(unlisted & too_few) | ~replicas_unset, ~(replicas_unset & too_few)],
)
# fmt: on


# ------------------------------------------------------------------------------------------------- ScalingDown


@message("Scaling down from <X> to <Y> replicas[<Machines that are in deletion for long>]")
def scaling_down(c: Snapshot) -> str:
    """Return the desired number, and the Machines whose deletion takes long."""
    there = sum(not awaits_acknowledgement(m) for m in c.machines or ())
    stale = stale_text(c.machines or (), c.now)
    return f"Scaling down from {there} to {c.desired} replicas" + (f"\n* {stale}" if stale else "")


# fmt: off
SCALING_DOWN: Table[Snapshot] = Table(
    "ScalingDown",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("replicas-unset",    replicas_unset,                                         unknown("WaitingForReplicasSet", "Waiting for spec.replicas set")),
    Row("scaling-down",      too_many,                                               true("ScalingDown", scaling_down)),
    Row("not-scaling-down",  OTHERWISE,                                              false("NotScalingDown")),
    about="More Machines than wanted. One that was moved here and is not acknowledged yet does not count.",
    assuming=[~(unlisted & too_many)],
)
# fmt: on

MACHINES_READY: Table[Any] = machines_ready(may_be_unlisted=True)
MACHINES_UP_TO_DATE: Table[Any] = machines_up_to_date(may_be_unlisted=True)
REMEDIATING: Table[Any] = remediating("not to be remediated by MachineSet", may_be_unlisted=True)


# ---------------------------------------------------------------------------------------------------- Deleting


@message("Deleting <N> Machine(s)[<Machines that are in deletion for long>]")
def deleting_machines(c: Snapshot) -> str:
    """Return how many are left, and whose deletion takes long."""
    stale = stale_text(c.machines or (), c.now)
    return f"Deleting {c.count} Machine{'' if c.count == 1 else 's'}" + (f"\n* {stale}" if stale else "")


# fmt: off
DELETING: Table[Snapshot] = Table(
    "Deleting",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("not-deleting",      ~deleting,                                              false("NotDeleting")),
    Row("machines-left",     deleting & machines_left,                               true("Deleting", deleting_machines)),
    Row("completed",         deleting & ~machines_left,                              true("Deleting", "Deletion completed")),
    about="Machines go first, then the MachineSet.",
    assuming=[~(unlisted & machines_left)],
)
# fmt: on

TABLES: Final[tuple[Table[Any], ...]] = (SCALING_UP, SCALING_DOWN, MACHINES_READY, MACHINES_UP_TO_DATE, REMEDIATING, DELETING)
OWNED: Final = ("Paused", *(t.name for t in TABLES))
