"""An etcd member's client port on any stream of bytes: TLS, and inside it gRPC or, for who does not speak HTTP/2, the JSON gateway."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import UNREADABLE, Duplex
from clusterwright.inmemory.etcd import EtcdRefused
from clusterwright.streams import etcdrpc, grpc
from clusterwright.streams.grpc import GrpcError
from clusterwright.streams.protobuf import Malformed
from clusterwright.streams.tls import TlsStream

PROTOCOLS: Final = ["http/1.1", "h2"]
"""What is spoken, the cheaper first: who offers both, as our own controllers do, gets half the work for the same answers."""
_MAX_REQUEST: Final = grpc.MAX_REQUEST
_BY_GRPC: Final = {method.grpc: name for name, method in etcdrpc.METHODS.items()}
_BY_GATEWAY: Final = {method.gateway: name for name, method in etcdrpc.METHODS.items()}
_HTTP: Final = {grpc.INVALID_ARGUMENT: "400 Bad Request", grpc.FAILED_PRECONDITION: "400 Bad Request", grpc.NOT_FOUND: "404 Not Found",
                grpc.UNIMPLEMENTED: "501 Not Implemented"}  # fmt: skip
"""Statuses of the gateway, where they are not 503."""

Call = Callable[[str, Json], Awaitable[Json]]
"""Answers a call, by the name of its method in `etcdrpc.METHODS`; raises EtcdRefused."""


async def serve(stream: Duplex, context: ssl.SSLContext, call: Call) -> None:
    """Answer calls until the peer closes the stream or breaks the protocol."""
    tls = TlsStream(stream, context)
    try:
        await tls.handshake()
        if tls.protocol() == "h2":
            await grpc.serve(tls, partial(_answer_grpc, call))
        else:
            await _serve_gateway(tls, call)
    except (OSError, ValueError, GrpcError):
        pass  # what etcd does with a broken stream: it is closed
    finally:
        await stream.close()


async def _answer_grpc(call: Call, path: str, message: bytes) -> bytes:
    if (name := _BY_GRPC.get(path)) is None:
        raise GrpcError(grpc.UNIMPLEMENTED, f"unknown method {path}")
    method = etcdrpc.METHODS[name]
    try:
        return etcdrpc.encode(method.response, await call(name, etcdrpc.decode(method.request, message)))
    except EtcdRefused as error:
        raise GrpcError(error.code, str(error)) from error
    except Malformed as error:
        raise GrpcError(grpc.INVALID_ARGUMENT, str(error)) from error


async def _serve_gateway(tls: Duplex, call: Call) -> None:
    while (request := await _read_request(tls)) is not None:
        status, answer = await _answer_json(call, *request)
        payload = msgspec.json.encode(answer)
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
        await tls.send(head.encode() + payload)


async def _answer_json(call: Call, path: str, body: bytes) -> tuple[str, Json]:
    try:
        if (name := _BY_GATEWAY.get(path)) is None:
            return "404 Not Found", {"code": grpc.NOT_FOUND, "message": "Not Found"}
        request = etcdrpc.METHODS[name].request
        decoded = msgspec.json.decode(body or b"{}", type=dict)
        return "200 OK", await call(name, etcdrpc.decode(request, etcdrpc.encode(request, decoded)))  # numbers become text on this way
    except EtcdRefused as error:
        return _HTTP.get(error.code, "503 Service Unavailable"), {"error": str(error), "message": str(error), "code": error.code}
    except (*UNREADABLE, Malformed) as error:
        return _HTTP[grpc.INVALID_ARGUMENT], {"error": str(error), "message": str(error), "code": grpc.INVALID_ARGUMENT}


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
    path = lines[0].split(" ")[1:2]
    return (path or [""])[0], body[:length]
