"""A transport that waits for an answer only so long: a workload cluster that hangs must not hold up anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.errors import ConnectionFailed


class Bounded:
    """Gives every request `seconds` to be answered; a write that was cut off may have taken effect."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def send(self, request: Request) -> Response:
        """One request; one that takes too long is a ConnectionFailed."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.send(request)
        except TimeoutError as error:
            raise ConnectionFailed(f"{request.method} {request.path}: no answer within {self._seconds:g} s") from error

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """A watch, unbounded."""
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Passed on."""
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()
