"""Recorded single passes, each played once for everything that is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import clusterwright
from clusterwright.tables import Table, contradictions, observing
from vectors import replay, v1_14

CHANGED = frozenset({"kubeadmconfig", "topology"})
"""Sets whose answers hold texts that v1.14 changed."""


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
            for vector in filter(taking, replay.vectors(name)):
                more = {"controller": vector["controller"]} if "controller" in vector else {}
                answer = clusterwright.decide(vector["objects"], vector["subject"], **more)
                played.count += 1
                found = replay.differences(v1_14.updated(vector) if name in CHANGED else vector, answer)
                if {path for path, *_ in found} != v1_14.PASSES.get(vector["id"], frozenset()):
                    played.differing[vector["id"]] = found
                for table, row in answer["rows"].items():
                    # tables of a Machine that another object's pass decides are traced once for each Machine
                    played.rows.setdefault(table.partition(" of ")[0], set()).add(row)
    return played
