"""A transport whose reads do not last: a workload cluster that hangs must not hold up a pass over its Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.errors import ConnectionFailed


class Bounded:
    """Gives every GET `seconds` to be answered. Writes wait: they may have taken effect."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def send(self, request: Request) -> Response:
        """One request; a read that takes too long is a ConnectionFailed."""
        if request.method != "GET":
            return await self._inner.send(request)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.send(request)
        except TimeoutError as error:
            raise ConnectionFailed(f"GET {request.path}: no answer within {self._seconds:g} s") from error

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """A watch, unbounded."""
        return await self._inner.stream(request)

    async def upgrade(self, request: Request, protocols: tuple[str, ...]) -> Duplex:
        """Passed on."""
        return await self._inner.upgrade(request, protocols)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()
