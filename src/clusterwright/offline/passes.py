"""Passes of our own controllers over a bundle, for explanations: what they would find, and whom they would ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Json, ObjectKey, Unstructured
from clusterwright.conditions import InvalidConditions, conditions_of
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.complaints import LOGS_ONLY, REDACTED
from clusterwright.offline.contracts import complete
from clusterwright.offline.decide import run_pass, run_to_completion
from clusterwright.offline.ownership import name_of
from clusterwright.offline.reported import Finding
from clusterwright.offline.standins import with_stand_ins
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys
from clusterwright.tables import Explanation, Table, observing

_OF_WRITES: Final[Mapping[str, frozenset[str]]] = {
    "ClusterResourceSet": frozenset({"ResourcesApplied", "Ready"}),
    "Machine": frozenset({"Deleting"}),
}
"""By kind: conditions that tell what came of writes to a workload cluster. A replica takes every write, also an eviction."""


def _is_failure_of_its_own(condition: Condition) -> bool:
    """Return whether a condition says no more than that the pass failed."""
    return condition.reason == "InternalError" or LOGS_ONLY in condition.message


def _is_blotted(value: Any) -> bool:
    """Return whether a recorder has taken values out, on which a pass may fail."""
    if isinstance(value, Mapping):
        return any(_is_blotted(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_is_blotted(inner) for inner in value)
    return bool(value == REDACTED)


@dataclass(slots=True)
class Pass:
    """What one pass came to."""

    subject: str
    result: Json
    tables: list[Explanation] = field(default_factory=list)

    def finding(self, written: Unstructured | None) -> Finding:
        """Return what it says of its object, as far as that is better founded than what is `written` there.

        The pass runs in a replica. Where it fails by itself, or gets on only because the replica lets it write, it proves nothing.
        """
        asked: dict[str, tuple[str, ...]] = {}
        for table in self.tables:
            subjects = [s for row in table.rows if row.fired for s in row.about]
            asked[table.table] = tuple(dict.fromkeys(name_of(s.kind, s.namespace, s.name) for s in subjects))
        after, error = self.result["object"], self.result["error"] or ""
        if written is not None and _is_blotted(written.json.get("spec")):
            error = ""  # it fails on what the recorder took out
        try:
            conditions = None if after is None else conditions_of(after)
            before = {c.type: c for c in conditions_of(written)} if written is not None else {}
        except InvalidConditions:
            return Finding(None, error, asked)
        if conditions is not None:
            of_writes = _OF_WRITES.get(self.subject.partition("/")[0], frozenset())
            conditions = tuple(before.get(c.type, c) if c.type in of_writes or _is_failure_of_its_own(c) else c for c in conditions)
        return Finding(conditions, error, asked)


def findings_of(passes: Mapping[str, Pass], bundle: Bundle) -> dict[str, Finding]:
    """Return what the passes say of their objects, each together with what passes over others would write there."""
    written = {name_of(o.kind, *o.key): o for o in map(Unstructured, bundle.objects)}
    findings = {name: one.finding(written.get(name)) for name, one in passes.items()}
    before = {name: o.json for name, o in written.items()}
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
