"""The keys to reconcile.

Fair: keys are handed out in the order in which they came; those of low priority (startup, resync) when no other waits, and one in
    sixteen all the same, so that they are never starved.
Stingy: a key that is added many times before it is handed out is handed out once.
Serial: a key that is being worked on is never handed out again before it is done; if it was added meanwhile, it comes again.
Delayed: a key may be asked for later. Of several such votes the soonest counts; being handed out for any reason settles
    them all, because the pass that begins will cast its own.
Told: a key may come for what its passes left to be written, too; a pass over it comes instead, if one is asked for before.
Rate limited: failures of a key are remembered and double its delay until it succeeds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.metrics import RuntimeMetrics

_LOW_TURN = 16
_MAX_REASONS = 5
MOST_TOLD = 2000
"""The most waiting keys whose positions are reported."""


class Priority(IntEnum):
    """Which keys go first."""

    LOW = 0
    NORMAL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The wait after the n-th failure in a row: floor + first * 2^(n-1), at most `most`. Seconds."""

    first: float = 0.005
    most: float = 1000.0
    floor: float = 0.0
    """The shortest time between two passes of one key; 0: no limit."""

    def delay(self, failures: int) -> float:
        """Return the wait after `failures` failures."""
        return self.floor + min(self.first * 2.0 ** min(failures - 1, 60), self.most)


@dataclass(frozen=True, slots=True)
class Request:
    """A key to be reconciled, and why (only for traces: requests with the same key are equal)."""

    key: ObjectKey
    reasons: tuple[str, ...] = field(default=(), compare=False)
    priority: Priority = field(default=Priority.NORMAL, compare=False)
    added: float = field(default=0.0, compare=False)
    is_report: bool = field(default=False, compare=False)
    """Whether only delayed writes of its passes are due."""


@dataclass(slots=True)
class _Waiting:
    """A key that is queued, or that is queued again when its running pass is done."""

    priority: Priority
    reasons: list[str]
    added: float
    is_report: bool = False


@dataclass(frozen=True, slots=True)
class Backlog:
    """The keys of a queue at one time."""

    length: int
    oldest: float
    """How many seconds the oldest waiting key has waited."""
    processing: int
    ahead: dict[ObjectKey, int]
    """By waiting key: how many keys precede it, if nothing changes."""
    at_work: tuple[ObjectKey, ...]
    """The keys whose passes are running."""


class ShutDown(Exception):
    """The queue hands out no more keys."""


