"""A transport with all possible faults, by plan and by seed.

Requests may be refused, lost on the way there, or lost on the way back, when they have taken effect. Watches may be late by any
amount, cut, garbled, told twice, and refused as too old. The process may crash before any request, after it took effect, or
any number of steps after it was told something: between any two awaits.

What is not simulated, because no API server does it: events out of order, and events that are never told on a watch that goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, fields
from random import Random
from typing import Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.simulation.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The probability of each fault: per request, or per watch line for names that begin with `watch_`."""

    conflict: float = 0.0
    """A write is answered 409 and has no effect."""
    throttled: float = 0.0
    """429 with Retry-After."""
    unavailable: float = 0.0
    """500, or 503 with Retry-After, or 504; a 504 may have taken effect."""
    lost_request: float = 0.0
    """The connection breaks before the request arrives."""
    lost_answer: float = 0.0
    """The connection breaks after the request took effect."""
    late_request: float = 0.0
    """The connection breaks during a write: the caller gets the error at once, and the write takes effect up to `overdue` seconds later."""
    overdue: float = 10.0
    slow: float = 0.0
    """The request, or its answer, is delayed by up to `slowest` seconds."""
    slowest: float = 20.0
    crash: float = 0.0
    """The process dies, before the request arrives or after it took effect."""
    watch_late: float = 0.0
    """The line, and all later ones, are delayed by up to `latest` seconds: a stale cache."""
    latest: float = 90.0
    watch_cut: float = 0.0
    """The stream ends, and lines in transit are lost with it."""
    watch_garbled: float = 0.0
    """The line is cut off in its middle, and the stream ends."""
    watch_twice: float = 0.0
    """The line is delivered twice."""
    watch_error: float = 0.0
    """An ERROR event is delivered: 410 or 500."""
    watch_refused: float = 0.0
    """Opening the watch is answered 410, 429 or 500; or the connection fails."""
    watch_crash: float = 0.0
    """The process dies a few steps of its event loop after the line was delivered: anywhere in the work that it caused."""
    watch_silent: float = 0.0
    """The stream continues without any lines: a half-open connection."""

    def scaled(self, factor: float) -> FaultPlan:
        """Return the same plan with all probabilities multiplied."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return FaultPlan(**{name: value if name in _DURATIONS else min(1.0, value * factor) for name, value in values.items()})


_STEPS: Final = 80
_DURATIONS: Final = frozenset({"slowest", "latest", "overdue"})

NO_FAULTS: Final = FaultPlan()

ALL_FAULTS: Final = FaultPlan(
    conflict=0.05, throttled=0.03, unavailable=0.04, lost_request=0.04, lost_answer=0.06, slow=0.1, crash=0.02,
    watch_late=0.15, watch_cut=0.06, watch_garbled=0.03, watch_twice=0.1, watch_error=0.04, watch_refused=0.1, watch_crash=0.01,
    watch_silent=0.02,
)  # fmt: skip


class FaultyTransport:
    """One process's transport to an API server. After a crash nothing passes any more, in either direction.

    `on_crash` must end the process and start another; without it nothing crashes.
    """

    def __init__(
        self, inner: Transport, random: Random, plan: FaultPlan, trace: Trace, *, process: str, on_crash: Callable[[], None] | None = None
    ) -> None:
        self._inner = inner
        self._random = random
        # who cannot come back does not crash
        self._plan = plan if on_crash is not None else replace(plan, crash=0.0, watch_crash=0.0)
        self._trace = trace
        self._process = process
        self._on_crash = on_crash
        self.is_dead = False
        self._late: set[asyncio.Task[None]] = set()
        """Writes that have not arrived yet, although their callers got an error."""

    def suffer(self, plan: FaultPlan) -> None:
        """Inject these faults from now on, except crashes, which need processes that can restart."""
        self._plan = replace(plan, crash=0.0, watch_crash=0.0)

    def calm(self) -> None:
        """Inject no faults from now on."""
        self._plan = NO_FAULTS

    async def send(self, request: Request) -> Response:
        """Send one request, or fail as planned."""
        self._check()
        plan, chance = self._plan, self._random.random
        writes = request.method != "GET"
        if chance() < plan.slow:
            await asyncio.sleep(self._random.uniform(0, plan.slowest))
            self._check()
        if chance() < plan.crash:
            if chance() < 0.5:
                await self._exchange(request)
            await self._crash()
        if chance() < plan.lost_request:
            raise ConnectionFailed("simulated: connection lost before the request arrived")
        if writes and plan.late_request and chance() < plan.late_request:
            self._deliver_later(request)
            raise ConnectionFailed("simulated: connection lost while the request was under way")
        if writes and chance() < plan.conflict:
            return _failure(409, "Conflict", "simulated: the object has been modified")
        if chance() < plan.throttled:
            return _failure(429, "TooManyRequests", "simulated: too many requests", {"retry-after": "1"})
        if chance() < plan.unavailable:
            return await self._unavailable(request)
        response = await self._exchange(request)
        if chance() < plan.slow:
            # meanwhile others act on it, and watches tell of it
            await asyncio.sleep(self._random.uniform(0, plan.slowest))
            self._check()
        if chance() < plan.lost_answer:
            raise ConnectionFailed("simulated: connection lost before the answer arrived")
        return response

    async def _unavailable(self, request: Request) -> Response:
        match self._random.randrange(3):
            case 0:
                return _failure(500, "InternalError", "simulated: internal error")
            case 1:
                return _failure(503, "ServiceUnavailable", "simulated: try again", {"retry-after": "2"})
        if self._random.random() < 0.5:
            await self._exchange(request)
        return _failure(504, "Timeout", "simulated: request did not complete in time")

    def _deliver_later(self, request: Request) -> None:
        """Let a write take effect after its caller got a connection error."""

        async def deliver() -> None:
            await asyncio.sleep(self._random.uniform(0, self._plan.overdue))
            if self.is_dead:
                return  # the server drops what it has not begun when a process dies with its connections
            response = await self._inner.send(request)
            self._trace.exchange(f"{self._process} (late)", request, response)

        task = asyncio.get_running_loop().create_task(deliver())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _exchange(self, request: Request) -> Response:
        response = await self._inner.send(request)
        self._trace.exchange(self._process, request, response)
        self._check()
        return response

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch, or fail as planned."""
        self._check()
        if self._random.random() < self._plan.watch_refused:
            match self._random.randrange(4):
                case 0:
                    return _failure(410, "Expired", "simulated: too old resource version"), _nothing()
                case 1:
                    return _failure(429, "TooManyRequests", "simulated: too many requests", {"retry-after": "1"}), _nothing()
                case 2:
                    return _failure(500, "InternalError", "simulated: internal error"), _nothing()
            raise ConnectionFailed("simulated: connection refused")
        response, lines = await self._inner.stream(request)
        self._trace.exchange(self._process, request, response)
        faulty = self._lines(lines)
        await anext(faulty)
        return response, faulty

    async def _lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield an empty start, then each line as the plan decides. The start is taken at once, so that closing always closes `lines`."""
        chance = self._random.random
        try:
            yield b""
            async for line in lines:
                plan = self._plan
                if chance() < plan.watch_late:
                    await asyncio.sleep(self._random.uniform(0, plan.latest))
                if self.is_dead or chance() < plan.watch_cut:
                    if chance() < 0.5:
                        raise ConnectionFailed("simulated: connection reset")
                    return
                if chance() < plan.watch_silent:
                    await asyncio.Event().wait()
                if chance() < plan.watch_garbled:
                    yield line[: self._random.randrange(len(line))].rstrip()
                    return
                if chance() < plan.watch_error:
                    code, reason = self._random.choice([(410, "Expired"), (410, "Gone"), (500, "InternalError")])
                    yield msgspec.json.encode({"type": "ERROR", "object": _status(code, reason, "simulated: error in the stream")})
                    return
                if chance() < plan.watch_crash:
                    self._count_down(self._random.randrange(_STEPS))
                self._trace.line(self._process, line)
                yield line
                if chance() < plan.watch_twice:
                    yield line
        finally:
            if (close := getattr(lines, "aclose", None)) is not None:
                await close()

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of a Pod, without faults."""
        self._check()
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        """Drop writes that have not arrived, and close the inner transport."""
        for task in self._late:
            task.cancel()
        await self._inner.close()

    def kill(self) -> None:
        """Disconnect the process: nothing passes any more."""
        self.is_dead = True

    async def _crash(self) -> None:
        self._die()
        await asyncio.Event().wait()  # nobody is there any more to see what comes next

    def _count_down(self, steps: int) -> None:
        if steps:
            asyncio.get_running_loop().call_soon(self._count_down, steps - 1)
        else:
            self._die()

    def _die(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        self._trace.note(self._process, "crash")
        if self._on_crash is not None:
            self._on_crash()

    def _check(self) -> None:
        if self.is_dead:
            raise ConnectionFailed("simulated: the process is dead")


def _status(code: int, reason: str, message: str) -> dict[str, object]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


def _failure(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return Response(
        status=code,
        headers={"content-type": "application/json", **(headers or {})},
        body=msgspec.json.encode(_status(code, reason, message)),
    )


async def _nothing() -> AsyncIterator[bytes]:
    for line in tuple[bytes, ...]():
        yield line
