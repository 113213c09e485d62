"""An etcd member's client port: TLS, HTTP/1.1 and etcd's JSON gateway, on any stream of bytes."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from clusterwright.api.wire import Duplex
from clusterwright.inmemory.etcd import EtcdRefused
from clusterwright.streams.tls import TlsStream

_MAX_REQUEST = 1 << 20

Call = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers one gateway call (path, body); raises EtcdRefused."""


async def serve(stream: Duplex, context: ssl.SSLContext, call: Call) -> None:
    """Answer calls on a stream of bytes until the peer closes it or breaks the protocol."""
    tls = TlsStream(stream, context)
    try:
        await tls.handshake()
        while (request := await _read_request(tls)) is not None:
            path, body = request
            status, answer = await _answer(call, path, body)
            payload = msgspec.json.encode(answer)
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            await tls.send(head.encode() + payload)
    except (ssl.SSLError, ConnectionError, ValueError):
        pass  # what etcd does with a broken stream: it is closed
    finally:
        await stream.close()


async def _answer(call: Call, path: str, body: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        decoded = msgspec.json.decode(body) if body else {}
        return "200 OK", await call(path, decoded if isinstance(decoded, dict) else {})
    except EtcdRefused as error:
        return "503 Service Unavailable", {"error": str(error), "message": str(error), "code": 14}
    except msgspec.DecodeError:
        return "400 Bad Request", {"error": "invalid JSON", "message": "invalid JSON", "code": 3}


async def _read_request(tls: Duplex) -> tuple[str, bytes] | None:
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        more = await tls.receive()
        if not more:
            return None
        buffer += more
        if len(buffer) > _MAX_REQUEST:
            raise ValueError("request too large")
    head, _, body = buffer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", "0"))
    if length > _MAX_REQUEST:
        raise ValueError("request too large")
    while len(body) < length:
        more = await tls.receive()
        if not more:
            return None
        body += more
    return lines[0].split(" ")[1], body[:length]
