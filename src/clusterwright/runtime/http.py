"""The transport to an API server over HTTPS, by aiohttp: one request, a watch as JSON values, ports of Pods."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.runtime import portforward
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.credentials import Credentials, CredentialSource
from clusterwright.runtime.errors import ConnectionFailed, Unauthorized
from clusterwright.runtime.fence import Fence, NotLeading
from clusterwright.runtime.framing import JsonFrames, TooLong
from clusterwright.runtime.kubeconfig import Connection
from clusterwright.streams.tls import authorities, use_certificate

_REQUEST = aiohttp.ClientTimeout(total=75.0, sock_connect=15.0)
_STREAM = aiohttp.ClientTimeout(total=None, sock_connect=15.0)
MAX_BODY = 256 * 1024 * 1024
"""The largest answer, unpacked: a page of 500 of the largest likely objects."""
MAX_FOREIGN_BODY = 32 * 1024 * 1024
"""The largest answer of a peer that others operate, such as a workload cluster."""
MAX_LINE = 16 * 1024 * 1024
"""The longest event of a watch; the largest object has a tenth of it."""
_STEP = 256 * 1024
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}


class HttpTransport:
    """One API server. Connections are kept and shared; dead ones are found by TCP keepalive within a minute.

    A client certificate that an exec plugin renews gets a new session; the previous one is kept for its watches. A write leaves only while
    the fence, if any, is open: checked when its body goes to the kernel.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        environ: Mapping[str, str] | None = None,
        *,
        limit: int = 256,
        max_body: int = MAX_BODY,
        fence: Fence | None = None,
    ) -> None:
        self._connection = connection
        self._credentials = CredentialSource(connection, clock, environ)
        self._base = connection.server.rstrip("/")
        self._limit = limit
        self._max_body = max_body
        self._fence = fence
        self._session: aiohttp.ClientSession | None = None
        self._context: ssl.SSLContext | bool = True
        self._certificate: tuple[bytes, bytes] | None = None
        self._is_spdy_only = False
        """Whether a port was forwarded by SPDY, after WebSockets were refused."""
        self._retired: list[aiohttp.ClientSession] = []
        self._closing: set[asyncio.Future[None]] = set()
        self._options: dict[str, Any] = {}
        if connection.tls_server_name:
            self._options["server_hostname"] = connection.tls_server_name
        if proxy := connection.proxy_url or proxy_of(connection.server, environ or {}):
            if not proxy.startswith(("http://", "https://")):
                raise ValueError("only http and https proxies are supported")
            self._options["proxy"] = proxy

    async def send(self, request: Request) -> Response:
        """Send one request and return its whole answer."""
        for refresh in (False, True):
            response = await self._open(request, _REQUEST, refresh=refresh)
            try:
                async with response:
                    body = await self._body(request, response)
            except (aiohttp.ClientError, OSError, TimeoutError, zlib.error) as error:
                raise self._failed(request, error) from error
            if response.status != 401 or refresh or not self._credentials.can_refresh:
                break
        return _response(response, body)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch."""
        response = await self._open(request, _STREAM)
        if response.status == 401 and self._credentials.can_refresh:
            response.release()
            response = await self._open(request, _STREAM, refresh=True)
        if response.status >= 300:
            try:
                async with response:
                    return _response(response, await self._body(request, response)), _nothing()
            except (aiohttp.ClientError, OSError, TimeoutError, zlib.error) as error:
                raise self._failed(request, error) from error
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            response.close()
            raise ConnectionFailed(f"GET {request.path}: unexpected Content-Encoding on a watch response")
        events = self._events(request, response)
        await anext(events)
        return _response(response, b""), events

    async def _events(self, request: Request, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield an empty start, then each event.

        The caller takes the start at once: closing an unstarted generator closes no connection.
        """
        frames = JsonFrames(MAX_LINE)
        try:
            yield b""
            async for chunk in response.content.iter_any():
                for value in frames.feed(chunk):
                    yield value
        except TooLong:
            raise ConnectionFailed(f"GET {request.path}: an event of the watch is longer than {MAX_LINE} bytes") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._failed(request, error) from error
        finally:
            response.close()
        if rest := frames.end():
            yield rest  # cut off: the reader will see

    async def _body(self, request: Request, response: aiohttp.ClientResponse) -> bytes:
        """Return the whole answer, unpacked, within its limit; raises ConnectionFailed."""
        coding = response.headers.get("Content-Encoding", "identity").lower()
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding == "gzip" else None
        if unpack is None and coding not in {"", "identity"}:
            raise ConnectionFailed(f"{request.method} {request.path}: unexpected Content-Encoding on the answer")
        body = bytearray()
        async for chunk in response.content.iter_any():
            if unpack is None:
                body += chunk
            else:
                while chunk and len(body) <= self._max_body:
                    # a little at a time: what unpacks to a thousand times as much must not hold up everybody else
                    body += unpack.decompress(chunk, _STEP)
                    chunk = unpack.unconsumed_tail
                    await asyncio.sleep(0)
            if len(body) > self._max_body:
                raise ConnectionFailed(f"{request.method} {request.path}: the answer is longer than {self._max_body} bytes")
        if unpack is not None:
            body += unpack.flush()
            if not unpack.eof and body:
                raise ConnectionFailed(f"{request.method} {request.path}: the answer is cut off")
        return bytes(body)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Open a port of a Pod by WebSocket or, if the API server does not support that, by SPDY; raises the error of a refusal."""
        try:
            return await portforward.open_port(await self._carrier(request, refresh=False), port)
        except Unauthorized:
            if not self._credentials.can_refresh:
                raise
            return await portforward.open_port(await self._carrier(request, refresh=True), port)

    async def _carrier(self, request: Request, *, refresh: bool) -> Duplex:
        session, headers = await self._prepare(request, "identity", refresh=refresh)
        try:
            if not self._is_spdy_only:
                with suppress(aiohttp.WSServerHandshakeError):
                    return await self._websocket(request, session, headers)
            if "proxy" in self._options:
                raise ConnectionFailed(f"{request.method} {request.path}: through a proxy, ports are forwarded only by WebSocket")
            context = self._context if isinstance(self._context, ssl.SSLContext) else None
            async with asyncio.timeout(_REQUEST.sock_connect):
                carrier = await portforward.upgrade(self._url(request), headers.items(), context, self._connection.tls_server_name)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._failed(request, error) from error
        self._is_spdy_only = True
        return carrier

    async def _websocket(self, request: Request, session: aiohttp.ClientSession, headers: CIMultiDict[str]) -> Duplex:
        socket: aiohttp.ClientWebSocketResponse = await session.ws_connect(
            self._url(request), method="GET", protocols=(portforward.TUNNEL,), headers=headers, max_msg_size=MAX_LINE, **self._options
        )
        if socket.protocol != portforward.TUNNEL:
            await socket.close()
            raise ConnectionFailed(f"{request.method} {request.path}: the server does not speak {portforward.TUNNEL}")
        return _WebSocket(socket)

    async def close(self) -> None:
        """Close all connections."""
        for session in (*self._retired, *([self._session] if self._session else [])):
            await session.close()
        self._retired.clear()
        self._session = None

    async def _open(self, request: Request, timeout: aiohttp.ClientTimeout, *, refresh: bool = False) -> aiohttp.ClientResponse:
        session, headers = await self._prepare(request, "gzip" if timeout is _REQUEST else "identity", refresh=refresh)
        body = _FencedBody(request.body, self._fence, request.method) if self._fence is not None and request.body else request.body or None
        try:
            return await session.request(
                request.method,
                self._url(request),
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                **self._options,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if isinstance(body, _FencedBody) and body.refusal is not None:
                raise body.refusal from None
            raise self._failed(request, error) from error

    async def _prepare(self, request: Request, coding: str, *, refresh: bool) -> tuple[aiohttp.ClientSession, CIMultiDict[str]]:
        credentials = await self._credentials.get(refresh=refresh)
        headers: CIMultiDict[str] = CIMultiDict(request.headers)
        headers.update(credentials.headers)
        headers["Accept-Encoding"] = coding
        for group in self._connection.impersonate_groups:
            headers.add("Impersonate-Group", group)
        for name, values in self._connection.impersonate_extra.items():
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(name, safe='')}", str(value))
        return self._session_for(credentials), headers

    def _session_for(self, credentials: Credentials) -> aiohttp.ClientSession:
        if self._session is None or credentials.certificate != self._certificate:
            if self._session is not None:
                self._retire(self._session)
            if self._connection.server.startswith("https://"):
                self._context = ssl_context(self._connection, credentials.certificate)
            connector = aiohttp.TCPConnector(
                ssl=self._context, limit=self._limit, limit_per_host=0, keepalive_timeout=30.0, socket_factory=_socket
            )
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
            self._certificate = credentials.certificate
        return self._session

    def _retire(self, session: aiohttp.ClientSession) -> None:
        """Retire the old session, whose watches continue; they end before the certificate changes again."""
        self._retired.append(session)
        if len(self._retired) > 1:
            old = self._retired.pop(0)
            closing = asyncio.ensure_future(old.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _url(self, request: Request) -> URL:
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        path = quote(request.path, safe="/:~!$&'()*+,;=@-._")
        return URL(f"{self._base}{path}{'?' + query if query else ''}", encoded=True)

    @staticmethod
    def _failed(request: Request, error: Exception) -> ConnectionFailed:
        # aiohttp's texts name hosts and causes, never headers or bodies
        return ConnectionFailed(f"{request.method} {request.path}: {type(error).__name__}: {error}")


class _FencedBody(aiohttp.BytesPayload):
    """A body that is not sent once the fence is closed: the API server gets a head without its body, and does nothing."""

    def __init__(self, body: bytes, fence: Fence, method: str) -> None:
        super().__init__(body, content_type="application/json")
        self._fence = fence
        self._method = method
        self.refusal: NotLeading | None = None

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        try:
            self._fence.check(self._method)
        except NotLeading as error:
            self.refusal = error
            raise
        await super().write_with_length(writer, content_length)


class _WebSocket:
    """A WebSocket as a stream of bytes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        """Send bytes; raises ConnectionResetError."""
        try:
            await self._socket.send_bytes(message)
        except aiohttp.ClientError as error:
            raise ConnectionResetError(f"WebSocket: {error}") from error

    async def receive(self) -> bytes | None:
        """Return some bytes; None when the peer has closed, or sent something outside of the session."""
        message = await self._socket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else None

    async def close(self) -> None:
        """Close; safe to call twice."""
        await self._socket.close()