class WorkQueue:
    """The queue of one controller. Not thread-safe: it belongs to the event loop and uses its time."""

    def __init__(
        self,
        name: str,
        *,
        backoff: Backoff | None = None,
        metrics: RuntimeMetrics | None = None,
    ) -> None:
        self.name = name
        self._backoff = backoff or Backoff()
        self._metrics = metrics
        self._ready: dict[Priority, deque[ObjectKey]] = {Priority.NORMAL: deque(), Priority.LOW: deque()}
        self._dirty: dict[ObjectKey, _Waiting] = {}
        self._processing: dict[ObjectKey, float] = {}
        self._timers: dict[ObjectKey, tuple[asyncio.TimerHandle, str]] = {}
        self._reports: dict[ObjectKey, asyncio.TimerHandle] = {}
        self._failures: dict[ObjectKey, int] = {}
        self._earliest: dict[ObjectKey, float] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._turn = 0
        self._closed = False
        if metrics:
            metrics.depth.set(self.__len__, name, name)

    def __len__(self) -> int:
        return len(self._dirty) - sum(1 for key in self._dirty if key in self._processing)

    def add(self, key: ObjectKey, reason: str = "", priority: Priority = Priority.NORMAL) -> None:
        """Queue the key."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if self._metrics:
            self._metrics.adds.add(self.name, self.name)
        waiting = self._dirty.get(key)
        if waiting is not None:
            waiting.is_report = False
            if reason and reason not in waiting.reasons and len(waiting.reasons) < _MAX_REASONS:
                waiting.reasons.append(reason)
            if priority > waiting.priority:
                waiting.priority = priority
                if key not in self._processing:
                    self._push(key, priority)
            return
        earliest = self._earliest.get(key, 0.0)
        if earliest > loop.time() and key not in self._processing:
            self._at(key, earliest, reason)
            return
        self._dirty[key] = _Waiting(priority, [reason] if reason else [], loop.time())
        if key not in self._processing:
            self._push(key, priority)

    def add_after(self, key: ObjectKey, seconds: float, reason: str = "") -> None:
        """Queue the key after a while, unless it comes sooner for another reason."""
        if seconds <= 0:
            self.add(key, reason)
        else:
            loop = asyncio.get_running_loop()
            self._at(key, max(loop.time() + seconds, self._earliest.get(key, 0.0)), reason)

    def add_report(self, key: ObjectKey, seconds: float) -> None:
        """Queue the key after a while to send the delayed writes of its passes.

        A pass over the key that starts before cancels this, and requests it again if writes are left. Requests for a pass stay.
        """
        if self._closed:
            return
        if (present := self._reports.pop(key, None)) is not None:
            present.cancel()
        self._reports[key] = asyncio.get_running_loop().call_later(seconds, self._report, key)

    def _report(self, key: ObjectKey) -> None:
        del self._reports[key]
        if key not in self._dirty:
            self._dirty[key] = _Waiting(Priority.NORMAL, [], asyncio.get_running_loop().time(), is_report=True)
            if key not in self._processing:
                self._push(key, Priority.NORMAL)

    def _at(self, key: ObjectKey, when: float, reason: str) -> None:
        if self._closed:
            return
        present = self._timers.get(key)
        if present is not None:
            if present[0].when() <= when:
                return
            present[0].cancel()
        self._timers[key] = (asyncio.get_running_loop().call_at(when, self._ring, key), reason)

    def _ring(self, key: ObjectKey) -> None:
        _, reason = self._timers.pop(key)
        self._earliest.pop(key, None)
        self.add(key, reason)

    def _push(self, key: ObjectKey, priority: Priority) -> None:
        self._ready[priority].append(key)
        self._wake_next()

    async def get(self) -> Request:
        """Return the next key, which counts as running until `done`; raises ShutDown."""
        while True:
            if self._closed:
                raise ShutDown(self.name)
            if (request := self._pop()) is not None:
                return request
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # woken and cancelled at once: the wake-up belongs to someone else now
                if getter.done() and not getter.cancelled():
                    self._wake_next()
                raise

    def _wake_next(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _pop(self) -> Request | None:
        self._turn += 1
        order = (Priority.LOW, Priority.NORMAL) if self._turn % _LOW_TURN == 0 else (Priority.NORMAL, Priority.LOW)
        for priority in order:
            queue = self._ready[priority]
            while queue:
                key = queue.popleft()
                waiting = self._dirty.get(key)
                if waiting is None or waiting.priority != priority or key in self._processing:
                    continue  # promoted to another queue, or handed out from there
                del self._dirty[key]
                if not waiting.is_report and (timer := self._timers.pop(key, None)) is not None:
                    timer[0].cancel()
                if (handle := self._reports.pop(key, None)) is not None:
                    handle.cancel()
                now = asyncio.get_running_loop().time()
                self._processing[key] = now
                if self._metrics:
                    self._metrics.queue_seconds.observe(now - waiting.added, self.name, self.name)
                return Request(key, tuple(waiting.reasons), priority, waiting.added, waiting.is_report)
        return None

    def done(self, key: ObjectKey) -> None:
        """Mark the key as no longer running; queue it again if it was added meanwhile."""
        started = self._processing.pop(key)
        if self._backoff.floor:
            loop = asyncio.get_running_loop()
            if (earliest := started + self._backoff.floor) > loop.time():
                self._earliest[key] = earliest
                waiting = self._dirty.pop(key, None)
                if waiting is not None:
                    self._at(key, earliest, waiting.reasons[0] if waiting.reasons else "")
                elif key not in self._timers:
                    # nothing waits: forget the floor when it has passed, or the map would grow forever
                    loop.call_at(earliest, self._forget_floor, key)
                return
        if key in self._dirty:
            self._push(key, self._dirty[key].priority)

    def _forget_floor(self, key: ObjectKey) -> None:
        if key not in self._timers and self._earliest.get(key, 0.0) <= asyncio.get_running_loop().time():
            self._earliest.pop(key, None)

    def fail(self, key: ObjectKey, reason: str = "", at_least: float = 0.0, at_most: float = float("inf")) -> float:
        """Queue a failed key after a delay that doubles with each failure in a row; return the delay in seconds.

        `at_least` takes precedence over `at_most`: a requested wait is respected.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(min(self._backoff.delay(failures), at_most), at_least)
        if self._metrics:
            self._metrics.retries.add(self.name, self.name)
        self.add_after(key, delay, reason)
        return delay

    def succeed(self, key: ObjectKey) -> None:
        """Forget the failures of the key."""
        self._failures.pop(key, None)

    def failures(self, key: ObjectKey) -> int:
        """Return the number of failures in a row."""
        return self._failures.get(key, 0)

    @property
    def is_idle(self) -> bool:
        """Whether no key is ready or running; delayed keys do not count."""
        return not self._dirty and not self._processing

    def backlog(self, wanted: Callable[[ObjectKey], bool] = lambda key: True, *, most: int = MOST_TOLD) -> Backlog:
        """Return the waiting keys; of the `wanted` ones, at most the first `most`."""
        ahead: dict[ObjectKey, int] = {}
        place, oldest, now = 0, 0.0, asyncio.get_running_loop().time()
        for priority in (Priority.NORMAL, Priority.LOW):
            for key in self._ready[priority]:
                waiting = self._dirty.get(key)
                if waiting is None or waiting.priority != priority or key in self._processing or key in ahead:
                    continue
                oldest = max(oldest, now - waiting.added)
                if not waiting.is_report and len(ahead) < most and wanted(key):
                    ahead[key] = place
                place += 1
        at_work = tuple(key for key in self._processing if wanted(key))
        return Backlog(place, oldest, len(self._processing), ahead, at_work)

    @property
    def delayed(self) -> dict[ObjectKey, tuple[float, str]]:
        """The due time of each delayed key, on the loop's clock, and the reason."""
        return {key: (timer.when(), reason) for key, (timer, reason) in self._timers.items()}

    def close(self) -> None:
        """Hand out no more keys; waiting callers get ShutDown."""
        self._closed = True
        for timer, _ in self._timers.values():
            timer.cancel()
        for handle in self._reports.values():
            handle.cancel()
        self._timers.clear()
        self._reports.clear()
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
