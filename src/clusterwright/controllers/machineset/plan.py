"""The actions on a MachineSet as tables. Pure."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final

from clusterwright.controllers.machineset.guards import (
    any_undeleted,
    creation_disabled,
    enough_exist,
    machines_left,
    moves,
    no_room,
    preflight_fails,
    preflight_unknown,
    replicas_unset,
    surplus,
    too_few,
)
from clusterwright.controllers.machineset.snapshot import MachineSetDone, MachineSetSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, message

Snapshot = MachineSetSnapshot
Done = MachineSetDone
PREFLIGHT_WAIT: Final = timedelta(seconds=15)
"""The requeue of failed preflight checks, in case the watch on the control plane misses an event."""


class Scale(Enum):
    """The next scaling step."""

    CREATE = "create what is missing"
    MOVE = "move the surplus to the MachineSet that updates it in place"
    DELETE = "delete the surplus, by deletion order"


@message("spec.replicas of MachineSet <namespace/name> is not set")
def no_replicas(c: Snapshot) -> str:
    """Return the error of unset replicas, which admission normally sets."""
    return f"spec.replicas of MachineSet {c.object.key} is not set"


@message("<error of the preflight checks>")
def preflight_error(c: Done) -> str:
    """Return why the preflight checks failed to run."""
    return c.preflight.error


# fmt: off
SCALE: Table[Done] = Table(
    "Scale",
    Row("replicas-unset",    replicas_unset,                                         KEEP, error=no_replicas),
    Row("disabled",          too_few & creation_disabled,                            KEEP),
    Row("preflight-unknown", too_few & preflight_unknown,                            KEEP, error=preflight_error),
    Row("preflight-fails",   too_few & preflight_fails,                              KEEP, requeue=PREFLIGHT_WAIT),
    Row("not-seen-yet",      too_few & enough_exist,                                 KEEP, requeue=PREFLIGHT_WAIT),
    Row("no-room",           too_few & no_room,                                      KEEP, requeue=PREFLIGHT_WAIT),
    Row("create",            too_few,                                                KEEP, act=Scale.CREATE),
    Row("move",              surplus & moves,                                        KEEP, act=Scale.MOVE),
    Row("delete",            surplus,                                                KEEP, act=Scale.DELETE),
    Row("steady",            OTHERWISE,                                              KEEP),
    about="The actions on the number of Machines, once they are listed. Before one is created, the API server itself is asked for all Machines, also those of the MachineDeployment.",
    assuming=[~(too_few & surplus), ~(preflight_unknown & preflight_fails), ~(replicas_unset & (too_few | surplus))],
)
# fmt: on


class Deletion(Enum):
    """The next step of the deletion of a MachineSet."""

    DELETE = "delete the Machines that are not being deleted yet"
    RELEASE = "remove the finalizer"


# fmt: off
DELETE: Table[Snapshot] = Table(
    "Delete",
    Row("delete",            any_undeleted,                                          KEEP, act=Deletion.DELETE),
    Row("wait",              machines_left,                                          KEEP),
    Row("release",           OTHERWISE,                                              KEEP, act=Deletion.RELEASE),
    about="Deleting a MachineSet, once its Machines are listed: they go first. The deletion of each starts a new pass.",
    assuming=[~any_undeleted | machines_left],
)
# fmt: on