def proxy_of(server: str, environ: Mapping[str, str]) -> str:
    """Return the proxy that the environment sets for a server, as curl and Go read it; empty: none. Loopback is never proxied."""
    url = URL(server)
    host = url.host or ""
    proxy = environ.get(f"{url.scheme}_proxy") or environ.get(f"{url.scheme.upper()}_PROXY") or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if not proxy or host == "localhost" or (address is not None and address.is_loopback):
        return ""
    for entry in (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(","):
        name, _, port = entry.strip().partition(":") if entry.count(":") == 1 else (entry.strip(), "", "")
        if name and (not port or port == str(url.port)) and _is_excepted(host, address, name):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_excepted(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, entry: str) -> bool:
    if entry == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    suffix = entry.removeprefix("*").removeprefix(".").lower()
    return host.lower().endswith(f".{suffix}") or (host.lower() == suffix and not entry.startswith((".", "*")))


def ssl_context(connection: Connection, certificate: tuple[bytes, bytes] | None) -> ssl.SSLContext:
    """Return the TLS context of a connection; raises ConnectionFailed if certificates are unusable."""
    try:
        authority = connection.certificate_authority
        context = ssl.create_default_context(cadata=authorities(authority) if authority else None)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority need not be self-signed
        if connection.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            use_certificate(context, *certificate)
    except (ssl.SSLError, ValueError) as error:
        raise ConnectionFailed(f"{connection.server}: certificates cannot be used: {type(error).__name__}") from error
    return context


def _socket(address: Any) -> socket.socket:
    family, type_, protocol, _, _ = address
    made = socket.socket(family, type_, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            with suppress(OSError):
                made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _response(response: aiohttp.ClientResponse, body: bytes) -> Response:
    warnings = tuple(_warning_text(value) for value in response.headers.getall("Warning", ()))
    return Response(
        status=response.status, headers={name.lower(): value for name, value in response.headers.items()}, body=body, warnings=warnings
    )


def _warning_text(header: str) -> str:
    """Return the text of `299 - "text"`."""
    _, _, quoted = header.partition('"')
    text = quoted.rpartition('"')[0] if quoted else header
    return text.replace('\\"', '"').replace("\\\\", "\\")


async def _nothing() -> AsyncIterator[bytes]:
    for line in tuple[bytes, ...]():
        yield line
