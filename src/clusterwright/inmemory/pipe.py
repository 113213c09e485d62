"""A pair of message streams, joined back to back."""

from __future__ import annotations

import asyncio

from clusterwright.api.wire import Duplex


class _End:
    def __init__(self, incoming: asyncio.Queue[bytes | None], outgoing: asyncio.Queue[bytes | None]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._is_closed = self._is_over = False

    async def send(self, message: bytes) -> None:
        if self._is_closed or self._is_over:
            raise ConnectionResetError("the stream is closed")
        self._outgoing.put_nowait(message)

    async def receive(self) -> bytes | None:
        if self._is_closed or self._is_over:
            return None
        message = await self._incoming.get()
        self._is_over = message is None
        return message

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._outgoing.put_nowait(None)
            self._incoming.put_nowait(None)


def duplex_pair() -> tuple[Duplex, Duplex]:
    """Two ends: what one sends, the other receives; closing one ends both."""
    there: asyncio.Queue[bytes | None] = asyncio.Queue()
    back: asyncio.Queue[bytes | None] = asyncio.Queue()
    return _End(back, there), _End(there, back)
