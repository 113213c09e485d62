"""The lists of a plan: what is created, changed and deleted, and the trace of events. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.plan.differences import Field, fields
from clusterwright.plan.machines import owner_of
from clusterwright.plan.recorder import Step
from clusterwright.plan.result import Touched

MOST_TRACED: Final = 5_000
_SHOWN: Final = 20
"""The most fields of one event of the trace."""
_LIFT: Final = 4
"""How many owners are followed from an object to its Machine."""

Objects = Mapping[str, Mapping[str, Any]]


def touched(
    start: Objects, before: Objects, after: Objects, steps: Sequence[Step], anyway: Collection[tuple[str, str]]
) -> tuple[list[Touched], list[Touched], list[Touched]]:
    """Return the objects that are created, changed and deleted, in the order in which that happens.

    `start`: before the controllers did anything; `anyway`: what also happens without the change, as verb and name.
    """
    times: dict[tuple[str, str], float] = {}
    for step in steps:
        times.setdefault((step.verb, step.name), step.at)
    created = [
        Touched(name, times.get(("create", name), 0.0), owner_of(after[name]), anyway=("create", name) in anyway)
        for name in after
        if name not in before or before[name]["metadata"].get("uid") != after[name]["metadata"].get("uid")
    ]
    created += [Touched(name, 0.0, owner_of(after[name]), anyway=True) for name in after if name in before and name not in start]
    deleted = [
        Touched(name, times.get(("delete", name), times.get(("gone", name), 0.0)), owner_of(before[name]), anyway=("gone", name) in anyway)
        for name in before
        if name not in after or before[name]["metadata"].get("uid") != after[name]["metadata"].get("uid")
    ]
    deleted += [Touched(name, 0.0, owner_of(start[name]), anyway=True) for name in start if name not in before and name not in after]
    changed = []
    for name in after:
        if name in before and before[name]["metadata"].get("uid") == after[name]["metadata"].get("uid"):
            if found := fields(before[name], after[name]):
                changed.append(
                    Touched(name, times.get(("change", name), 0.0), owner_of(after[name]), found, anyway=("change", name) in anyway)
                )
            elif name in start and (found := fields(start[name], before[name])):
                changed.append(Touched(name, 0.0, owner_of(after[name]), found, anyway=True))
    return _grouped(created, after), _sorted(changed), _grouped(deleted, before)


def _sorted(listed: Sequence[Touched]) -> list[Touched]:
    return sorted(listed, key=lambda t: (t.at, t.name))


def _grouped(listed: Sequence[Touched], objects: Objects) -> list[Touched]:
    """Return the list with the objects of each Machine as its parts."""
    names = {t.name for t in listed}
    parts: dict[str, list[str]] = defaultdict(list)
    alone = []
    for one in listed:
        machine = _machine_of(one.name, objects)
        if machine in names and machine != one.name:
            parts[machine].append(one.name)
        else:
            alone.append(one)
    return _sorted([Touched(t.name, t.at, t.owner, parts=tuple(sorted(parts.get(t.name, ()))), anyway=t.anyway) for t in alone])


def _machine_of(name: str, objects: Objects) -> str:
    for _ in range(_LIFT):
        if name.startswith("Machine/") or name not in objects:
            return name
        name = owner_of(objects[name])
    return ""


def trace(steps: Sequence[Step]) -> list[Json]:
    """Return the events in order, with the fields that change."""
    made: list[Json] = []
    for step in steps[:MOST_TRACED]:
        one: Json = {"seconds": round(step.at, 1), "verb": step.verb, "object": step.name}
        if step.owner:
            one["owner"] = step.owner
        if step.verb == "change":
            found: tuple[Field, ...] = fields(msgspec.json.decode(step.old), msgspec.json.decode(step.new))
            one["fields"] = [f.to_json() for f in found[:_SHOWN]]
        made.append(one)
    return made
