"""A pair of connected streams, and a stream over TCP."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from clusterwright.api.wire import Duplex

ROOM: Final = 256 * 1024
"""How many bytes may wait for a reader. A sender waits while there are more."""
_EACH: Final = 64
"""The cost of one waiting chunk in bytes, in addition to its content: single bytes are chunks, too."""
_LINGER: Final = 5.0


class Inbox:
    """Bytes that arrived and were not read yet: `put` waits for room, `get` for data."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended: BaseException | bool = False
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more bytes."""
        return self._size >= ROOM and not self._ended

    @property
    def is_ended(self) -> bool:
        """Whether no more bytes will come."""
        return bool(self._ended)

    def put_nowait(self, data: bytes) -> None:
        """Add bytes, even without room; after the end they are dropped."""
        if data and not self._ended:
            self._chunks.append(data)
            self._size += len(data) + _EACH
            self._changed.set()

    async def put(self, data: bytes) -> None:
        """Add bytes once there is room."""
        while self.is_full:
            self._changed.clear()
            await self._changed.wait()
        self.put_nowait(data)

    async def get(self) -> bytes | None:
        """Return the next bytes; None at the end, or the error that ended it."""
        while not self._chunks and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._chunks:
            if isinstance(self._ended, BaseException):
                raise self._ended
            return None
        data = self._chunks.popleft()
        self._size -= len(data) + _EACH
        self._changed.set()
        return data

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end; bytes before it can still be read. Only the first end counts."""
        if not self._ended:
            self._ended = error or True
            self._changed.set()

    def drop(self) -> None:
        """Drop all bytes: there is no reader any more."""
        self.end()
        self._chunks.clear()
        self._size = 0


class _End:
    def __init__(self, incoming: Inbox, outgoing: Inbox) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._is_closed = False

    async def send(self, message: bytes) -> None:
        if self._is_closed or self._outgoing.is_ended:
            raise ConnectionResetError("the stream is closed")
        await self._outgoing.put(message)

    async def receive(self) -> bytes | None:
        return await self._incoming.get()

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._outgoing.end()
            self._incoming.drop()


def duplex_pair() -> tuple[Duplex, Duplex]:
    """Return two ends: each receives what the other sends; closing one ends both."""
    there, back = Inbox(), Inbox()
    return _End(back, there), _End(there, back)


class TcpStream:
    """A connection as a stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: bytes) -> None:
        """Send bytes as fast as the peer reads them."""
        self._writer.write(message)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        """Return some bytes; None at the end."""
        return await self._reader.read(65536) or None

    async def close(self) -> None:
        """Close; safe to call twice. A peer that does not soon read the rest loses it."""
        self._writer.close()
        if self._writer.transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(_LINGER, self._writer.transport.abort)


async def join(one: Duplex, other: Duplex) -> None:
    """Copy bytes between two streams, both ways, until either ends; then close both."""

    async def carry(source: Duplex, target: Duplex) -> None:
        while (data := await source.receive()) is not None:
            await target.send(data)

    ways = [asyncio.ensure_future(carry(one, other)), asyncio.ensure_future(carry(other, one))]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in done:
            way.result()
    finally:
        for way in ways:
            way.cancel()
        try:
            await asyncio.gather(*ways, return_exceptions=True)
        finally:  # who is cancelled again while they end leaves no stream open either
            try:
                await one.close()
            finally:
                await other.close()
