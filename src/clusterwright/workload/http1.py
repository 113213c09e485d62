"""One HTTP/1.1 exchange at a time over a TLS session on any byte stream: what an etcd JSON gateway behind a port-forward needs.

No connection pool, no redirects, no cookies: the stream is a tunnel to exactly one server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterwright.api.wire import Duplex

MAX_BODY = 4 * 1024 * 1024
"""What etcd says of itself and its members has a few kilobytes."""
MAX_HEADERS = 100


class ProtocolError(Exception):
    """The peer did not answer as HTTP/1.1 asks, or hung up in the middle."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body."""

    status: int
    body: bytes


class HttpStream:
    """HTTP/1.1 requests, one after the other, on one stream."""

    def __init__(self, stream: Duplex, host: str) -> None:
        self._stream = stream
        self._host = host
        self._buffer = bytearray()

    async def post(self, path: str, body: bytes) -> Answer:
        """POST a JSON body; the whole answer."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        await self._stream.send(head.encode("ascii") + body)
        return await self._answer()

    async def close(self) -> None:
        """Close the stream."""
        await self._stream.close()

    async def _answer(self) -> Answer:
        status_line = await self._line()
        parts = status_line.split(b" ", 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or re.fullmatch(rb"[0-9]{3}", parts[1]) is None:
            raise ProtocolError("the answer is no HTTP/1.1 response")
        status = int(parts[1])
        headers: dict[str, str] = {}
        while len(headers) <= MAX_HEADERS and (line := await self._line()):
            name, _, value = line.partition(b":")
            headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
        if len(headers) > MAX_HEADERS:
            raise ProtocolError("the answer has too many headers")
        if status in (204, 304):
            return Answer(status, b"")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return Answer(status, await self._chunks())
        length = headers.get("content-length")
        if length is None or re.fullmatch("[0-9]{1,18}", length) is None:
            raise ProtocolError("the answer has neither Content-Length nor chunks")
        return Answer(status, await self._exactly(int(length)))

    async def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            size_text = (await self._line()).split(b";", 1)[0].strip()
            try:
                size = int(size_text, 16)
            except ValueError as error:
                raise ProtocolError("malformed chunk") from error
            if size == 0:
                for _ in range(MAX_HEADERS):
                    if not await self._line():
                        return bytes(body)
                raise ProtocolError("the answer has too many trailers")
            if size < 0 or len(body) + size > MAX_BODY:
                raise ProtocolError(f"the answer is longer than {MAX_BODY} bytes")
            body += await self._exactly(size)
            await self._line()

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > 65536:
                raise ProtocolError("a header line is too long")
            await self._more()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    async def _exactly(self, count: int) -> bytes:
        if count > MAX_BODY:
            raise ProtocolError(f"the answer is longer than {MAX_BODY} bytes")
        while len(self._buffer) < count:
            await self._more()
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    async def _more(self) -> None:
        data = await self._stream.receive()
        if not data:
            raise ProtocolError("connection closed before the answer was complete")
        self._buffer += data
