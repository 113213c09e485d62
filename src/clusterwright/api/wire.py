"""One HTTP exchange as plain values: the interface between clients and API servers, with or without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

AGGREGATED_DISCOVERY = ",".join(f"application/json;g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1"))
"""The media type for the kinds of all groups in one answer."""
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding data from others: not JSON, not UTF-8, or nested too deeply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. `path` is decoded and has no query; header names are in lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole answer; header names are in lower case. `warnings` are the texts of its Warning headers."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    warnings: tuple[str, ...] = ()


class Duplex(Protocol):
    """A stream in both directions: of messages (a WebSocket) or of bytes (a port). Failures are OSErrors."""

    async def send(self, message: bytes) -> None:
        """Send one message, or some bytes; wait if the peer is slower."""

    async def receive(self) -> bytes | None:
        """Return the next message, or some bytes; None when the peer has closed."""

    async def close(self) -> None:
        """Close; safe to call twice."""


Dial = Callable[[int], Awaitable[Duplex]]
"""Opens a port of a Pod as a stream of bytes; raises OSError: ConnectionRefusedError if nothing listens."""


class Transport(Protocol):
    """Carries requests to one API server. If it cannot be reached, methods raise `runtime.errors.ConnectionFailed`."""

    async def send(self, request: Request) -> Response:
        """Send one request and return its whole answer, of any status."""

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch: status and headers at once, then one item per event, as JSON. A non-2xx answer has its body in the response."""

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of the Pod whose `portforward` is requested, as a stream of bytes.

        If nothing listens, this or the first `receive` raises ConnectionRefusedError.
        """

    async def close(self) -> None:
        """Release connections."""
