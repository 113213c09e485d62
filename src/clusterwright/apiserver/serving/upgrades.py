"""Upgrade a connection from HTTP to WebSocket or SPDY, for port-forwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import WSMsgType, web

from clusterwright.api.wire import Dial
from clusterwright.apiserver.serving import portforward
from clusterwright.apiserver.serving.connections import Connection, Tunnel
from clusterwright.apiserver.status import bad_request, failure
from clusterwright.streams import spdy

_VERSIONS: Final = "X-Stream-Protocol-Version"
_LONGEST: Final = 3 * 1024 * 1024
"""The longest message of a WebSocket."""

Serve = Callable[[web.BaseRequest, Dial], Awaitable[web.StreamResponse]]
"""Upgrades the connection of a request, and forwards ports on it until it ends."""


def is_wanted(http: web.BaseRequest) -> bool:
    """Return whether a request asks for a supported protocol."""
    return "upgrade" in http.headers.get("Connection", "").lower() and bool(_upgrade(http))


def _upgrade(http: web.BaseRequest) -> str:
    asked = http.headers.get("Upgrade", "").lower()
    return next((known for known in ("websocket", spdy.NAME.lower()) if known in asked), "")


def negotiate(http: web.BaseRequest) -> Serve:
    """Return the function that serves the upgraded request. Raises StatusError if the two sides share no protocol."""
    if _upgrade(http) != "websocket":
        versions = _texts(http.headers.getall(_VERSIONS, []))
        if versions and spdy.PORT_FORWARD not in versions:
            text = f"unable to upgrade: unable to negotiate protocol: client supports {versions}, server accepts [{spdy.PORT_FORWARD}]"
            raise failure(403, "Forbidden", text)
        return _session_on_http
    asked = _texts(http.headers.getall("Sec-WebSocket-Protocol", []))
    if spdy.TUNNEL in asked:
        return _session_on_websocket
    if asked and portforward.CHANNELS not in asked:
        raise bad_request(f"unable to upgrade: of the protocols {asked} none is {spdy.TUNNEL} or {portforward.CHANNELS}")
    if portforward.asked_ports(http.query.getall("ports", [])) is None:
        raise bad_request("query parameter 'ports' must be one or more numbers of ports, from 1 to 65535")
    return _channels_on_websocket


def _texts(headers: list[str]) -> list[str]:
    return [text.strip() for header in headers for text in header.split(",") if text.strip()]


async def _session_on_http(http: web.BaseRequest, dial: Dial) -> web.StreamResponse:
    headers = {"Connection": "Upgrade", "Upgrade": spdy.NAME, _VERSIONS: spdy.PORT_FORWARD}
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    connection = http.protocol
    assert isinstance(connection, Connection)
    tunnel = Tunnel(connection)
    await response.prepare(http)
    await portforward.serve_session(tunnel, dial, _pod(http))
    return response


async def _session_on_websocket(http: web.BaseRequest, dial: Dial) -> web.StreamResponse:
    socket = await _websocket(http, spdy.TUNNEL)
    await portforward.serve_session(socket, dial, _pod(http))
    return socket.response


async def _channels_on_websocket(http: web.BaseRequest, dial: Dial) -> web.StreamResponse:
    socket = await _websocket(http, portforward.CHANNELS)
    ports = portforward.asked_ports(http.query.getall("ports")) or []
    await portforward.serve_channels(socket, ports, dial, _pod(http))
    return socket.response


def _pod(http: web.BaseRequest) -> str:
    return http.path.rsplit("/", 2)[-2]


class _Socket:
    """A WebSocket as a stream of its messages."""

    def __init__(self, response: web.WebSocketResponse) -> None:
        self.response = response

    async def send(self, message: bytes) -> None:
        await self.response.send_bytes(message)

    async def receive(self) -> bytes | None:
        message = await self.response.receive()
        return message.data if message.type is WSMsgType.BINARY else None

    async def close(self) -> None:
        await self.response.close()


async def _websocket(http: web.BaseRequest, protocol: str) -> _Socket:
    response = web.WebSocketResponse(protocols=(protocol,), max_msg_size=_LONGEST)
    await response.prepare(http)
    return _Socket(response)
