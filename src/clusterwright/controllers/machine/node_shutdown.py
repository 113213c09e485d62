"""The order in which the Node of a deleted Machine is taken out of service: hooks, drain, volumes. Pure.

The table is asked again and again within a pass: a row that names an action has it done, and its outcome is in the next snapshot;
any other row ends the pass, but for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from clusterwright.api.core import Machine
from clusterwright.controllers.kit.lookup import Lookup
from clusterwright.controllers.machine import drain, volumes
from clusterwright.controllers.machine.drain import DrainProgress
from clusterwright.controllers.machine.node_access import Done, Failed, Untried, drain_is_allowed, pre_drain_hooks, volume_wait_is_allowed
from clusterwright.controllers.machine.volumes import VolumeWait
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard, message, true


class Shutdown(Enum):
    """The next action. After DRAIN and LOOK_AT_VOLUMES the table is evaluated again with the outcome."""

    AWAIT_HOOKS = "wait until the pre-drain hooks are gone"
    REST = "wait until the last look is long enough ago"
    DRAIN = "cordon the Node and evict what must go now"
    AWAIT_PODS = "wait until the Pods have left"
    LOOK_AT_VOLUMES = "find out what is attached to the Node"
    AWAIT_VOLUMES = "wait until the volumes are detached"
    TRY_AGAIN = "end the pass in the error"
    DONE = "go on with the host"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownSnapshot:
    """The progress of taking a Node out of service. `host` is the infrastructure machine.

    `resting`: the last check is recent, and no known fact has changed since.
    """

    machine: Machine
    host: Lookup
    now: datetime
    resting: bool = False
    drain: Untried | Failed | DrainProgress | Done = field(default_factory=Untried)
    volumes: Untried | Failed | VolumeWait = field(default_factory=Untried)


@guard("there are pre-drain hooks")
def pre_drain_hooked(s: ShutdownSnapshot) -> bool:
    return bool(pre_drain_hooks(s.machine))


@guard("the last look is not long ago")
def resting(s: ShutdownSnapshot) -> bool:
    return s.resting


@guard("the drain is allowed")
def drains(s: ShutdownSnapshot) -> bool:
    return drain_is_allowed(s.machine, s.host, s.now)


@guard("not drained in this pass")
def drain_untried(s: ShutdownSnapshot) -> bool:
    return isinstance(s.drain, Untried)


@guard("the drain failed")
def drain_failed(s: ShutdownSnapshot) -> bool:
    return isinstance(s.drain, Failed)


@guard("Pods are still to leave")
def drain_unfinished(s: ShutdownSnapshot) -> bool:
    return isinstance(s.drain, DrainProgress) and not s.drain.completed


@guard("all Pods have left, or there is no Node")
def drain_over(s: ShutdownSnapshot) -> bool:
    return isinstance(s.drain, Done) or (isinstance(s.drain, DrainProgress) and s.drain.completed)


@guard("waiting for volumes is allowed")
def waits_for_volumes(s: ShutdownSnapshot) -> bool:
    return volume_wait_is_allowed(s.machine, s.host, s.now)


@guard("volumes not looked at in this pass")
def volumes_untried(s: ShutdownSnapshot) -> bool:
    return isinstance(s.volumes, Untried)


@guard("looking at the volumes failed")
def volumes_failed(s: ShutdownSnapshot) -> bool:
    return isinstance(s.volumes, Failed)


@guard("volumes are still attached")
def volumes_attached(s: ShutdownSnapshot) -> bool:
    return isinstance(s.volumes, VolumeWait) and not s.volumes.over


@guard("all volumes are detached")
def volumes_detached(s: ShutdownSnapshot) -> bool:
    return isinstance(s.volumes, VolumeWait) and s.volumes.over


@message("Waiting for pre-drain hooks to succeed (hooks: <names>)")
def awaiting_pre_drain(s: ShutdownSnapshot) -> str:
    return f"Waiting for pre-drain hooks to succeed (hooks: {','.join(pre_drain_hooks(s.machine))})"


@message("Drain not completed yet (started at <time>): <what is left>")
def drain_progress(s: ShutdownSnapshot) -> str:
    status = s.machine.status.deletion
    started = (status.node_drain_start_time if status else None) or s.now
    return s.drain.message(started) if isinstance(s.drain, DrainProgress) else ""


@message("Waiting for Node volumes to be detached (started at <time>) <what is left>")
def volumes_left(s: ShutdownSnapshot) -> str:
    status = s.machine.status.deletion
    started = (status.wait_for_node_volume_detach_start_time if status else None) or s.now
    return s.volumes.message(started) if isinstance(s.volumes, VolumeWait) else ""


DRAIN_ERROR = "Error draining Node, please check controller logs for errors"
VOLUMES_ERROR = "Error waiting for volumes to be detached from Node, please check controller logs for errors"

# fmt: off
NODE_SHUTDOWN: Table[ShutdownSnapshot] = Table(
    "NodeShutdown",
    Row("pre-drain-hooks",  pre_drain_hooked,                    true("WaitingForPreDrainHook", awaiting_pre_drain), act=Shutdown.AWAIT_HOOKS),
    Row("resting",          resting,                             KEEP, act=Shutdown.REST),
    Row("drain",            drains & drain_untried,              KEEP, act=Shutdown.DRAIN),
    Row("drain-failed",     drain_failed,                        true("DrainingNode", DRAIN_ERROR), act=Shutdown.TRY_AGAIN),
    Row("draining",         drain_unfinished,                    true("DrainingNode", drain_progress), requeue=drain.RETRY, act=Shutdown.AWAIT_PODS),
    Row("look-at-volumes",  waits_for_volumes & volumes_untried, KEEP, act=Shutdown.LOOK_AT_VOLUMES),
    Row("volumes-failed",   volumes_failed,                      true("WaitingForVolumeDetach", VOLUMES_ERROR), act=Shutdown.TRY_AGAIN),
    Row("volumes-attached", volumes_attached,                    true("WaitingForVolumeDetach", volumes_left), requeue=volumes.RETRY, act=Shutdown.AWAIT_VOLUMES),
    Row("released",         OTHERWISE,                           KEEP, act=Shutdown.DONE),
    exactly_one=[
        (drain_untried, drain_failed, drain_unfinished, drain_over),
        (volumes_untried, volumes_failed, volumes_attached, volumes_detached),
    ],
    about="The order in which the Node of a Machine that is deleted goes out of service.",
)
# fmt: on
