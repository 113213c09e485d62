"""Passes of our own controllers over a bundle, for explanations: what they would find, and whom they would ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.conditions import InvalidConditions, conditions_of
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.contracts import complete
from clusterwright.offline.decide import run_pass, run_to_completion
from clusterwright.offline.kinship import name_of
from clusterwright.offline.standins import with_stand_ins
from clusterwright.offline.testimony import Finding
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys
from clusterwright.tables import Explanation, Table, observing


@dataclass(slots=True)
class Pass:
    """What one pass came to."""

    subject: str
    result: Json
    tables: list[Explanation] = field(default_factory=list)

    def finding(self) -> Finding:
        """Return what it says of its object."""
        asked: dict[str, tuple[str, ...]] = {}
        for table in self.tables:
            subjects = [s for row in table.rows if row.fired for s in row.about]
            asked[table.table] = tuple(dict.fromkeys(name_of(s.kind, s.namespace, s.name) for s in subjects))
        after, error = self.result["object"], self.result["error"] or ""
        try:
            return Finding(None if after is None else conditions_of(after), error, asked)
        except InvalidConditions:
            return Finding(None, error, asked)


def findings_of(passes: Mapping[str, Pass], bundle: Bundle) -> dict[str, Finding]:
    """Return what the passes say of their objects, each together with what passes over others would write there."""
    findings = {name: one.finding() for name, one in passes.items()}
    before = {name_of(o.kind, *o.key): o.json for o in map(Unstructured, bundle.objects)}
    for one in passes.values():
        for after in map(Unstructured, one.result["others"].values()):
            name = name_of(after.kind, *after.key)
            own = findings.get(name)
            if own is None or own.conditions is None or name not in before:
                continue
            try:
                was = {c.type: c for c in conditions_of(before[name])}
                changed = {c.type: c for c in conditions_of(after) if c != was.get(c.type)}
            except InvalidConditions:
                continue
            findings[name] = replace(own, conditions=(*(c for c in own.conditions if c.type not in changed), *changed.values()))
    return findings


def run_passes(bundle: Bundle, subjects: Iterable[str], controller: str = "") -> Mapping[str, Pass]:
    """A pass over each of the subjects (`Kind/namespace/name`) that a controller of ours reconciles, each as if it were the only one.

    `controller` names one of the kind's controllers; empty means the first.
    """
    wanted = [s for s in dict.fromkeys(subjects) if registry.find(s.partition("/")[0], controller) is not None]
    passes: dict[str, Pass] = {}
    now = bundle.moment()

    async def all_of_them() -> Json:
        keys = sample_keys()
        prepared = await with_stand_ins(complete(bundle), now, keys)
        first = World(prepared, now, keys)
        for subject in wanted:
            passes[subject] = await _one(World(prepared, now, keys, like=first), subject, controller)
        return {}

    if wanted:
        run_to_completion(all_of_them())
    return passes


async def _one(world: World, subject: str, controller: str) -> Pass:
    kind, _, rest = subject.partition("/")
    namespace, _, name = rest.rpartition("/")
    entry = registry.find(kind, controller)
    assert entry is not None
    definition = registry.definition(entry)
    tables: list[Explanation] = []

    def observe(table: Table[Any], snapshot: Any) -> None:
        tables.append(table.explain(snapshot))

    with observing(observe):
        result = await run_pass(world, definition.make(world.dependencies()), definition.kind, ObjectKey(namespace, name))
    return Pass(subject, result, tables)
