"""Find the reasons why a change waits: drains that are blocked, preflight checks, upgrades that wait for their turn. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterwright.plan.recorder import Told
from clusterwright.plan.result import Wait

LONG: Final = 60.0
"""Seconds that a drain may take before it is reported as blocked."""
_DRAINS: Final = frozenset({"DrainingNode", "WaitingForVolumeDetach", "WaitingForPreDrainHook", "WaitingForPreTerminateHook"})
_PREFLIGHT: Final = "preflight"
_WAITING: Final = "waiting for"


def waits(told: Iterable[Told]) -> list[Wait]:
    """Return what holds the change up, in the order in which it begins; messages of one condition that follow each other are one wait."""
    merged: dict[tuple[str, str, str], list[Told]] = {}
    for one in told:
        kind = _kind(one)
        if kind:
            merged.setdefault((one.object, one.type, kind), []).append(one)
    found = [_wait(key[0], key[2], group) for key, group in merged.items()]
    kept = [w for w in found if w.kind != "drain" or w.until is None or w.until - w.since >= LONG]
    return sorted((w for w in kept if w.until is None or w.until > w.since), key=lambda w: (w.since, w.object))


def _kind(told: Told) -> str:
    if told.type == "Deleting" and told.object.startswith("Machine/"):
        return "drain" if told.reason in _DRAINS else ""
    text = told.message.lower()
    if _PREFLIGHT in text:
        return "check"
    if told.type == "TopologyReconciled" and told.status == "False":
        return "hold"
    return "check" if _WAITING in text and told.type in {"ScalingUp", "ScalingDown", "MachinesCreated", "Remediating"} else ""


def _wait(name: str, kind: str, group: list[Told]) -> Wait:
    until = None if any(t.until is None for t in group) else max(t.until for t in group if t.until is not None)
    longest = max(group, key=lambda t: (t.until if t.until is not None else float("inf")) - t.since)
    return Wait(name, kind, longest.message, max(0.0, group[0].since), until)
