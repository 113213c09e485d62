"""The duration of each provisioning step, from conditions: from the creation of an object until each became True. Pure.

A condition that an object had and lost does not count as a step of its provisioning: it is listed apart, with the time of its loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.ownership import name_of
from clusterwright.offline.timeline import conditions_shown

STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Cluster": ("InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable"),
    "Machine": ("BootstrapConfigReady", "InfrastructureReady", "NodeReady", "Ready"),
}
"""The conditions that mark the steps of each kind."""
_UP: Final = frozenset({"Running", "Deleting"})
"""The phases of an object that has been provisioned."""


def waterfall(objects: Iterable[Unstructured]) -> Iterator[tuple[str, Json]]:
    """Return the steps of each object in the order of their ends, each beginning at the end of the previous one; open ones last."""
    for obj in objects:
        steps, made = STEPS.get(obj.kind), obj.metadata.creation_timestamp
        if steps is None or made is None:
            continue
        said = {c.type: c for c in conditions_shown(obj)}
        found = [said[s] for s in steps if s in said]
        done = sorted((at, c.type) for c in found if c.status == "True" and (at := c.last_transition_time) is not None)
        shown: list[Json] = []
        begun = made
        for at, type_ in done:
            end = max(at, begun)
            shown.append(_step(steps, type_, begun, end))
            begun = end
        waiting = [c for c in found if c.status != "True"]
        was_up = obj.at("status", "phase") in _UP
        if waiting and not was_up:
            shown.append(_step(steps, waiting[0].type, begun, None, waiting[0].reason))
        lost = [
            {"step": c.type, "at": f"{c.last_transition_time:%Y-%m-%dT%H:%M:%SZ}"} for c in waiting if was_up and c.last_transition_time
        ]
        yield (
            name_of(obj.kind, *obj.key),
            {
                "created": f"{made:%Y-%m-%dT%H:%M:%SZ}",
                "kind": obj.kind,
                "name": obj.key.name,
                "version": version if isinstance(version := obj.at("spec", "version"), str) else "",
                "steps": shown,
                "lost": lost[:1],
            },
        )


def _step(steps: tuple[str, ...], type_: str, begun: datetime, end: datetime | None, why: str = "") -> Json:
    """Return a step; `place` is its position among those of its kind, so that equal steps look alike."""
    until = f"{end:%Y-%m-%dT%H:%M:%SZ}" if end is not None else None
    return {"step": type_, "place": steps.index(type_), "from": f"{begun:%Y-%m-%dT%H:%M:%SZ}", "to": until, "why": why}
