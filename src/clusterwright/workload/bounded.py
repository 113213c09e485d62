"""A transport with a time limit for answers: a workload cluster that hangs must not block anything else."""

from __future__ import annotations

import asyncio

from clusterwright.api.wire import Request, Response, Transport
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.transports import Around


class Bounded(Around):
    """Limits every request to `seconds`; a write that was cut off may have taken effect. Watches have no limit."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    async def send(self, request: Request) -> Response:
        """Send one request. Raises ConnectionFailed if it takes too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.send(request)
        except TimeoutError as error:
            raise ConnectionFailed(f"{request.method} {request.path}: no answer within {self._seconds:g} s") from error
