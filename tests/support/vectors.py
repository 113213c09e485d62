"""Recorded single passes, each played once for everything that is asked of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import clusterwright
from clusterwright.tables import Table, contradictions, observing
from vectors import replay, v1_14

CHANGED = frozenset({"kubeadmconfig", "topology"})
"""Sets whose answers hold texts that v1.14 changed."""


FIRST_HALVES = {
    "cluster": 31,
    "clusterclass": 28,
    "extensionconfig": 4,
    "kubeadmconfig": 8,
    "kubeadmcontrolplane": 1,
    "machine": 68,
    "machinedeployment": 21,
    "machinehealthcheck": 19,
    "machinepool": 2,
    "machineset": 18,
}
"""How many vectors of a set record a pass that writes only that the object is not paused, and leaves the rest to the next pass."""


def decide(vector: dict[str, Any]) -> dict[str, Any]:
    """One pass of ours in the world of a vector."""
    more = {"controller": vector["controller"]} if "controller" in vector else {}
    return dict(clusterwright.decide(vector["objects"], vector["subject"], **more))


def subject_of(vector: dict[str, Any]) -> dict[str, Any]:
    """The object of the pass, before it."""
    kind, namespace, name = vector["subject"].split("/")
    wanted = (kind, namespace, name)
    found = (
        o for o in vector["objects"] if (o["kind"], o.get("metadata", {}).get("namespace", ""), o.get("metadata", {}).get("name")) == wanted
    )
    return next(found, {})


def is_first_half(vector: dict[str, Any]) -> bool:
    """Whether the recorded pass ends when it has written that the object is not paused. Ours goes on, and writes it with the rest."""
    expected = vector["expect"].get("conditions", {}).get("Paused")
    before = replay.conditions_of(subject_of(vector), "status.conditions", ("status", "reason", "message")).get("Paused")
    return expected is not None and expected[0] == "False" and expected != before


def differences(vector: dict[str, Any], answer: dict[str, Any]) -> list[replay.Difference]:
    """Where our pass ends otherwise than the recorded one, or than the recorded one and the next where two passes are one of ours.

    There are two such places. A pass that ends with Paused is followed by one that does the rest: the end of both must be the end of ours.
    And a pass that changed the spec is followed by one that observes the generation of that change.
    """
    if is_first_half(vector):
        return _after_both(vector, answer)
    found = replay.differences(vector, answer)
    if answer["object"] is None or not subject_of(vector):
        return found
    before, after = (obj["metadata"].get("generation", 0) for obj in (subject_of(vector), answer["object"]))
    return [one for one in found if one != ("status.observedGeneration", before, after) or after <= before]


def _after_both(vector: dict[str, Any], answer: dict[str, Any]) -> list[replay.Difference]:
    status, reason, message = vector["expect"]["conditions"]["Paused"]
    between = copy.deepcopy(vector)
    subject = subject_of(between)
    conditions = subject.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [c for c in conditions if c["type"] != "Paused"]
    now = next(o["now"] for o in vector["objects"] if o["kind"] == "Observation")
    said = {"type": "Paused", "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
    conditions.append(said | {"observedGeneration": subject["metadata"].get("generation", 0)})
    given = "\n".join(replay.plain_text(vector["objects"]))
    wanted, got = _comparable(decide(between), given), _comparable(answer, given)
    found: list[replay.Difference] = [(f"after both: {part}", wanted[part], got[part]) for part in wanted if wanted[part] != got[part]]
    if answer["object"] is None:
        return found
    told = replay.conditions_of(answer["object"], "status.conditions", ("status", "reason", "message")).get("Paused")
    return found if told == [status, reason, message] else [*found, ("conditions.Paused", [status, reason, message], told)]


def _comparable(answer: dict[str, Any], given: str) -> dict[str, Any]:
    """An answer without what depends on how often an object was written: versions, random values, a generation that is told with the rest."""
    answer = copy.deepcopy(answer)
    answer["data"] = {name: replay.normalised(value, given) for name, value in answer["data"].items()}
    answer["others"] = {name: {k: v for k, v in obj.items() if k != "data"} for name, obj in answer["others"].items()}
    for obj in (answer["object"], *answer["others"].values()):
        for name in ("resourceVersion", "managedFields"):
            (obj or {}).get("metadata", {}).pop(name, None)
    status = (answer["object"] or {}).get("status", {})
    if status.get("observedGeneration") == (answer["object"] or {}).get("metadata", {}).get("generation"):
        status.pop("observedGeneration", None)
    status["conditions"] = sorted((c for c in status.get("conditions", []) if c["type"] != "Paused"), key=lambda c: str(c["type"]))
    return answer


@dataclass
class Played:
    """What the passes of a set led to; the vectors themselves are not kept, they are large."""

    count: int = 0
    differing: dict[str, list[replay.Difference]] = field(default_factory=dict)
    """By the vector's id, where our answer differs from the recorded one."""
    rows: dict[str, set[str]] = field(default_factory=dict)
    """By the name of a table, the rows that fired in the answers."""
    decided: set[str] = field(default_factory=set)
    """The tables that were asked at all, as intermediate ones are too."""
    first_halves: set[str] = field(default_factory=set)
    """The ids of vectors that record only the first of two passes, of which ours are one; see `is_first_half`."""
    contradictions: set[tuple[str, str]] = field(default_factory=set)
    """What a table declares of all worlds and a recorded one breaks."""

    def missed(self, table: Table[Any]) -> set[str]:
        """The rows of a table in which no answer ended."""
        return {row.name for row in table.rows} - self.rows.get(table.name, set())


def play(*sets: str, taking: Callable[[dict[str, Any]], bool] = lambda _: True) -> Played:
    """Decide every recorded pass of the sets, and look at all of it on the way."""
    played = Played()

    def observe(table: Table[Any], snapshot: Any) -> None:
        played.decided.add(table.name)
        played.contradictions.update((table.name, text) for text in contradictions(table, snapshot))

    with observing(observe):
        for name in sets:
            for recorded in filter(taking, replay.vectors(name)):
                vector = v1_14.updated(recorded) if name in CHANGED else recorded
                answer = decide(vector)
                played.count += 1
                if is_first_half(vector):
                    played.first_halves.add(vector["id"])
                found = differences(vector, answer)
                if {path for path, *_ in found} != v1_14.PASSES.get(vector["id"], frozenset()):
                    played.differing[vector["id"]] = found
                for table, row in answer["rows"].items():
                    # tables of a Machine that another object's pass decides are traced once for each Machine
                    played.rows.setdefault(table.partition(" of ")[0], set()).add(row)
    return played
