"""A transport without a network: requests go straight to a server in this process, on any event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver.identity import ADMIN, User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.status import StatusError
from clusterwright.apiserver.storage.streams import Stream


class ForwardRefused(Exception):
    """The server refused to forward a port; `status` is its Kubernetes Status."""

    def __init__(self, status: dict[str, object]) -> None:
        super().__init__(str(status.get("message", "")))
        self.status = status


class InProcessTransport:
    """`api.wire.Transport` to one server, as one user."""

    def __init__(self, server: ApiServer, user: User = ADMIN) -> None:
        self.server = server
        self.user = user

    async def send(self, request: Request) -> Response:
        """Send a request and return the whole answer."""
        answer = await self.server.handle(request, self.user)
        if isinstance(answer, Stream):
            lines = [line async for line in answer]
            return Response(status=answer.response.status, headers=answer.response.headers, body=b"".join(lines))
        if self.server.audit is not None and request.method not in {"GET", "HEAD"}:
            self.server.audit(request, self.user, answer)
        return answer

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Send a watch and return its events as a stream."""
        answer = await self.server.handle(request, self.user)
        if isinstance(answer, Stream):
            return answer.response, aiter(answer)
        return answer, _nothing()

    async def forward(self, request: Request, port: int) -> Duplex:
        """Open a port of a Pod. Raises ForwardRefused, OSError."""
        try:
            dial = self.server.forward(request, self.user)
        except StatusError as e:
            raise ForwardRefused(msgspec.to_builtins(e.status)) from None
        return await dial(port)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


async def _nothing() -> AsyncIterator[bytes]:
    lines: tuple[bytes, ...] = ()
    for line in lines:
        yield line
