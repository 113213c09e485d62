"""The actions on a MachineDeployment as tables. Pure."""

from __future__ import annotations

from enum import Enum

from clusterwright.controllers.machinedeployment.guards import (
    any_undeleted,
    limits_garbled,
    machine_sets_left,
    on_delete,
    paused,
    replicas_unset,
    rolling,
)
from clusterwright.controllers.machinedeployment.rollout import limits
from clusterwright.controllers.machinedeployment.snapshot import MachineDeploymentSnapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, message

Snapshot = MachineDeploymentSnapshot


class Step(Enum):
    """The way to bring MachineSets to the desired state."""

    SCALE = "keep the rollout as it is and scale what is there in proportion"
    ROLL = "roll out within surge and unavailability"
    REPLACE = "replace what somebody deletes"


@message("spec.replicas of MachineDeployment <namespace/name> is not set")
def no_replicas(c: Snapshot) -> str:
    """Return the error of unset replicas, which admission normally sets."""
    return f"spec.replicas of MachineDeployment {c.object.key} is not set"


@message("unexpected deployment strategy type: <type>")
def no_strategy(c: Snapshot) -> str:
    """Return the error of an unset strategy, which admission normally sets."""
    return f"unexpected deployment strategy type: {c.strategy}"


@message("<which value is wrong>")
def limits_error(c: Snapshot) -> str:
    """Return why the limits are invalid."""
    try:
        limits(c.object)
    except ValueError as error:
        return f"failed to compute the limits of the rollout: {error}"
    return ""


# fmt: off
STEPS: Table[Snapshot] = Table(
    "Rollout",
    Row("replicas-unset",    replicas_unset,                                         KEEP, error=no_replicas),
    Row("limits-garbled",    limits_garbled,                                         KEEP, error=limits_error),
    Row("paused",            paused,                                                 KEEP, act=Step.SCALE),
    Row("rolling",           rolling,                                                KEEP, act=Step.ROLL),
    Row("on-delete",         on_delete,                                              KEEP, act=Step.REPLACE),
    Row("no-strategy",       OTHERWISE,                                              KEEP, error=no_strategy),
    about="The next step of a MachineDeployment whose MachineSets are known.",
    assuming=[~(rolling & on_delete), ~limits_garbled | rolling],
)
# fmt: on


class Deletion(Enum):
    """The next step of the deletion of a MachineDeployment."""

    DELETE = "delete the MachineSets that are not being deleted yet"
    RELEASE = "remove the finalizer"


# fmt: off
DELETE: Table[Snapshot] = Table(
    "Delete",
    Row("delete",            any_undeleted,                                          KEEP, act=Deletion.DELETE),
    Row("wait",              machine_sets_left,                                      KEEP),
    Row("release",           OTHERWISE,                                              KEEP, act=Deletion.RELEASE),
    about="Deleting a MachineDeployment, once its MachineSets are listed: they go first. The deletion of each starts a new pass.",
    assuming=[~any_undeleted | machine_sets_left],
)
# fmt: on
