"""One HTTP exchange as plain values: where clients and API servers meet, with a network between them or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

AGGREGATED_DISCOVERY = ",".join(f"application/json;g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1"))
"""The media type for the kinds of all groups at once."""
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding data that others send: it is not JSON, not UTF-8, or nested too deeply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. `path` is decoded and has no query; header names are lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole answer; header names are lower case. `warnings` are the texts of its Warning headers."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    warnings: tuple[str, ...] = ()


class Duplex(Protocol):
    """A stream in both directions: of messages (a WebSocket) or of bytes (a port). What fails is an OSError."""

    async def send(self, message: bytes) -> None:
        """Send one message, or some bytes; waits where the peer does not keep up."""

    async def receive(self) -> bytes | None:
        """Return the next message, or some bytes; None when the peer has closed."""

    async def close(self) -> None:
        """Close; safe to call twice."""


Dial = Callable[[int], Awaitable[Duplex]]
"""Opens a port of a Pod as a stream of bytes; raises OSError, a ConnectionRefusedError where nothing listens."""


class Transport(Protocol):
    """Carries requests to one API server. Failures to reach it are `runtime.errors.ConnectionFailed`."""

    async def send(self, request: Request) -> Response:
        """Send one request and return its whole answer, whatever its status."""

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch: status and headers at once, then one item per event, as JSON. A non-2xx answer has its body in the response."""

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of the Pod whose `portforward` is asked for, as a stream of bytes.

        Where nothing listens, this or the first `receive` raises a ConnectionRefusedError.
        """

    async def close(self) -> None:
        """Release connections."""
