"""Delayed writes of a pass, which the next pass over the same object may replace.

An object that comes up changes its messages and counts at every step, many times a second, and no controller acts on those. So a pass whose
only write is such a report leaves it here. It is sent after DELAY. The next pass over the key replaces it or, if it has a real change to
write, sends everything at once. LIMIT after the first report it is sent in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.reconcile import Reconciler, Result

DELAY: Final = 0.5
LIMIT: Final = 1.0
"""Seconds after which the oldest report of a key is sent, even if passes keep replacing it."""
_EARLY: Final = 0.001  # a timer may ring that much before its time

Report = Callable[[], Awaitable[object]]
"""Sends one write. It raises failures; NotFound means that the object to write is gone."""

_TOLD: Final = frozenset({"observed_generation"})
"""Fields of a status that only follow others."""


def is_report(before: Object, after: Object) -> bool:
    """Return whether a change is only a report: counts, reasons, messages, and conditions that were not True and are not.

    A condition that becomes True or stops being True, and any other field inside or outside the status, are real changes.
    """
    if any(getattr(before, name) != getattr(after, name) for name in before.__struct_fields__ if name != "status"):
        return False
    was, becomes = (_facts(getattr(obj, "status", None)) or {} for obj in (before, after))
    return bool(was == becomes)


def _facts(value: Any) -> Any:
    """Return the facts that other controllers may act on: everything except counts, and only the types of True conditions.

    Empty equals absent.
    """
    if isinstance(value, tuple):
        return tuple(map(_facts, value))
    if not isinstance(value, msgspec.Struct):
        return value
    found = {}
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if name == "conditions":
            part = {c.type for c in part if c.status == "True"}
        elif name in _TOLD or type(part) is int:
            continue
        else:
            part = _facts(part)
        if part or part is False:
            found[name] = part
    return found


@dataclass(frozen=True, slots=True)
class _Left:
    reports: tuple[Report, ...]
    since: float
    """When the oldest unsent report was left."""
    at: float
    """When these were left."""


class Reports:
    """The delayed writes of one controller, by the key of the pass. Passes and sendings of one key never overlap."""

    def __init__(self) -> None:
        self._left: dict[ObjectKey, _Left] = {}

    def leave(self, key: ObjectKey, reports: Sequence[Report] = ()) -> None:
        """Replace the writes that earlier passes left. Without reports, nothing is left to send."""
        before, now = self._left.pop(key, None), asyncio.get_running_loop().time()
        if reports:
            self._left[key] = _Left(tuple(reports), now if before is None else before.since, now)

    def wait(self, key: ObjectKey) -> float | None:
        """Return the seconds until the writes must be sent; None: there are none."""
        left = self._left.get(key)
        if left is None:
            return None
        wait = min(left.at + DELAY, left.since + LIMIT) - asyncio.get_running_loop().time()
        return wait if wait > _EARLY else 0.0

    async def send(self, key: ObjectKey) -> None:
        """Send the writes. All are attempted; raises the failures, several as an ExceptionGroup."""
        left = self._left.pop(key, None)
        errors: list[Exception] = []
        for report in left.reports if left is not None else ():
            try:
                await report()
            except NotFound:
                continue
            except Exception as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup(f"failed to report on {key}", errors)

    async def complete(self, reconciler: Reconciler, key: ObjectKey) -> Result:
        """Run a pass and send its delayed writes, like a controller without another pass in between."""
        try:
            return await reconciler.reconcile(key)
        finally:
            await self.send(key)

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys with delayed writes."""
        return tuple(self._left)
