"""The network front end: aiohttp carries requests to a server's core and watches back, chunk by chunk."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import WSMsgType, web

from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver.auth.authentication import Authenticator, impersonated
from clusterwright.apiserver.auth.identity import ANONYMOUS, User
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving import audit
from clusterwright.apiserver.status import StatusError, too_large
from clusterwright.apiserver.storage.streams import Stream

_BODY_MAXIMUM: Final = 3 * 1024 * 1024
_SLOW_WATCHER: Final = 32 * 1024 * 1024
"""Bytes that may wait for a watcher that does not read; then it is cut off, and lists again."""
_DROPPED: Final = frozenset({"connection", "host", "content-length", "transfer-encoding", "authorization"})

if hasattr(sslproto.SSLProtocol, "max_size"):
    # asyncio allocates this much for every TLS connection; records are never larger than 16 KiB
    sslproto.SSLProtocol.max_size = 16 * 1024


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '299 - "' + "".join(c if c.isprintable() else " " for c in escaped) + '"'


class HttpServer:
    """Serves one ApiServer on one address."""

    def __init__(
        self, server: ApiServer, authenticator: Authenticator | None = None, *, audit_log: Callable[[audit.Record], None] | None = None
    ) -> None:
        """Without an authenticator every caller is anonymous (and without an authorizer may do everything)."""
        self.server = server
        self.authenticator = authenticator
        self.audit_log = audit_log
        self.port = 0
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port."""
        self.server.watches.timeout = self.server.watches.timeout or 1800
        low_level = web.Server(self._handle, handler_cancellation=True, access_log=None, keepalive_timeout=180)
        self._runner = web.ServerRunner(low_level, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=context, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def stop(self) -> None:
        """End all watches and connections."""
        self.server.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        try:
            user = self._user(http)
            body = await self._body(http)
        except StatusError as e:
            return _whole(rendering.failed(e, PLAIN))
        request = Request(
            method=http.method,
            path=_path(http),
            query=tuple(http.rel_url.query.items()),
            headers={k.lower(): v for k, v in http.headers.items() if k.lower() not in _DROPPED},
            body=body,
        )
        if "upgrade" in http.headers.get("Connection", "").lower() and "websocket" in http.headers.get("Upgrade", "").lower():
            return await self._upgrade(http, request, user)
        if self.audit_log is None:
            answer = await self.server.handle(request, user)
        else:
            answer = await audit.handle(self.server, request, user, self.audit_log)
        if isinstance(answer, Stream):
            return await self._stream(http, answer)
        return _whole(answer)

    def _user(self, http: web.BaseRequest) -> User:
        if self.authenticator is None:
            user = ANONYMOUS
        else:
            transport = http.transport
            certificate = transport.get_extra_info("peercert") if transport is not None else None
            user = self.authenticator.authenticate(http.headers, certificate)  # type: ignore[arg-type]  # a multi-dict fits
        return impersonated(self.server, user, http.headers)  # type: ignore[arg-type]

    @staticmethod
    async def _body(http: web.BaseRequest) -> bytes:
        if not http.can_read_body:
            return b""
        length = http.content_length
        if length is not None and length > _BODY_MAXIMUM:
            await _discard(http)
            raise too_large()
        chunks: list[bytes] = []
        size = 0
        async for chunk in http.content.iter_any():
            size += len(chunk)
            if size > _BODY_MAXIMUM:
                await _discard(http)
                raise too_large()
            chunks.append(chunk)
        return b"".join(chunks)

    @staticmethod
    async def _stream(http: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(status=stream.response.status)
        _headers(response, stream.response)
        chunked = http.version >= (1, 1)
        if chunked:
            response.enable_chunked_encoding()
        ended = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        try:
            await response.prepare(http)
            transport = http.transport
            if transport is None:
                return response

            def send(line: bytes) -> None:
                # past aiohttp's writer, straight to the transport: a watcher costs a call, not a task wake-up
                if transport.is_closing():
                    stream.close()
                    return
                transport.write(b"%x\r\n%b\r\n" % (len(line), line) if chunked else line)
                if transport.get_write_buffer_size() > _SLOW_WATCHER:
                    stream.close()
                    transport.abort()

            stream.connect(send, end)
            await ended
            if not transport.is_closing():
                await response.write_eof()
        finally:
            stream.close()
        return response

    async def _upgrade(self, http: web.BaseRequest, request: Request, user: User) -> web.StreamResponse:
        asked = tuple(p.strip() for p in http.headers.get("Sec-WebSocket-Protocol", "").split(",") if p.strip())
        try:
            duplex = await self.server.upgrade(request, user)
        except StatusError as e:
            return _whole(rendering.failed(e, PLAIN))
        socket = web.WebSocketResponse(protocols=asked, max_msg_size=_SLOW_WATCHER)
        await socket.prepare(http)
        pump = asyncio.ensure_future(_pump(duplex, socket))
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    await duplex.send(message.data)
                elif message.type is WSMsgType.TEXT:
                    await duplex.send(message.data.encode())
        finally:
            await duplex.close()
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
        return socket


async def _pump(duplex: Duplex, socket: web.WebSocketResponse) -> None:
    while True:
        message = await duplex.receive()
        if message is None:
            await socket.close()
            return
        await socket.send_bytes(message)


async def _discard(http: web.BaseRequest) -> None:
    """Read on for a while, so that the client gets to read the answer instead of a broken connection."""
    size = 0
    async for chunk in http.content.iter_any():
        size += len(chunk)
        if size > 16 * _BODY_MAXIMUM:
            return


def _path(http: web.BaseRequest) -> str:
    raw = http.rel_url.raw_path
    return unquote(raw) if "%" in raw else raw


def _headers(response: web.StreamResponse, answer: Response) -> None:
    headers: Any = response.headers
    for name, value in answer.headers.items():
        headers[name] = value
    for text in answer.warnings:
        headers.add("Warning", _warning(text))
    headers["Cache-Control"] = "no-cache, private"


def _whole(answer: Response) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body)
    if "content-type" not in answer.headers:
        response.headers.pop("Content-Type", None)
    _headers(response, answer)
    return response
