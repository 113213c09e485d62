"""What was decided, for people: the last decisions about each object."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.logging import get_logger

_log = get_logger("decisions")


@dataclass(frozen=True, slots=True)
class Decision:
    """Which row of which table fired for an object, and when."""

    at: datetime
    controller: str
    key: ObjectKey
    rows: Mapping[str, str]


class Traces:
    """A ring of decisions. Equal decisions about an object are kept once, with the latest time."""

    def __init__(self, clock: Clock, capacity: int = 1000) -> None:
        self._clock = clock
        self._latest: dict[tuple[str, ObjectKey], Decision] = {}
        self._ring: deque[Decision] = deque(maxlen=capacity)
        self._capacity = capacity

    def record(self, controller: str, key: ObjectKey, rows: Mapping[str, str]) -> None:
        """Note a decision; log it if it differs from the last one about the object."""
        of = (controller, key)
        before = self._latest.pop(of, None)
        decision = self._latest[of] = Decision(self._clock.now(), controller, key, dict(rows))
        if len(self._latest) > self._capacity:
            del self._latest[next(iter(self._latest))]
        if before is None or before.rows != decision.rows:
            self._ring.append(decision)
            changed = {table: row for table, row in decision.rows.items() if before is None or before.rows.get(table) != row}
            _log.info(
                "Decided", controller=controller, namespace=key.namespace, name=key.name, **{f"row.{t}": r for t, r in changed.items()}
            )

    def latest(self, controller: str, key: ObjectKey) -> Decision | None:
        """The last decision about an object."""
        return self._latest.get((controller, key))

    def recent(self) -> list[Decision]:
        """Decisions that differed from those before them, oldest first."""
        return list(self._ring)
