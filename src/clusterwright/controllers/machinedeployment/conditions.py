"""The condition tables of a MachineDeployment. Pure."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.conditions import get, is_false
from clusterwright.controllers.machinedeployment.guards import (
    any_outdated,
    available_unset,
    deleting,
    enough_available,
    machine_sets_left,
    machines_left,
    missing_templates,
    replicas_unset,
    too_few,
    too_many,
    unlisted,
)
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentDone, MachineDeploymentSnapshot
from clusterwright.controllers.owned_machines import (
    INTERNAL_ERROR,
    machines_ready,
    machines_up_to_date,
    missing_text,
    remediating,
    stale_text,
)
from clusterwright.tables import OTHERWISE, Row, Table, Transition, false, message, true, unknown

Snapshot = MachineDeploymentSnapshot
Done = MachineDeploymentDone
NO_REPLICAS: Final[Transition[Snapshot]] = unknown("WaitingForReplicasSet", "Waiting for spec.replicas set")


# --------------------------------------------------------------------------------------------------- Available


@message("<X> available replicas, at least <Y> required[ (spec.strategy.rollout.maxUnavailable is <Z>, spec.replicas is <N>)]")
def too_few_available(c: Snapshot) -> str:
    """Return how many are available, and how many must be."""
    text = f"{c.object.status.available_replicas or 0} available replicas, at least {c.least_available} required"
    strategy = c.object.spec.rollout.strategy if c.object.spec.rollout else None
    if strategy is None or strategy.type != "RollingUpdate":
        return text
    limit = strategy.rolling_update.max_unavailable if strategy.rolling_update else None
    return f"{text} (spec.strategy.rollout.maxUnavailable is {0 if limit is None else limit}, spec.replicas is {c.replicas})"


# fmt: off
AVAILABLE: Table[Snapshot] = Table(
    "Available",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("replicas-unset",    replicas_unset,                                         NO_REPLICAS),
    Row("available-unset",   available_unset,                                        unknown("WaitingForAvailableReplicasSet", "Waiting for status.availableReplicas set")),
    Row("available",         enough_available,                                       true("Available")),
    Row("deleting",          deleting,                                               false("NotAvailable", "Deletion in progress")),
    Row("not-available",     OTHERWISE,                                              false("NotAvailable", too_few_available)),
    about="Enough Machines are available: all wanted ones, except those that a rollout may make unavailable.",
)
# fmt: on


# -------------------------------------------------------------------------------------------------- RollingOut


@message("Rolling out <N> not up-to-date replicas<one line for each reason, versions first>")
def rolling_out(c: Snapshot) -> str:
    """Return how many Machines must be replaced, and why."""
    outdated = [m for m in c.machines if is_false(m.status.conditions, "UpToDate")]
    lines: set[str] = set()
    for machine in outdated:
        condition = get(machine.status.conditions, "UpToDate")
        lines.update(line for line in (condition.message if condition else "").split("\n") if line)
    ordered = sorted(lines, key=lambda line: (not line.startswith("* Version"), line))
    for machine in c.machines:
        updating = get(machine.status.conditions, "Updating")
        if updating is not None and updating.reason == "InPlaceUpdateFailed":
            ordered.append(f"* In-place update of Machine {machine.metadata.name} failed")
    return "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *ordered])


# fmt: off
ROLLING_OUT: Table[Snapshot] = Table(
    "RollingOut",
    Row("rolling-out",       any_outdated,                                           true("RollingOut", rolling_out)),
    Row("not-rolling-out",   OTHERWISE,                                              false("NotRollingOut")),
    about="Machines that differ from the template.",
)
# fmt: on


# ------------------------------------------------------------------------------------------- ScalingUp and -Down


@message("Scaling up from <X> to <Y> replicas[ is blocked because <Kinds> do not exist]")
def scaling_up(c: Done) -> str:
    """Return the desired number, and what blocks it."""
    text = f"Scaling up from {c.current} to {c.desired} replicas"
    if c.unseen:
        return f"{text} is blocked because {c.unseen} MachineSets exist that are not seen yet"
    return f"{text} is blocked because {missing_text(c.missing)}" if c.missing else text


@message("Scaling up would be blocked because <Kinds> do not exist")
def would_be_blocked(c: Snapshot) -> str:
    """Return what would block scaling up."""
    return f"Scaling up would be blocked because {missing_text(c.missing)}"


@message("Scaling down from <X> to <Y> replicas[<Machines that are in deletion for long>]")
def scaling_down(c: Snapshot) -> str:
    """Return the desired number, and the Machines whose deletion takes long."""
    stale = stale_text(c.machines, c.now)
    return f"Scaling down from {c.current} to {c.desired} replicas" + (f"\n* {stale}" if stale else "")


# fmt: off
SCALING_UP: Table[Done] = Table(
    "ScalingUp",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("replicas-unset",    replicas_unset,                                         NO_REPLICAS),
    Row("scaling-up",        too_few,                                                true("ScalingUp", scaling_up)),
    Row("would-be-blocked",  missing_templates & ~deleting,                          false("NotScalingUp", would_be_blocked)),
    Row("not-scaling-up",    OTHERWISE,                                              false("NotScalingUp")),
    about="Fewer Machines than wanted, and the blocker, if any.",
    assuming=[~(too_few & (deleting | unlisted | replicas_unset))],
)
SCALING_DOWN: Table[Snapshot] = Table(
    "ScalingDown",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("replicas-unset",    replicas_unset,                                         NO_REPLICAS),
    Row("scaling-down",      too_many,                                               true("ScalingDown", scaling_down)),
    Row("not-scaling-down",  OTHERWISE,                                              false("NotScalingDown")),
    about="More Machines than wanted.",
    assuming=[~(too_many & (unlisted | replicas_unset))],
)
# fmt: on

MACHINES_READY: Table[Any] = machines_ready(may_be_unlisted=False)
MACHINES_UP_TO_DATE: Table[Any] = machines_up_to_date(may_be_unlisted=False)
REMEDIATING: Table[Any] = remediating("not to be remediated by MachineDeployment/MachineSet", may_be_unlisted=False)


# ---------------------------------------------------------------------------------------------------- Deleting


@message("Deleting <N> Machine(s)[<Machines that are in deletion for long>]")
def deleting_machines(c: Snapshot) -> str:
    """Return how many are left, and whose deletion takes long."""
    stale, count = stale_text(c.machines, c.now), len(c.machines)
    return f"Deleting {count} Machine{'' if count == 1 else 's'}" + (f"\n* {stale}" if stale else "")


@message("Deleting <N> MachineSets")
def deleting_machine_sets(c: Snapshot) -> str:
    """Return how many are left."""
    return f"Deleting {len(c.machine_sets or ())} MachineSets"


# fmt: off
DELETING: Table[Snapshot] = Table(
    "Deleting",
    Row("unlisted",          unlisted,                                               INTERNAL_ERROR),
    Row("not-deleting",      ~deleting,                                              false("NotDeleting")),
    Row("machines-left",     machine_sets_left & machines_left,                      true("Deleting", deleting_machines)),
    Row("sets-left",         machine_sets_left,                                      true("Deleting", deleting_machine_sets)),
    Row("completed",         OTHERWISE,                                              true("Deleting", "Deletion completed")),
    about="MachineSets go first, with their Machines, then the MachineDeployment.",
    assuming=[~(unlisted & machine_sets_left)],
)
# fmt: on

TABLES: Final[tuple[Table[Any], ...]] = (
    AVAILABLE,
    ROLLING_OUT,
    SCALING_UP,
    SCALING_DOWN,
    MACHINES_READY,
    MACHINES_UP_TO_DATE,
    REMEDIATING,
    DELETING,
)
OWNED: Final = ("Paused", *(t.name for t in TABLES))
