"""The client's side of port-forward: a port of a Pod, on a SPDY session over a WebSocket or HTTP."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from yarl import URL

from clusterwright.api.wire import Duplex
from clusterwright.runtime.errors import ConnectionFailed, from_response
from clusterwright.streams import spdy
from clusterwright.streams.pipe import TcpStream
from clusterwright.streams.session import Session
from clusterwright.streams.spdy import SpdyError

TUNNEL: Final = spdy.TUNNEL
_ERROR_WITHIN: Final = 2.0
"""How many seconds the reason for a closed stream may arrive after it."""
_MAX_REASON: Final = 2 * 1024
_MAX_HEAD: Final = 64 * 1024
_MAX_BODY: Final = 64 * 1024


class ForwardedPort:
    """One port as a Duplex of bytes. An error of the far end is a ConnectionRefusedError."""

    def __init__(self, carrier: Duplex) -> None:
        self._session = Session(carrier, is_server=False)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, port: int) -> None:
        """Open the port; whether anything listens there is known only later."""
        headers = {"port": str(port), "requestid": "0"}
        self._errors = await self._session.open({"streamtype": "error", **headers}, last=True)
        self._data = await self._session.open({"streamtype": "data", **headers})
        self._tasks = [asyncio.ensure_future(self._run()), asyncio.ensure_future(self._listen())]

    async def send(self, message: bytes) -> None:
        """Send bytes to the port; raises OSError."""
        await self._data.send(message)

    async def receive(self) -> bytes | None:
        """Return some bytes from the port; None when it is closed. Raises OSError."""
        try:
            data = await self._data.receive()
        except ConnectionResetError:
            await asyncio.wait(self._tasks[1:], timeout=_ERROR_WITHIN)
            self._check()
            raise
        if data is None:
            await asyncio.wait(self._tasks[1:], timeout=_ERROR_WITHIN)
            self._check()
        return data

    async def close(self) -> None:
        """Close; safe to call twice."""
        await self._session.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _check(self) -> None:
        errors = self._tasks[1]
        if errors.done() and not errors.cancelled() and (error := errors.exception()) is not None:
            raise error

    async def _run(self) -> None:
        with suppress(SpdyError, OSError):  # who reads and writes is told by the streams, which end with the session
            await self._session.run()

    async def _listen(self) -> None:
        text = bytearray()
        with suppress(ConnectionResetError):
            while (part := await self._errors.receive()) is not None and len(text) < _MAX_REASON:
                text += part[:_MAX_REASON]
        if text:
            error = ConnectionRefusedError(text.decode("utf-8", "replace"))
            self._data.inbox.end(error)
            raise error


async def open_port(carrier: Duplex, port: int) -> ForwardedPort:
    """Return a port, on a stream that carries a SPDY session to the server of the Pod's ports."""
    forwarded = ForwardedPort(carrier)
    try:
        await forwarded.open(port)
    except BaseException:
        await carrier.close()
        raise
    return forwarded


async def upgrade(url: URL, headers: Iterable[tuple[str, str]], context: ssl.SSLContext | None, server_name: str) -> Duplex:
    """Return a stream for a SPDY session by HTTP/1.1's Upgrade, on a new connection.

    Raises OSError if there is none, and the error of the API server's refusal.
    """
    lines = [f"POST {url.raw_path_qs} HTTP/1.1", f"Host: {url.authority}", *(f"{name}: {value}" for name, value in headers)]
    lines += [
        "Connection: Upgrade",
        f"Upgrade: {spdy.NAME}",
        f"X-Stream-Protocol-Version: {spdy.PORT_FORWARD}",
        "Content-Length: 0",
        "",
        "",
    ]
    if any("\r" in line or "\n" in line for line in lines):
        raise ConnectionFailed(f"POST {url.path}: a header has more than one line")
    reader, writer = await asyncio.open_connection(
        url.host, url.port, ssl=context, server_hostname=(server_name or url.host) if context is not None else None
    )
    try:
        writer.write("\r\n".join(lines).encode("latin-1"))
        await writer.drain()
        status, answered = await _head(reader)
        if status != 101:
            raise from_response(status, await _body(reader, answered))
        if answered.get("upgrade", "").upper() != spdy.NAME:
            raise ConnectionFailed(f"POST {url.path}: the server upgrades to {answered.get('upgrade', '')!r}, not to {spdy.NAME}")
    except BaseException:
        writer.close()
        raise
    return TcpStream(reader, writer)


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise ConnectionFailed("the answer to the upgrade request is not an HTTP/1.1 response") from error
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(head) > _MAX_HEAD or len(parts) < 2 or not parts[0].startswith("HTTP/1.") or re.fullmatch("[0-9]{3}", parts[1]) is None:
        raise ConnectionFailed("the answer to the upgrade request is not an HTTP/1.1 response")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return int(parts[1]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """Return the body of a refusal, if its length is given; a Status is short."""
    length = headers.get("content-length", "")
    try:
        return await reader.readexactly(min(int(length), _MAX_BODY)) if re.fullmatch("[0-9]{1,18}", length) else b""
    except asyncio.IncompleteReadError as error:
        return error.partial
