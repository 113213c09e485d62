"""The rows that fired in each pass: a bounded history of each object.

The history is in memory, and small: only names of tables and rows, no content of objects. Passes with equal decisions are one entry with a
count, so that the history of an object shows changes, not heartbeats.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.logging import get_logger

_log = get_logger("decisions")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a controller about an object: made in `passes` passes in a row, the first at `at`, the last at `until`."""

    at: datetime
    until: datetime
    passes: int
    controller: str
    kind: str
    key: ObjectKey
    rows: Mapping[str, str]

    def to_json(self) -> Json:
        """Return the entry in its served form."""
        return {
            "at": f"{self.at:%Y-%m-%dT%H:%M:%S.%fZ}",
            "until": f"{self.until:%Y-%m-%dT%H:%M:%S.%fZ}",
            "passes": self.passes,
            "controller": self.controller,
            "kind": self.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "rows": dict(self.rows),
        }


SELECTORS: Final = frozenset({"controller", "kind", "namespace", "name", "cluster", "only"})
"""The selectors of a query. `cluster` selects histories of verdicts only; `only=now` leaves out decisions and earlier verdicts."""
_OF_OBJECTS: Final = frozenset({"controller", "kind", "namespace", "name"})


class UnknownSelector(ValueError):
    """A query has an unknown selector; the text names it."""


Report = Callable[[Mapping[str, str]], Json]
"""Returns the report about the controllers of a process, with the selected decisions; raises UnknownSelector."""


def no_report(query: Mapping[str, str]) -> Json:
    """Return an empty report."""
    return {"traces": []}


class Traces:
    """The last decisions about each object; for the last `objects` reconciled objects, up to `changes` each."""

    def __init__(self, clock: Clock, *, objects: int = 5000, changes: int = 20) -> None:
        self._clock = clock
        self._histories: OrderedDict[tuple[str, ObjectKey], deque[Decision]] = OrderedDict()
        self._objects, self._changes = objects, changes

    def record(self, controller: str, kind: str, key: ObjectKey, rows: Mapping[str, str]) -> None:
        """Record a decision; log it if it differs from the last one about the object."""
        now, of = self._clock.now(), (controller, key)
        history = self._histories.get(of)
        if history is None:
            history = self._histories[of] = deque(maxlen=self._changes)
            if len(self._histories) > self._objects:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(of)
        before = history[-1] if history else None
        if before is not None and before.rows == rows:
            history[-1] = replace(before, until=now, passes=before.passes + 1)
            return
        history.append(Decision(now, now, 1, controller, kind, key, dict(rows)))
        changed = {table: row for table, row in rows.items() if before is None or before.rows.get(table) != row}
        _log.info("Decided", controller=controller, namespace=key.namespace, name=key.name, **{f"row.{t}": r for t, r in changed.items()})

    def latest(self, controller: str, key: ObjectKey) -> Decision | None:
        """Return the last decision about an object."""
        history = self._histories.get((controller, key))
        return history[-1] if history else None

    def of(self, controller: str, key: ObjectKey) -> tuple[Decision, ...]:
        """Return the recorded decisions of a controller about an object, oldest first."""
        return tuple(self._histories.get((controller, key), ()))

    def history(self, *, controller: str = "", kind: str = "", namespace: str = "", name: str = "") -> list[Decision]:
        """Return the recorded decisions that match the selectors, oldest first."""
        found = [
            decision
            for (by, key), history in self._histories.items()
            if controller in ("", by) and namespace in ("", key.namespace) and name in ("", key.name)
            for decision in history
            if kind in ("", decision.kind)
        ]
        return sorted(found, key=lambda decision: decision.at)

    def selected(self, query: Mapping[str, str]) -> list[Json]:
        """Return the history that a query selects, in its served form; raises UnknownSelector."""
        if unknown := sorted(query.keys() - SELECTORS):
            raise UnknownSelector(f"{', '.join(unknown)}: unknown; known: {', '.join(sorted(SELECTORS))}")
        return [decision.to_json() for decision in self.history(**of_objects(query))]


def of_objects(query: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a query that selects objects."""
    return {name: value for name, value in query.items() if name in _OF_OBJECTS}
