"""Transports that wrap another: they observe, measure and limit requests to an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.runtime.outages import Outages

Tell = Callable[[Request, Response | None, float], None]
"""Called for a request: its answer (None: there was none), and its duration in seconds."""


class Around:
    """A transport around another, which passes on everything that a derived class does not override."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """Send one request."""
        return await self._inner.send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch."""
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of a Pod."""
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()


class Told(Around):
    """Reports every request and its answer."""

    def __init__(self, inner: Transport, clock: Clock, tell: Tell) -> None:
        super().__init__(inner)
        self._clock = clock
        self._tell = tell

    async def send(self, request: Request) -> Response:
        """Send one request and report it."""
        started = self._clock.monotonic()
        try:
            response = await self._inner.send(request)
        except ConnectionFailed:
            self._tell(request, None, 0.0)
            raise
        self._tell(request, response, self._clock.monotonic() - started)
        return response


class Measured(Told):
    """Counts requests by verb and code, and measures their duration; informs `outages`."""

    def __init__(self, inner: Transport, metrics: RuntimeMetrics, clock: Clock, outages: Outages) -> None:
        super().__init__(inner, clock, self.note)
        self._metrics = metrics
        self._outages = outages

    def note(self, request: Request, response: Response | None, seconds: float) -> None:
        """Record a request and its answer, None if there was none."""
        self._outages.heard(0 if response is None else response.status)
        self._metrics.requests.add(request.method, "<error>" if response is None else str(response.status))
        if response is not None:
            self._metrics.request_seconds.observe(seconds, request.method)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch, counted when it opens."""
        try:
            response, lines = await self._inner.stream(request)
        except ConnectionFailed:
            self._metrics.requests.add("WATCH", "<error>")
            self._outages.heard(0)
            raise
        self._outages.heard(response.status)
        self._metrics.requests.add("WATCH", str(response.status))
        return response, lines


class Throttled(Around):
    """At most `burst` requests at once and `qps` per second on average; others wait in order."""

    def __init__(self, inner: Transport, clock: Clock, *, qps: float, burst: int, metrics: RuntimeMetrics | None = None) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError("qps must be positive and burst at least 1")
        super().__init__(inner)
        self._clock = clock
        self._interval = 1 / qps
        self._slack = (burst - 1) / qps
        self._due = float("-inf")  # when the bucket would be full again if nothing more came
        self._metrics = metrics

    async def send(self, request: Request) -> Response:
        """Send one request in its turn."""
        await self._turn(request.method)
        return await self._inner.send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch, opened in its turn."""
        await self._turn("WATCH")
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of a Pod, opened in its turn."""
        await self._turn(request.method)
        return await self._inner.forward(request, port)

    async def _turn(self, verb: str) -> None:
        # the generic cell rate algorithm: one number instead of a bucket, and turns are given in the order of asking
        now = self._clock.monotonic()
        self._due = max(self._due, now)
        wait = self._due - self._slack - now
        self._due += self._interval
        if wait > 0:
            if self._metrics:
                self._metrics.throttled_seconds.observe(wait, verb)
            await self._clock.sleep(wait)
