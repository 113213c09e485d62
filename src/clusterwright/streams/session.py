"""Multiplex many streams on one: a SPDY/3.1 session over any stream of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from clusterwright.api.wire import Duplex
from clusterwright.streams import spdy
from clusterwright.streams.pipe import Inbox
from clusterwright.streams.spdy import SpdyError

MAX_STREAMS: Final = 256
"""The most streams that a peer may have open on one session."""
_CHUNK: Final = 32 * 1024
_AT_ONCE: Final = 100
"""How many frames are handled before other tasks run: millions of small ones fit into one message of the peer."""


class Stream:
    """One stream of a session: a Duplex. A peer's reset is a ConnectionResetError."""

    def __init__(self, session: Session, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        self.inbox = Inbox()
        self.is_finished = False
        """Whether nothing more may be sent."""
        self._session = session

    async def send(self, message: bytes) -> None:
        """Send bytes; raises ConnectionResetError once the stream is over."""
        for start in range(0, len(message), _CHUNK):
            if self.is_finished:
                raise ConnectionResetError("the stream is closed")
            await self._session.send_data(self, message[start : start + _CHUNK])

    async def receive(self) -> bytes | None:
        """Return some bytes; None when the peer has finished."""
        return await self.inbox.get()

    async def finish(self) -> None:
        """Finish sending; the peer may continue. Safe to call twice."""
        if not self.is_finished:
            self.is_finished = True
            await self._session.send_data(self, b"", last=True)
        self._session.forget_if_over(self)

    async def reset(self, status: int = spdy.CANCEL) -> None:
        """End the stream at once, in both directions."""
        self.is_finished = True
        self.inbox.drop()
        await self._session.send_reset(self.number, status)
        self._session.forget_if_over(self)

    async def close(self) -> None:
        """End it in both directions; a peer that has not finished is cut off. Safe to call twice."""
        if not self.inbox.is_ended:
            await self.finish()
            await self.reset()
        else:
            await self.finish()
            self.inbox.drop()


class Session:
    """The streams on one carrier. `run` reads frames until the end; `accept` is called for every stream that the peer opens."""

    def __init__(self, carrier: Duplex, *, is_server: bool, accept: Callable[[Stream], None] | None = None) -> None:
        self._carrier = carrier
        self._accept = accept
        self._is_server = is_server
        self._next = 2 if is_server else 1
        self._last = 0
        self._streams: dict[int, Stream] = {}
        self._writer, self._reader = spdy.Writer(), spdy.Reader()
        self._sending = asyncio.Lock()
        self._is_over = False

    async def open(self, headers: Mapping[str, str], *, last: bool = False) -> Stream:
        """Return a new stream; `last`: nothing will be sent on it. It does not wait for the peer's reply."""
        async with self._sending:
            self._check()
            stream = self._streams[self._next] = Stream(self, self._next, headers)
            stream.is_finished = last
            self._next += 2
            await self._carrier.send(self._writer.syn_stream(stream.number, headers, last=last))
        return stream

    async def send_data(self, stream: Stream, data: bytes, *, last: bool = False) -> None:
        """Send bytes on a stream, as fast as the carrier takes them."""
        async with self._sending:
            if stream.number in self._streams:
                self._check()
                await self._carrier.send(self._writer.data(stream.number, data, last=last))

    async def send_reset(self, number: int, status: int) -> None:
        """Tell the peer that a stream has ended."""
        async with self._sending:
            if not self._is_over:
                await self._carrier.send(self._writer.reset(number, status))

    def forget_if_over(self, stream: Stream) -> None:
        """Drop a stream that both sides have finished."""
        if stream.is_finished and stream.inbox.is_ended:
            self._streams.pop(stream.number, None)

    async def run(self) -> None:
        """Read until the carrier ends; raises SpdyError if the peer violates the protocol. All streams end with it."""
        try:
            while (data := await self._carrier.receive()) is not None:
                for number, frame in enumerate(self._reader.feed(data), 1):
                    if frame.kind == spdy.GOAWAY:
                        return
                    await self._take(frame)
                    if number % _AT_ONCE == 0:
                        await asyncio.sleep(0)
        finally:
            await self.close()

    async def close(self) -> None:
        """End every stream and the carrier; safe to call twice."""
        if not self._is_over:
            self._is_over = True
            for stream in list(self._streams.values()):
                stream.is_finished = True
                stream.inbox.end(ConnectionResetError("the connection that carries the stream is closed"))
            self._streams.clear()
            await self._carrier.close()

    def _check(self) -> None:
        if self._is_over:
            raise ConnectionResetError("the connection that carries the stream is closed")

    async def _take(self, frame: spdy.Frame) -> None:
        if frame.kind == spdy.SYN_STREAM:
            await self._opened(frame)
        elif frame.kind == spdy.PING:
            if (frame.number % 2 == 1) == self._is_server:  # else it is the answer to one of ours
                async with self._sending:
                    await self._carrier.send(self._writer.ping(frame.number))
        elif (stream := self._streams.get(frame.number)) is None:
            if frame.kind == 0 and frame.payload:
                await self.send_reset(frame.number, spdy.INVALID_STREAM)
        elif frame.kind == spdy.RST_STREAM:
            stream.is_finished = True
            stream.inbox.end(ConnectionResetError(f"the peer has reset the stream (status {frame.status})"))
            self.forget_if_over(stream)
        else:
            if frame.kind == 0:
                await stream.inbox.put(frame.payload)  # who does not read holds up the whole session, and so its peer
            if frame.is_last:
                stream.inbox.end()
                self.forget_if_over(stream)

    async def _opened(self, frame: spdy.Frame) -> None:
        if (frame.number % 2 == 1) != self._is_server or frame.number <= self._last:
            raise SpdyError(f"stream {frame.number} may not be opened")
        self._last = frame.number
        if self._accept is None or len(self._streams) >= MAX_STREAMS:
            await self.send_reset(frame.number, spdy.REFUSED_STREAM)
            return
        stream = self._streams[frame.number] = Stream(self, frame.number, frame.headers)
        if frame.is_last:
            stream.inbox.end()
        async with self._sending:
            await self._carrier.send(self._writer.syn_reply(frame.number))
        self._accept(stream)
