"""The far end of a port-forward to an etcd member: TLS, HTTP/1.1 and etcd's JSON gateway, over any message stream."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from clusterwright.api.wire import Duplex
from clusterwright.inmemory.etcd import EtcdRefused

_DATA, _ERROR = b"\x00", b"\x01"
_MAX_REQUEST = 1 << 20

Call = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers one gateway call (path, body); raises EtcdRefused."""


async def serve(socket: Duplex, port: int, context: ssl.SSLContext, call: Call) -> None:
    """Answer calls on a port-forward's WebSocket until the peer closes it or breaks the protocol."""
    announced = port.to_bytes(2, "little")
    await socket.send(_DATA + announced)
    await socket.send(_ERROR + announced)
    tls = _TlsServer(socket, context)
    try:
        await tls.handshake()
        while (request := await _read_request(tls)) is not None:
            path, body = request
            status, answer = await _answer(call, path, body)
            payload = msgspec.json.encode(answer)
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            await tls.write(head.encode() + payload)
    except (ssl.SSLError, ConnectionError, ValueError):
        pass  # what a kubelet does with a broken stream: it is closed
    finally:
        await socket.close()


async def refuse(socket: Duplex, port: int, text: str) -> None:
    """Report, as a kubelet does, that nothing listens at the port."""
    announced = port.to_bytes(2, "little")
    await socket.send(_DATA + announced)
    await socket.send(_ERROR + announced)
    await socket.send(_ERROR + text.encode())
    await socket.close()


async def _answer(call: Call, path: str, body: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        decoded = msgspec.json.decode(body) if body else {}
        return "200 OK", await call(path, decoded if isinstance(decoded, dict) else {})
    except EtcdRefused as error:
        return "503 Service Unavailable", {"error": str(error), "message": str(error), "code": 14}
    except msgspec.DecodeError:
        return "400 Bad Request", {"error": "invalid JSON", "message": "invalid JSON", "code": 3}


async def _read_request(tls: _TlsServer) -> tuple[str, bytes] | None:
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        more = await tls.read()
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
        more = await tls.read()
        if not more:
            return None
        body += more
    return lines[0].split(" ")[1], body[:length]


class _TlsServer:
    """The server's half of TLS on a port-forward channel."""

    def __init__(self, socket: Duplex, context: ssl.SSLContext) -> None:
        self._socket = socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self) -> None:
        await self._until(self._tls.do_handshake)

    async def read(self) -> bytes:
        try:
            data: bytes = await self._until(lambda: self._tls.read(65536))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError, ConnectionError):
            return b""
        return data

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def _until(self, step: Callable[[], Any]) -> Any:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush()
                message = await self._socket.receive()
                if message is None:
                    raise ConnectionResetError("closed") from None
                if message[:1] == _DATA:
                    self._incoming.write(message[1:])
                continue
            await self._flush()
            return result

    async def _flush(self) -> None:
        if pending := self._outgoing.read():
            await self._socket.send(_DATA + pending)
