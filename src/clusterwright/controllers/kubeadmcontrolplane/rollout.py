"""The next step of a rollout: make room first or make a new one first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine


class Step(Enum):
    """What a pass does about the number of Machines."""

    NONE = "none"
    INITIALIZE = "initialize"
    SCALE_UP = "scale-up"
    SCALE_DOWN = "scale-down"


def needing_rollout(machines: Sequence[ControlPlaneMachine]) -> tuple[ControlPlaneMachine, ...]:
    """Machines that must be replaced or updated: not what the spec asks for, and not on their way out already."""
    return tuple(m for m in machines if not m.up_to_date.holds and not m.deleting)


def max_surge(value: Any) -> int:
    """`maxSurge` as a number; it may be given as a string, which counts as 0 where it is none, and is 1 where it is absent."""
    if value is None:
        return 1
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def rollout_step(*, current: int, desired: int, surge: int) -> Step:
    """While Machines are outdated: one more if the surge allows it, else one less."""
    return Step.SCALE_UP if current < desired + surge else Step.SCALE_DOWN


def scale_step(*, current: int, desired: int) -> Step:
    """With nothing outdated: towards the wanted number, one at a time."""
    if current < desired:
        return Step.SCALE_UP if current else Step.INITIALIZE
    return Step.SCALE_DOWN if current > desired else Step.NONE
