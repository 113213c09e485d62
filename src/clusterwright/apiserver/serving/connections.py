"""Limits of connections: time, bytes and number.

aiohttp bounds lines and headers. Added here: the head of a request must arrive within seconds; a peer must read its data, and the unread
data of one peer and of all peers are bounded; connections are counted, and if too many have not shown a credential, the oldest of these is
closed.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import HttpVersion11, web, web_protocol, web_response

from clusterwright.apiserver.auth.authentication import user_of_certificate
from clusterwright.apiserver.identity import User
from clusterwright.streams.pipe import Inbox

if hasattr(sslproto.SSLProtocol, "max_size"):
    # asyncio allocates this much for every TLS connection; records are never larger than 16 KiB
    sslproto.SSLProtocol.max_size = 16 * 1024
# answers do not name versions of software
setattr(web_response, "SERVER_SOFTWARE", "clusterwright")  # noqa: B010 - aiohttp does not export it


STAND_IN: Final = "M-SEARCH"
_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) ")
_PARSED: Final = frozenset(
    b"ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH "
    b"POST PROPFIND PROPPATCH PURGE PUT REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds, bytes and counts."""

    handshake: float = 10.0
    head: float = 10.0
    """The time from the first byte (or the connection) to the last byte of a request's head."""
    stall: float = 30.0
    """The time that a peer may read nothing while bytes wait for it."""
    idle: float = 180.0
    unread: int = 1024 * 1024
    """The bytes that may wait for one peer; a watch that lags more is closed, and its client lists again."""
    unread_all: int = 256 * 1024 * 1024
    watches: int = 500
    """The watches that one user may have open; administrators have no limit."""
    connections: int = 8192
    strangers: int = 256
    """The connections that have not shown a valid credential yet."""


class Connection(web_protocol.RequestHandler):
    """One connection. `is_known`: a request on it had a valid credential. `certified`: the user of its client certificate."""

    __slots__ = ("_begun", "_server", "certified", "head_since", "is_known", "stalled_since", "tunnel", "unread", "unusual")

    def __init__(self, manager: Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._server = manager
        self.is_known = False
        self.certified: User | None = None
        self._begun = False
        self.unusual = ""
        """The method of the first request if the parser does not know it; the parser reads `STAND_IN` instead."""
        self.tunnel: Tunnel | None = None
        """Receives the bytes that follow an upgrade to another protocol."""
        self.head_since: float | None = None
        self.unread = 0
        self.stalled_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit for the first request's head."""
        super().connection_made(transport)
        self.is_known = self._server.is_open
        if certificate := transport.get_extra_info("peercert"):
            self.is_known = True
            self.certified = user_of_certificate(certificate, transport.get_extra_info("ssl_object").getpeercert(binary_form=True))
        self.head_since = self.stalled_since = asyncio.get_running_loop().time()
        self._server.admit(self)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the time limit runs while a head is not complete."""
        if self.tunnel is not None:
            self.tunnel.feed(data)
            return
        before = self._request_count
        if not self._begun:
            self._begun = True
            data = self._known_method(data)
        super().data_received(data)
        if self._request_count != before:
            self.head_since = None
        elif self.head_since is None and self._current_request is None and not self._messages:
            self.head_since = asyncio.get_running_loop().time()

    def _known_method(self, data: bytes) -> bytes:
        """Replace an unknown method in the head of the first request, so that the server refuses it and not the parser.

        Only the parser knows where later requests begin.
        """
        found = _METHOD.match(data)
        if found is None or found[1] in _PARSED:
            return data
        self.unusual = found[1].decode()
        return STAND_IN.encode() + data[found.end(1) :]

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer malformed input in the version that the server speaks; aiohttp would answer in HTTP/1.0."""
        request._version = HttpVersion11
        return super().handle_error(request, status, exc, message)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the resources of the connection."""
        if self.tunnel is not None:
            self.tunnel.inbox.end()
        super().connection_lost(exc)

    async def drained(self) -> None:
        """Wait until the peer has read enough of the sent data. Raises ConnectionError."""
        await self._drain_helper()

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()


class Tunnel:
    """An upgraded connection as a stream of bytes; reading from the network pauses while too many bytes wait."""

    def __init__(self, connection: Connection) -> None:
        self.inbox = Inbox()
        self._connection = connection
        connection.tunnel = self

    def feed(self, data: bytes) -> None:
        """Receive bytes from the network."""
        self.inbox.put_nowait(data)
        if self.inbox.is_full and self._connection.transport is not None:
            self._connection.transport.pause_reading()

    async def send(self, message: bytes) -> None:
        """Send bytes, as fast as the peer reads them."""
        transport = self._connection.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        transport.write(message)
        await self._connection.drained()

    async def receive(self) -> bytes | None:
        """Return some bytes; None at the end."""
        data = await self.inbox.get()
        transport = self._connection.transport
        if not self.inbox.is_full and transport is not None and not transport.is_closing():
            transport.resume_reading()  # does nothing if it was not paused
        return data

    async def close(self) -> None:
        """Close; safe to call twice."""
        self.inbox.drop()
        if self._connection.transport is not None:
            self._connection.transport.close()


class Server(web.Server):
    """aiohttp's server with limited connections."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], limits: Limits, *, is_open: bool, **options: Any
    ) -> None:
        """Create a server. `is_open`: it has no authentication, so connections need no credential."""
        super().__init__(handler, **options)
        self.limits = limits
        self.is_open = is_open
        self._timer: asyncio.TimerHandle | None = None
        self._is_listening = False

    def __call__(self) -> Connection:
        """Return the protocol of a new connection."""
        return Connection(self, loop=self._loop, **self._kwargs)

    def admit(self, new: Connection) -> None:
        """Accept a connection, closing the oldest unknown one if there are too many; or refuse it.

        The limits are enforced once a second while there are connections, so that an idle server costs nothing.
        """
        if self._timer is None and self._is_listening:
            self._timer = self._loop.call_later(1.0, self._sweep)
        if len(self._connections) > self.limits.connections:
            new.abort()
            return
        if new.is_known:
            return
        strangers = [c for c in self._connections if isinstance(c, Connection) and not c.is_known]
        if len(strangers) > self.limits.strangers:
            strangers[0].abort()  # connections are in the order in which they came

    async def listen(self, host: str, port: int, context: ssl.SSLContext | None) -> asyncio.Server:
        """Listen, and enforce the limits."""
        timeout = self.limits.handshake if context is not None else None
        listening = await self._loop.create_server(self, host, port, ssl=context, backlog=1024, ssl_handshake_timeout=timeout)
        self._is_listening = True
        return listening

    def end(self) -> None:
        """Stop enforcing the limits."""
        self._is_listening = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        now, limits = self._loop.time(), self.limits
        waiting: list[Connection] = []
        for connection, transport in list(self._connections.items()):
            if not isinstance(connection, Connection) or transport.is_closing():
                continue
            if connection.head_since is not None and now - connection.head_since > limits.head:
                connection.abort()
                continue
            unread = transport.get_write_buffer_size()
            if not unread or unread < connection.unread:
                connection.stalled_since = now
            connection.unread = unread
            if unread and now - connection.stalled_since > limits.stall:
                connection.abort()
            elif unread:
                waiting.append(connection)
        excess = sum(c.unread for c in waiting) - limits.unread_all
        for connection in sorted(waiting, key=lambda c: -c.unread):
            if excess <= 0:
                break
            excess -= connection.unread
            connection.abort()
        self._timer = self._loop.call_later(1.0, self._sweep) if self._connections else None
