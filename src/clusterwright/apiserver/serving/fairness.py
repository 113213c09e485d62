"""API priority and fairness: network requests share the server by level and by flow, as in kube-apiserver.

A level has seats. A request without a free seat waits in the queue of its flow, and queues take turns. So a user who floods the server
only delays their own requests, and never holds all seats. Requests that wait too long, or behind too many, are answered 429.
Controllers of this process do not use the network, and administrators are exempt: these are always served.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clusterwright.apiserver.core import Core
from clusterwright.apiserver.flows import LEVELS, SCHEMAS, Flow, Flows, Level
from clusterwright.apiserver.metrics import escaped
from clusterwright.apiserver.status import StatusError, failure
from clusterwright.apiserver.storage.store import Event

WAIT: Final = 15.0
_Key = tuple[str, str]
"""Schema and distinguisher: each pair has a queue."""


class _Queues:
    """The seats of one level, and its waiting flows in serving order."""

    def __init__(self) -> None:
        self.held: Counter[_Key] = Counter()
        self.busy = 0
        self.queues: OrderedDict[_Key, deque[asyncio.Future[None]]] = OrderedDict()
        self.level: Level | None = None

    @property
    def waiting(self) -> int:
        return sum(map(len, self.queues.values()))

    @property
    def is_full(self) -> bool:
        return self.level is not None and self.level.seats is not None and self.busy >= self.level.seats

    def take(self, key: _Key) -> bool:
        """Take a seat if one is free for this flow; one flow cannot take the last quarter of a level."""
        seats = None if self.level is None else self.level.seats
        if seats is not None and (self.busy >= seats or self.held[key] >= math.ceil(seats * 3 / 4)):
            return False
        self.busy += 1
        self.held[key] += 1
        return True

    def leave(self, key: _Key) -> None:
        """Return a seat, and give it to a waiting request if there is one."""
        self.busy -= 1
        self.held[key] -= 1
        if not self.held[key]:
            del self.held[key]
        self.serve()

    def serve(self) -> None:
        """Give free seats to waiting requests: to the oldest of each flow in turn."""
        passed = 0
        while self.queues and passed < len(self.queues) and not self.is_full:
            key, queue = next(iter(self.queues.items()))
            while queue and queue[0].done():
                queue.popleft()
            passed += 1
            if queue and self.take(key):
                queue.popleft().set_result(None)
                passed = 0
            self.queues.move_to_end(key)
            if not queue:
                del self.queues[key]


class Fairness:
    """The levels of one server from its current FlowSchemas and PriorityLevelConfigurations."""

    def __init__(self, server: Core, wait: float = WAIT) -> None:
        self._server = server
        self._wait = wait
        self._flows: Flows | None = None
        self._queues: dict[str, _Queues] = {}
        self._dispatched: Counter[_Key] = Counter()
        self._rejected: Counter[tuple[str, str, str]] = Counter()
        """Refused requests by schema, level and reason."""
        for name in (SCHEMAS, LEVELS):
            server.store.table(name).hooks.append(self)

    def offer(self, event: Event) -> None:
        """Reread schemas and levels before the next request, because one has changed."""
        del event
        self._flows = None

    @property
    def flows(self) -> Flows:
        """Return the current schemas and levels."""
        if self._flows is None:
            schemas, levels = ([entry.raw for entry in self._server.store.table(name).objects.values()] for name in (SCHEMAS, LEVELS))
            self._flows = Flows(schemas, levels)
            for name in [name for name, queues in self._queues.items() if name not in self._flows.levels and not queues.busy]:
                del self._queues[name]
            for name, level in self._flows.levels.items():
                queues = self._queues.setdefault(name, _Queues())
                queues.level = level
                queues.serve()  # a level may have more seats than before
            for counts in (self._dispatched, self._rejected):
                for key in [key for key in counts if key[1] not in self._flows.levels]:
                    del counts[key]
        return self._flows

    def seat(self, flow: Flow) -> Seat:
        """Return a seat for `async with`. Raises StatusError (429) if none is free in time."""
        return Seat(self, flow)

    async def _sit(self, flow: Flow) -> _Queues | None:
        queues = None
        if flow.level.seats is not None:
            queues, key = self._queues.setdefault(flow.level.name, _Queues()), (flow.schema, flow.distinguisher)
            queues.level = queues.level or flow.level
            if not queues.take(key):
                await self._queue(queues, key, flow)
        self._dispatched[flow.schema, flow.level.name] += 1
        return queues

    async def _queue(self, queues: _Queues, key: _Key, flow: Flow) -> None:
        queue = queues.queues.setdefault(key, deque())
        if len(queue) >= flow.level.waiting:
            if not queue:
                del queues.queues[key]
            self._reject(flow, "queue-full" if flow.level.waiting else "concurrency-limit")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(self._wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                queues.leave(key)  # the seat came too late
            elif turn in queue:
                queue.remove(turn)
                if not queue:
                    queues.queues.pop(key, None)
            if isinstance(error, TimeoutError):
                self._reject(flow, "time-out")
            raise

    def _reject(self, flow: Flow, reason: str) -> None:
        self._rejected[flow.schema, flow.level.name, reason] += 1
        raise rejected() from None

    def metrics(self) -> Iterable[str]:
        """Return lines in Prometheus' format, with kube-apiserver's names."""
        levels = sorted(self.flows.levels.items())
        queues = self._queues
        seats = [((level,), found.seats or 0) for level, found in levels]
        yield from _series("nominal_limit_seats", "gauge", "Seats of each priority level.", _LEVEL, seats)
        taken = [((level,), queues[level].busy) for level, _ in levels]
        yield from _series("current_executing_seats", "gauge", "Seats that are taken.", _LEVEL, taken)
        waiting = [((level,), queues[level].waiting) for level, _ in levels]
        yield from _series("current_inqueue_requests", "gauge", "Requests that wait for a seat.", _LEVEL, waiting)
        served, refused = sorted(self._dispatched.items()), sorted(self._rejected.items())
        yield from _series("dispatched_requests_total", "counter", "Requests that were worked on.", _FLOW, served)
        yield from _series("rejected_requests_total", "counter", "Requests that were told to come back later.", (*_FLOW, "reason"), refused)


class Seat:
    """A seat, held while a request is served. It is a class, because a generator would cost every request more time."""

    __slots__ = ("_fairness", "_flow", "_queues")

    def __init__(self, fairness: Fairness, flow: Flow) -> None:
        self._fairness, self._flow = fairness, flow
        self._queues: _Queues | None = None

    async def __aenter__(self) -> None:
        self._queues = await self._fairness._sit(self._flow)

    async def __aexit__(self, *_: object) -> None:
        if self._queues is not None:
            self._queues.leave((self._flow.schema, self._flow.distinguisher))


_LEVEL: Final = ("priority_level",)
_FLOW: Final = ("flow_schema", "priority_level")


def _series(name: str, kind: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], int]]) -> Iterator[str]:
    """Return the lines of one metric."""
    name = f"apiserver_flowcontrol_{name}"
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for values, number in samples:
        shown = ",".join(f'{label}="{escaped(value)}"' for label, value in zip(labels, values, strict=True))
        yield f"{name}{{{shown}}} {number}"


def rejected() -> StatusError:
    """Return the error 429 with kube-apiserver's message."""
    text = "Too many requests, please try again later."
    return failure(429, "TooManyRequests", text, {"retryAfterSeconds": 1}, retry_after=1)
