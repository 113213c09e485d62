"""A process that may no longer act writes nothing more: not a second after the lease under which it may has run out on its own clock.

A process can stand still at any moment, for a minute: stopped, swapped out, or its machine frozen. When it goes on, all its
passes go on where they were, with a write as their next step, before anybody has looked at the lease. So the question is asked
where writes leave the process, as late as can be: by `Fenced` on any transport, and by `HttpTransport` once more when the
connection is there and the body is about to be handed to the kernel.
"""

from __future__ import annotations

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.transports import Around

_READS = frozenset({"GET", "HEAD"})


class NotLeading(ApiError):
    """This process may not write now: another one may be at work. Nothing was sent."""

    is_expected = True


class Fence:
    """Until when this process may write. Open forever until somebody says otherwise."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = float("inf")

    def open_until(self, moment: float) -> None:
        """Writes may leave until this moment of the clock's `monotonic`."""
        self._until = moment

    def close(self) -> None:
        """No write may leave from now on."""
        self._until = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether a write may leave now."""
        return self._clock.monotonic() < self._until

    def check(self, method: str) -> None:
        """Raises NotLeading if a request of this method must not leave now."""
        if method not in _READS and not self.is_open:
            raise NotLeading("this process does not hold its lease, and writes nothing")


class Fenced(Around):
    """A transport that lets writes through only while the fence is open."""

    def __init__(self, inner: Transport, fence: Fence) -> None:
        super().__init__(inner)
        self._fence = fence

    async def send(self, request: Request) -> Response:
        """Send one request. Raises NotLeading."""
        self._fence.check(request.method)
        return await self._inner.send(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """A connection in both directions, whatever is said on it; raises NotLeading."""
        self._fence.check("CONNECT")
        return _FencedDuplex(await self._inner.forward(request, port), self._fence)


class _FencedDuplex:
    def __init__(self, inner: Duplex, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    async def send(self, message: bytes) -> None:
        self._fence.check("CONNECT")
        await self._inner.send(message)

    async def receive(self) -> bytes | None:
        return await self._inner.receive()

    async def close(self) -> None:
        await self._inner.close()
