"""The HTTP front end: aiohttp takes requests to a server, and sends answers and watches back."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.authentication import Authenticator, impersonated
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN
from clusterwright.apiserver.flows import Flow
from clusterwright.apiserver.identity import ANONYMOUS, User
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving import audit, upgrades
from clusterwright.apiserver.serving.connections import STAND_IN, Connection, Limits, Server
from clusterwright.apiserver.serving.fairness import Fairness, rejected
from clusterwright.apiserver.status import StatusError, bad_request, failure, too_large, too_many_requests
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.system import endpoints

_BODY_MAXIMUM: Final = 3 * 1024 * 1024
_BODY_SECONDS: Final = 30.0
_BODIES: Final = 64 * 1024 * 1024
"""The bytes of all bodies that are read or in use at a time."""
_ANONYMOUS_BODY: Final = 64 * 1024
_ANONYMOUS_SECONDS: Final = 5.0
_ANONYMOUS_BODIES: Final = 1024 * 1024
_SLICE: Final = 256 * 1024
"""The bytes that are sent before other requests are served."""
_DROPPED: Final = frozenset({"connection", "host", "content-length", "transfer-encoding", "authorization"})


@cache
def worker() -> ThreadPoolExecutor:
    """Return the thread that does the heavy work of all servers of this process: one, so that its share of the CPU is bounded."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-heavy")


def _method(http: web.BaseRequest) -> str:
    connection = http.protocol
    if http.method != STAND_IN or not isinstance(connection, Connection) or not connection.unusual:
        return http.method
    unusual, connection.unusual = connection.unusual, ""
    return unusual


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '299 - "' + "".join(c if c.isprintable() else " " for c in escaped) + '"'


