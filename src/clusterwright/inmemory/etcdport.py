"""The client port of a simulated etcd member on any stream of bytes: gRPC inside TLS."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.api.wire import Duplex
from clusterwright.inmemory.etcd import EtcdRefused
from clusterwright.streams import etcdrpc, grpc
from clusterwright.streams.grpc import GrpcError
from clusterwright.streams.protobuf import Malformed
from clusterwright.streams.tls import TlsStream

PROTOCOLS: Final = ["h2"]
_BY_PATH: Final = {method.path: name for name, method in etcdrpc.METHODS.items()}

Call = Callable[[str, Json], Awaitable[Json]]
"""Answers a call, by the name of its method in `etcdrpc.METHODS`; raises EtcdRefused."""


async def serve(stream: Duplex, context: ssl.SSLContext, call: Call) -> None:
    """Answer calls until the peer closes the stream or violates the protocol."""
    tls = TlsStream(stream, context)
    try:
        await tls.handshake()
        await grpc.serve(tls, partial(_answer, call))
    except (OSError, ValueError, GrpcError):
        pass  # etcd closes a broken stream, too
    finally:
        await stream.close()


async def _answer(call: Call, path: str, message: bytes) -> bytes:
    if (name := _BY_PATH.get(path)) is None:
        raise GrpcError(grpc.UNIMPLEMENTED, f"unknown method {path}")
    method = etcdrpc.METHODS[name]
    try:
        return etcdrpc.encode(method.response, await call(name, etcdrpc.decode(method.request, message)))
    except EtcdRefused as error:
        raise GrpcError(error.code, str(error)) from error
    except Malformed as error:
        raise GrpcError(grpc.INVALID_ARGUMENT, str(error)) from error
