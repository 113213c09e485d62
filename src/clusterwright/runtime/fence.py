"""Stop all writes of a process as soon as its lease has expired on its own clock.

A process can stand still at any time, for a minute: stopped, swapped out, or on a frozen machine. When it continues, all its passes
continue, with a write as their next step, before the lease is checked. So the check is where writes leave the process, as late as possible:
in `Fenced` on any transport, and in `HttpTransport` again when the connection exists and the body is about to go to the kernel.
"""

from __future__ import annotations

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.transports import Around

_READS = frozenset({"GET", "HEAD"})


class NotLeading(ApiError):
    """This process may not write now, because another one may be active. Nothing was sent."""

    is_expected = True


class Fence:
    """The time until which this process may write. It is unlimited until it is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = float("inf")

    def open_until(self, moment: float) -> None:
        """Allow writes until this moment of the clock's `monotonic`."""
        self._until = moment

    def close(self) -> None:
        """Refuse all writes from now on."""
        self._until = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether a write is allowed now."""
        return self._clock.monotonic() < self._until

    def check(self, method: str) -> None:
        """Raise NotLeading if a request of this method must not leave now."""
        if method not in _READS and not self.is_open:
            raise NotLeading("this process does not hold its lease and may not write")


class Fenced(Around):
    """A transport that sends writes only while the fence is open."""

    def __init__(self, inner: Transport, fence: Fence) -> None:
        super().__init__(inner)
        self._fence = fence

    async def send(self, request: Request) -> Response:
        """Send one request. Raises NotLeading."""
        self._fence.check(request.method)
        return await self._inner.send(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a connection in both directions, for any content; raises NotLeading."""
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
