"""Wait in virtual time until nothing moves any more, and tell what has not reached its goal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from clusterwright.golang import times
from clusterwright.plan.recorder import Brief, Recorder
from clusterwright.runtime.clock import Clock

STEP: Final = 5.0
CALM: Final = 30.0
"""Seconds without a write after which a replica is quiet, if all objects have reached their goals."""
PATIENCE: Final = 900.0
"""Seconds without a write after which the others count as stuck; longer where a timeout of an object is longer."""
LONGEST_TIMEOUT: Final = 24 * 3600.0
MOST_TIME: Final = 14 * 24 * 3600.0
MOST_MOVES: Final = 400_000
_GOALS: Final[Mapping[str, tuple[str, ...]]] = {
    "KubeadmControlPlane": ("RollingOut", "ScalingUp", "ScalingDown"),
    "MachineDeployment": ("RollingOut", "ScalingUp", "ScalingDown"),
    "MachineSet": ("ScalingUp", "ScalingDown"),
    "MachinePool": ("RollingOut", "ScalingUp", "ScalingDown"),
    "Cluster": ("RollingOut", "ScalingUp", "ScalingDown"),
}
"""Conditions that are True while a kind is on its way."""
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "Machine": ("Available", "Ready"),
    "Cluster": ("TopologyReconciled",),
    "MachineDeployment": ("Available",),
    "KubeadmControlPlane": ("Available",),
}
"""Conditions that are True once a kind has arrived; a condition that an object does not have is not needed."""


def unsettled(recorder: Recorder) -> dict[str, str]:
    """Return the objects that have not reached their goals, each with the reason."""
    found: dict[str, str] = {}
    for name, obj in sorted(recorder.current.items()):
        if why := _why(obj):
            found[name] = why
    return found


def _why(obj: Brief) -> str:
    if obj.metadata.deletion_timestamp is not None:
        told = obj.condition("Deleting")
        return f"is being deleted{_message(told.message) if told is not None else ''}"
    for type_ in _GOALS.get(obj.kind, ()):
        told = obj.condition(type_)
        if told is not None and told.status == "True":
            return f"{type_} is True{_message(told.message)}"
    for type_ in _NEEDED.get(obj.kind, ()):
        told = obj.condition(type_)
        if told is not None and told.status != "True":
            return f"{type_} is {told.status}{_message(told.message)}"
    return ""


def _message(text: str) -> str:
    return f": {' '.join(text.split())}" if text else ""


async def until_quiet(recorder: Recorder, clock: Clock, patience: float) -> str:
    """Wait; return why the wait ended before anything was quiet, empty if it is."""
    begin = clock.monotonic()
    while True:
        await clock.sleep(STEP)
        now = clock.monotonic()
        idle = now - recorder.last
        if idle >= patience or (idle >= CALM and not unsettled(recorder)):
            return ""
        if recorder.moves > MOST_MOVES:
            return f"after {MOST_MOVES} writes there was no end"
        if now - begin > MOST_TIME:
            return f"after {MOST_TIME / 86400:.0f} days there was no end"


def patience(objects: Iterable[Mapping[str, Any]]) -> float:
    """Return how long the longest silence may be before something happens: the longest timeout or stage of any object."""
    longest = max((seconds for obj in objects for seconds in _timeouts(obj.get("spec"))), default=0.0)
    return max(PATIENCE, min(longest, LONGEST_TIMEOUT) + 2 * CALM)


def _timeouts(value: Any) -> Iterable[float]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if (key.endswith("TimeoutSeconds") and isinstance(inner, int)) or (key == "minReadySeconds" and isinstance(inner, int)):
                yield float(inner)
            elif key == "startupDuration" and isinstance(inner, str):
                yield 2 * (times.parse_duration(inner) or 0) / 1e9
            else:
                yield from _timeouts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _timeouts(inner)
