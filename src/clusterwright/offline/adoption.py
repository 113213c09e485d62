"""What would change if our controllers took over an installation that others run: their writes, forecast by their own passes.

A pass over every object that one of ours reconciles, each in a world of its own; nothing is contacted and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import UPGRADE_STEP_ANNOTATION
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.ownership import name_of
from clusterwright.offline.passes import run_passes

_BOOKKEEPING: Final = frozenset({"managedFields", "resourceVersion", "generation"})
_KEPT: Final = ("metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.ownerReferences")
"""Of the metadata, what may be added to and must not be taken from."""
_STEP: Final = ("metadata", "annotations", UPGRADE_STEP_ANNOTATION)
"""Upstream before v1.14 leaves this annotation empty while no upgrade runs; v1.14 removes it. Both mean the same."""
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Write:
    """One write that would be made. `matters`: it changes more than what a controller says of an object."""

    controller: str
    verb: str
    object: str
    fields: tuple[str, ...] = ()
    matters: bool = False

    def to_json(self) -> Json:
        """As `adopt -o json` shows it."""
        return {
            "controller": self.controller,
            "verb": self.verb,
            "object": self.object,
            "fields": list(self.fields),
            "matters": self.matters,
        }


@dataclass(frozen=True, slots=True)
class Forecast:
    """The writes, and the passes that could not be finished, each with what was in the way."""

    writes: tuple[Write, ...]
    unfinished: tuple[tuple[str, str, str], ...]
    """Controller, object and error."""
    passes: int


def forecast(bundle: Bundle, controllers: Collection[str]) -> Forecast:
    """Return what the named controllers would write first, over all objects of a bundle that they reconcile."""
    before = {name_of(o.kind, *o.key): o.json for o in map(Unstructured, bundle.objects)}
    writes: dict[Write, None] = {}
    unfinished: list[tuple[str, str, str]] = []
    count = 0
    for entry in registry.ENTRIES:
        if entry.name not in controllers:
            continue
        subjects = [name for name in before if name.startswith(f"{entry.kind}/")]
        for subject, one in run_passes(bundle, subjects, entry.name).items():
            count += 1
            writes.update(dict.fromkeys(_writes(entry.name, subject, one.result, before)))
            if one.result["error"]:
                unfinished.append((entry.name, subject, one.result["error"]))
    return Forecast(tuple(writes), tuple(unfinished), count)


def _writes(controller: str, subject: str, result: Json, before: Mapping[str, Mapping[str, Any]]) -> Iterator[Write]:
    after = result["object"]
    yield from _write(controller, subject, before[subject], after)
    others = {name_of(o.kind, *o.key): o.json for o in map(Unstructured, result["others"].values())}
    for action in result["actions"]:
        name = name_of(action["kind"], action["namespace"], action["name"])
        if action["kind"] == "Event":
            continue
        if name in before and name in others:
            yield from _write(controller, name, before[name], others[name])
        else:
            yield Write(controller, action["verb"], name, matters=True)


def _write(controller: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any] | None) -> Iterator[Write]:
    if after is None:
        yield Write(controller, "delete", name, matters=True)
        return
    changed = list(_changes(before, after, ()))
    if changed:
        fields = tuple(dict.fromkeys(".".join(path) for path, _, _ in changed))
        yield Write(controller, "update", name, fields, any(_matters(*change) for change in changed))


def _changes(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield every path at which two values differ, with both."""
    if isinstance(before, dict) and after is _ABSENT and path[:1] == ("metadata",):
        after = {}
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after} - (_BOOKKEEPING if path == ("metadata",) else frozenset())):
            yield from _changes(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif before != after:
        yield path, before, after


def _matters(path: tuple[str, ...], before: Any, after: Any) -> bool:
    """Return whether a change is more than a status, an addition to the metadata, or the end of an empty mark."""
    if path[0] == "status" or (path == _STEP and not before and after is _ABSENT):
        return False
    if ".".join(path[:2]) not in _KEPT:
        return True
    if before is _ABSENT:
        return False
    if isinstance(before, list) and isinstance(after, list):
        return any(item not in after for item in before)
    return True