class HttpServer:
    """Serves one ApiServer on one address."""

    def __init__(
        self,
        server: ApiServer,
        authenticator: Authenticator | None = None,
        *,
        audit_log: Callable[[audit.Record], None] | None = None,
        limits: Limits | None = None,
        advertise: bool = True,
    ) -> None:
        """Create a front end. Without an authenticator every caller is anonymous (and without an authorizer may do everything).

        `advertise`: create the server's Service `kubernetes` with this address.
        """
        self.server = server
        self.authenticator = authenticator
        self.audit_log = audit_log
        self.advertise = advertise
        self.port = 0
        self.limits = limits or Limits()
        self.fairness = Fairness(server)
        if server.metrics is not None:
            server.metrics.further.append(self.fairness.metrics)
        self._reading = {True: 0, False: 0}
        """Bytes of bodies in progress, of anonymous users and of others."""
        self._watches: Counter[str] = Counter()
        """Open watches by user."""
        self._mounts: dict[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {}
        self.front = ""
        """The path to which browsers that open `/` are sent; empty: none."""
        self._runner: web.ServerRunner | None = None
        self._low_level: Server | None = None
        self._listening: asyncio.Server | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen and return the port."""
        self.server.watches.timeout = self.server.watches.timeout or 1800
        self.server.worker = worker()
        self._low_level = Server(
            self._handle,
            self.limits,
            is_open=self.authenticator is None,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=self.limits.idle,
            lingering_time=2.0,
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(self._low_level, shutdown_timeout=0.5)
        await self._runner.setup()
        self._listening = await self._low_level.listen(host, port, context)
        self.port = self._listening.sockets[0].getsockname()[1]
        if self.advertise:
            endpoints.advertise(self.server, host, self.port)
        return self.port

    def is_allowed(self, http: web.BaseRequest, verb: str, path: str) -> bool:
        """Return whether the caller may do this with a path that is not a resource: for what is mounted. Never for strangers."""
        if self.authenticator is None or not isinstance(http.protocol, Connection):
            return False
        try:
            user = self.authenticator.authenticate(http.headers, http.protocol.certified)  # type: ignore[arg-type]  # a multi-dict fits
        except StatusError:
            return False
        authorizer = self.server.authorizer
        return user is not ANONYMOUS and authorizer is not None and authorizer.allows(self.server, user, RequestInfo(verb=verb, path=path))

    def mount(self, segment: str, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        """Pass all requests below `/segment` to a handler that is not part of the API and has its own authentication."""
        self._mounts[segment] = handler

    async def stop(self) -> None:
        """End all watches and connections."""
        self.server.close()
        if self._low_level is not None and self._listening is not None and self._runner is not None:
            self._listening.close()
            self._low_level.end()
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if self._mounts and (mounted := self._mounts.get(http.rel_url.raw_path.split("/", 2)[1])) is not None:
            return await mounted(http)
        if self.front and http.method == "GET" and http.rel_url.raw_path == "/" and "text/html" in http.headers.get("Accept", ""):
            return web.Response(status=302, headers={"Location": self.front})
        request = Request(
            method=_method(http),
            path=_path(http),
            query=tuple(http.rel_url.query.items()),
            headers={k.lower(): v for k, v in http.headers.items() if k.lower() not in _DROPPED},
        )
        seen = audit.Seen(self.server, request, self.audit_log)
        flow: Flow | None = None
        try:
            self._identify(http, seen)
            if upgrades.is_wanted(http):
                dial = self.server.forward(request, seen.user)
                serve = upgrades.negotiate(http)
                seen.answered(Response(status=101))
                return await serve(http, dial)
            info = self.server.info(request)
            flow = self.fairness.flows.classify(seen.user, info)
            if info.verb != "watch":
                return await self._serve(http, request, info, seen, flow)
            with self._watch_of(seen.user):
                return await self._serve(http, request, info, seen, flow)
        except StatusError as e:
            refused = rendering.failed(e, PLAIN)
            seen.answered(refused)
            return _refused(refused, flow)

    @contextmanager
    def _watch_of(self, user: User) -> Iterator[None]:
        """Count a watch of a user while it lasts. Raises StatusError (429) if the user has too many."""
        limit = self.limits.watches
        limited = self.authenticator is not None and "system:masters" not in user.groups
        if limited and self._watches[user.name] >= limit:
            text = f'user "{user.name}" has {limit} watches open, which is the limit for one user: end some, or try again later'
            raise too_many_requests(text, 10)
        self._watches[user.name] += 1
        try:
            yield
        finally:
            self._watches[user.name] -= 1
            if not self._watches[user.name]:
                del self._watches[user.name]

    async def _serve(self, http: web.BaseRequest, request: Request, info: RequestInfo, seen: audit.Seen, flow: Flow) -> web.StreamResponse:
        async with self.fairness.seat(flow):
            body = b""

            async def read() -> bytes:
                nonlocal body
                body = await self._body(http, seen)
                return body

            try:
                answer = await self.server.handle(request, seen.user, info, read if http.can_read_body else None)
                seen.answered(answer)
                response = None if isinstance(answer, Stream) else await self._whole(http, answer, flow)
            finally:
                self._reading[self._is_stranger(seen)] -= len(body)
        if response is not None:
            return response
        try:
            return await self._stream(http, answer, flow)  # type: ignore[arg-type]  # a Stream, then
        finally:
            seen.ended()

    def _identify(self, http: web.BaseRequest, seen: audit.Seen) -> None:
        if self.authenticator is not None:
            connection = http.protocol
            assert isinstance(connection, Connection)
            seen.user = seen.real = self.authenticator.authenticate(http.headers, connection.certified)  # type: ignore[arg-type]  # a multi-dict fits
            if seen.user is not ANONYMOUS:
                connection.is_known = True
        seen.user = impersonated(self.server, seen.real, http.headers)  # type: ignore[arg-type]

    def _is_stranger(self, seen: audit.Seen) -> bool:
        return self.authenticator is not None and "system:unauthenticated" in seen.user.groups

    async def _body(self, http: web.BaseRequest, seen: audit.Seen) -> bytes:
        """Read the body within its limits; it counts in `_reading` from then on. Raises StatusError."""
        if http.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise failure(415, "UnsupportedMediaType", "the body of the request must not be compressed")
        stranger = self._is_stranger(seen)
        limit, seconds, together = (
            (_ANONYMOUS_BODY, _ANONYMOUS_SECONDS, _ANONYMOUS_BODIES) if stranger else (_BODY_MAXIMUM, _BODY_SECONDS, _BODIES)
        )
        if (http.content_length or 0) > limit:
            raise too_large()
        chunks: list[bytes] = []
        size = 0

        def take(chunk: bytes) -> None:
            nonlocal size
            size += len(chunk)
            self._reading[stranger] += len(chunk)
            chunks.append(chunk)
            if size > limit:
                raise too_large()
            if self._reading[stranger] > together:
                raise rejected()

        try:
            if http.content.is_eof():  # the body is here: it needs no time limit
                take(http.content.read_nowait())
            else:
                async with asyncio.timeout(seconds):
                    async for chunk in http.content.iter_any():
                        take(chunk)
        except BaseException as error:
            self._reading[stranger] -= size
            if isinstance(error, TimeoutError):
                raise failure(408, "Timeout", f"the body of the request did not come within {seconds:g} s") from None
            if isinstance(error, web.RequestPayloadError | ConnectionError):
                raise bad_request(f"the body of the request cannot be read: {error}") from None
            raise
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _whole(self, http: web.BaseRequest, answer: Response, flow: Flow) -> web.StreamResponse:
        """Send an answer; the seat is held until the peer has read it, or gave up. Close the connection if the body was not read."""
        is_long = len(answer.body) > _SLICE
        response = _long(answer) if is_long else _whole(answer)
        if http.can_read_body:
            response.force_close()
        response.headers.update(flow.headers)
        with suppress(ConnectionError):  # the client has closed the connection
            await response.prepare(http)
            if is_long and http.method != "HEAD":
                await _in_slices(response, answer.body)
            await response.write_eof()
        return response

    async def _stream(self, http: web.BaseRequest, stream: Stream, flow: Flow) -> web.StreamResponse:
        response = web.StreamResponse(status=stream.response.status)
        _headers(response, stream.response)
        response.headers.update(flow.headers)
        chunked = http.version >= (1, 1)
        if chunked:
            response.enable_chunked_encoding()
        ended = asyncio.get_running_loop().create_future()
        limit = self.limits.unread

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        try:
            await response.prepare(http)
            transport = http.transport
            if transport is None:
                return response

            try:
                while waiting := stream.take(_SLICE):  # initial objects are sent as fast as the client reads them
                    await response.write(waiting)
            except ConnectionError:
                return response

            def send(line: bytes) -> None:
                # straight to the transport, past aiohttp's writer: an event costs a call, not a task switch
                if transport.is_closing() or transport.get_write_buffer_size() > limit:
                    stream.close()
                    transport.abort()
                    return
                transport.write(b"%x\r\n%b\r\n" % (len(line), line) if chunked else line)

            stream.connect(send, end)
            await ended
            if not transport.is_closing():
                await response.write_eof()
        finally:
            stream.close()
        return response


def _refused(answer: Response, flow: Flow | None) -> web.Response:
    """Return the answer to a request whose body was not read; the connection is closed after it."""
    response = _whole(answer)
    if flow is not None:
        response.headers.update(flow.headers)
    response.force_close()
    return response


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


def _long(answer: Response) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status)
    _headers(response, answer)
    response.content_length = len(answer.body)
    return response


async def _in_slices(response: web.StreamResponse, body: bytes) -> None:
    """Send a long body in slices, as fast as the client reads it; other requests are served in between."""
    whole = memoryview(body)
    for start in range(0, len(body), _SLICE):
        await response.write(whole[start : start + _SLICE])
        await asyncio.sleep(0)


def _whole(answer: Response) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body)
    if "content-type" not in answer.headers:
        response.headers.pop("Content-Type", None)
    _headers(response, answer)
    return response
