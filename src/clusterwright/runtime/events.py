"""Kubernetes Events: sent once, counted when repeated, grouped when too many are similar, and limited in rate.

`record` only appends to a queue; `run` sends. Losing an Event is harmless, so no failure here reaches a caller.
Behaviour follows client-go's event correlator: equal events within ten minutes raise `count` of the first; more than ten that
differ only in their message become one `(combined from similar events)`; one object may send 25 at once and one every five
minutes after that. Unlike there, what is said again within ten seconds is counted, and the count is written once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured
from clusterwright.runtime.client import Writer
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.logging import get_logger

EVENT = GroupVersionKind("", "v1", "Event")

_WINDOW = 600.0
_TOGETHER = 10.0
_EARLY = 0.001  # a timer may ring that much before its time, and then not again
_SIMILAR = 10
_BURST = 25
_REFILL = 1 / 300
_MAX_MESSAGE = 1024
_MAX_QUEUED = 1000
_REMEMBERED = 4096

_log = get_logger("events")


@dataclass(slots=True)
class _Seen:
    """An Event that was sent: its key and count."""

    key: ObjectKey
    last: float
    told: float
    """When `count` was last written."""
    stamp: str
    count: int = 1


@dataclass(slots=True)
class _Similar:
    """The messages of one (object, type, reason) within the window."""

    messages: dict[str, None]
    last: float


@dataclass(slots=True)
class _Budget:
    tokens: float
    at: float


class Recorder:
    """Records Events of one component."""

    def __init__(self, client: Writer, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._queue: deque[tuple[Json, str, str, str, datetime]] = deque(maxlen=_MAX_QUEUED)
        self._wake = asyncio.Event()
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._owed: dict[ObjectKey, _Seen] = {}
        self._similar: dict[tuple[str, ...], _Similar] = {}
        self._budgets: dict[tuple[str, ...], _Budget] = {}

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """Record an Event about `obj`; `type` is Normal or Warning."""
        self._queue.append((_reference(obj), type, reason, message[:_MAX_MESSAGE], self._clock.now()))
        self._wake.set()

    async def run(self) -> None:
        """Send recorded Events, forever."""
        while True:
            due = min((seen.told for seen in self._owed.values()), default=inf) + _TOGETHER
            with suppress(TimeoutError):
                async with asyncio.timeout(None if due == inf else max(0.0, due - self._clock.monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            await self._drain()
            await self._settle(self._clock.monotonic() - _TOGETHER + _EARLY)

    async def flush(self) -> None:
        """Send all queued Events and pending counts now."""
        await self._drain()
        await self._settle(inf)

    async def _drain(self) -> None:
        while self._queue:
            reference, type, reason, message, at = self._queue.popleft()
            try:
                await self._send(reference, type, reason, message, at)
            except ApiError as error:
                _log.warning("Event was not recorded", reason=reason, error=str(error))

    async def _settle(self, until: float) -> None:
        """Write the counts that were last written at `until` or before."""
        for seen in [seen for seen in self._owed.values() if seen.told <= until]:
            try:
                await self._count(seen)
            except ApiError as error:
                _log.debug("Event was not counted", event=str(seen.key), error=str(error))

    async def _count(self, seen: _Seen) -> None:
        self._owed.pop(seen.key, None)
        seen.told = self._clock.monotonic()
        await self._client.patch(EVENT, seen.key, {"count": seen.count, "lastTimestamp": seen.stamp})

    async def _send(self, reference: Json, type: str, reason: str, message: str, at: datetime) -> None:
        now = self._clock.monotonic()
        of = tuple(str(reference.get(name, "")) for name in ("kind", "namespace", "name", "uid"))
        if not self._within_budget(of, now):
            return
        message = self._combined((*of, type, reason), message, now)
        identity = (*of, type, reason, message)
        seen = self._seen.get(identity)
        stamp = _timestamp(at)
        if seen is not None and now - seen.last <= _WINDOW:
            seen.count, seen.last, seen.stamp = seen.count + 1, now, stamp
            if now - seen.told < _TOGETHER:
                self._owed[seen.key] = seen
                return
            try:
                await self._count(seen)
                return
            except NotFound:
                pass  # it has expired: say it again
        namespace = str(reference.get("namespace") or "default")
        digest = hashlib.sha256("\0".join((*identity, stamp)).encode()).hexdigest()[:16]
        key = ObjectKey(namespace, f"{reference['name'][:200]}.{digest}")
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": key.name},
            "involvedObject": reference,
            "type": type,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
        _forget_oldest(self._seen)
        self._seen.pop(identity, None)
        self._seen[identity] = _Seen(key, now, now, stamp)
        await self._client.create(event)

    def _combined(self, family: tuple[str, ...], message: str, now: float) -> str:
        similar = self._similar.get(family)
        if similar is None or now - similar.last > _WINDOW:
            _forget_oldest(self._similar)
            similar = self._similar[family] = _Similar({}, now)
        similar.last = now
        if message in similar.messages or len(similar.messages) < _SIMILAR:
            similar.messages[message] = None
            return message
        return f"(combined from similar events): {next(iter(similar.messages))}"

    def _within_budget(self, of: tuple[str, ...], now: float) -> bool:
        budget = self._budgets.get(of)
        if budget is None:
            _forget_oldest(self._budgets)
            budget = self._budgets[of] = _Budget(_BURST, now)
        budget.tokens = min(_BURST, budget.tokens + (now - budget.at) * _REFILL)
        budget.at = now
        if budget.tokens < 1:
            return False
        budget.tokens -= 1
        return True


def _forget_oldest(memory: dict[tuple[str, ...], _Seen] | dict[tuple[str, ...], _Similar] | dict[tuple[str, ...], _Budget]) -> None:
    while len(memory) >= _REMEMBERED:
        memory.pop(next(iter(memory)))


def _reference(obj: Object | Unstructured) -> Json:
    meta = obj.metadata
    api_version = obj.gvk.api_version if isinstance(obj, Unstructured) else obj.api_version
    pairs = {
        "apiVersion": api_version,
        "kind": obj.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    return {name: value for name, value in pairs.items() if value}


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
