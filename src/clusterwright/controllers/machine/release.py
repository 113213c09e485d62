"""The order in which the Node of a Machine that is deleted goes out of service: hooks, drain, volumes. Pure.

The table is asked again and again within a pass: a row that names an action has it done, and its outcome is in the next snapshot;
any other row ends the pass, but for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from clusterwright.api.core import Machine
from clusterwright.controllers.machine import drain, volumes
from clusterwright.controllers.machine.deletion import Done, Failed, Untried, drain_is_allowed, pre_drain_hooks, volume_wait_is_allowed
from clusterwright.controllers.machine.drain import DrainProgress
from clusterwright.controllers.machine.volumes import VolumeWait
from clusterwright.tables import KEEP, OTHERWISE, Ensure, Row, Table, guard, message, true


class Action(Enum):
    """What a row wants done before the table is asked again."""

    DRAIN = "cordon the Node and evict what must go now"
    LOOK_AT_VOLUMES = "find out what is attached to the Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSnapshot:
    """How far a Node is out of service. `resting`: the last look is not long ago, and nothing has changed that we know of."""

    machine: Machine
    now: datetime
    resting: bool = False
    drain: Untried | Failed | DrainProgress | Done = field(default_factory=Untried)
    volumes: Untried | Failed | VolumeWait = field(default_factory=Untried)


@guard("there are pre-drain hooks")
def pre_drain_hooked(s: ReleaseSnapshot) -> bool:
    return bool(pre_drain_hooks(s.machine))


@guard("the last look is not long ago")
def resting(s: ReleaseSnapshot) -> bool:
    return s.resting


@guard("the drain is allowed")
def drains(s: ReleaseSnapshot) -> bool:
    return drain_is_allowed(s.machine, s.now)


@guard("not drained in this pass")
def drain_untried(s: ReleaseSnapshot) -> bool:
    return isinstance(s.drain, Untried)


@guard("the drain failed")
def drain_failed(s: ReleaseSnapshot) -> bool:
    return isinstance(s.drain, Failed)


@guard("Pods are still to leave")
def drain_unfinished(s: ReleaseSnapshot) -> bool:
    return isinstance(s.drain, DrainProgress) and not s.drain.completed


@guard("all Pods have left, or there is no Node")
def drain_over(s: ReleaseSnapshot) -> bool:
    return isinstance(s.drain, Done) or (isinstance(s.drain, DrainProgress) and s.drain.completed)


@guard("waiting for volumes is allowed")
def waits_for_volumes(s: ReleaseSnapshot) -> bool:
    return volume_wait_is_allowed(s.machine, s.now)


@guard("volumes not looked at in this pass")
def volumes_untried(s: ReleaseSnapshot) -> bool:
    return isinstance(s.volumes, Untried)


@guard("looking at the volumes failed")
def volumes_failed(s: ReleaseSnapshot) -> bool:
    return isinstance(s.volumes, Failed)


@guard("volumes are still attached")
def volumes_attached(s: ReleaseSnapshot) -> bool:
    return isinstance(s.volumes, VolumeWait) and not s.volumes.over


@guard("all volumes are detached")
def volumes_detached(s: ReleaseSnapshot) -> bool:
    return isinstance(s.volumes, VolumeWait) and s.volumes.over


@message("Waiting for pre-drain hooks to succeed (hooks: <names>)")
def awaiting_pre_drain(s: ReleaseSnapshot) -> str:
    return f"Waiting for pre-drain hooks to succeed (hooks: {','.join(pre_drain_hooks(s.machine))})"


@message("Drain not completed yet (started at <time>): <what is left>")
def drain_progress(s: ReleaseSnapshot) -> str:
    status = s.machine.status.deletion
    started = (status.node_drain_start_time if status else None) or s.now
    return s.drain.message(started) if isinstance(s.drain, DrainProgress) else ""


@message("Waiting for Node volumes to be detached (started at <time>) <what is left>")
def volumes_left(s: ReleaseSnapshot) -> str:
    status = s.machine.status.deletion
    started = (status.wait_for_node_volume_detach_start_time if status else None) or s.now
    return s.volumes.message(started) if isinstance(s.volumes, VolumeWait) else ""


def _do(action: Action) -> Ensure[ReleaseSnapshot]:
    return Ensure(action.value, lambda _: [action])


DRAIN_ERROR = "Error draining Node, please check controller logs for errors"
VOLUMES_ERROR = "Error waiting for volumes to be detached from Node, please check controller logs for errors"

# fmt: off
RELEASE_NODE: Table[ReleaseSnapshot] = Table(
    "ReleaseNode",
    Row("pre-drain-hooks",  pre_drain_hooked,                    true("WaitingForPreDrainHook", awaiting_pre_drain)),
    Row("resting",          resting,                             KEEP),
    Row("drain",            drains & drain_untried,              KEEP, ensure=_do(Action.DRAIN)),
    Row("drain-failed",     drain_failed,                        true("DrainingNode", DRAIN_ERROR)),
    Row("draining",         drain_unfinished,                    true("DrainingNode", drain_progress), requeue=drain.RETRY),
    Row("look-at-volumes",  waits_for_volumes & volumes_untried, KEEP, ensure=_do(Action.LOOK_AT_VOLUMES)),
    Row("volumes-failed",   volumes_failed,                      true("WaitingForVolumeDetach", VOLUMES_ERROR)),
    Row("volumes-attached", volumes_attached,                    true("WaitingForVolumeDetach", volumes_left), requeue=volumes.RETRY),
    Row("released",         OTHERWISE,                           KEEP),
    exactly_one=[
        (drain_untried, drain_failed, drain_unfinished, drain_over),
        (volumes_untried, volumes_failed, volumes_attached, volumes_detached),
    ],
    about="The order in which the Node of a Machine that is deleted goes out of service.",
)
# fmt: on
