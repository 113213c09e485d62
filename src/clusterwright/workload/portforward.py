"""A port of a Pod as a byte stream: the channel protocol of port-forward, over a WebSocket."""

from __future__ import annotations

from clusterwright.api.wire import Duplex, Request, Transport
from clusterwright.workload.access import PortRefused

PROTOCOLS = ("v4.channel.k8s.io",)
_DATA, _ERROR = 0, 1


class PortForward:
    """A Duplex of plain bytes to one port. Each message of the WebSocket begins with its channel: 0 is data, 1 is an error text.

    The first message on either channel is the port number, which is not data.
    """

    def __init__(self, socket: Duplex) -> None:
        self._socket = socket
        self._opened: set[int] = set()

    async def send(self, message: bytes) -> None:
        """Send bytes to the port."""
        await self._socket.send(bytes([_DATA]) + message)

    async def receive(self) -> bytes | None:
        """Some bytes from the port; None when it is closed. An error that the kubelet reports is PortRefused."""
        while (message := await self._socket.receive()) is not None:
            if not message:
                continue
            channel, payload = message[0], message[1:]
            if channel not in self._opened:
                self._opened.add(channel)
                if len(payload) == 2:
                    continue
            if channel == _ERROR and payload:
                raise PortRefused(payload.decode("utf-8", "replace"))
            if channel == _DATA and payload:
                return payload
        return None

    async def close(self) -> None:
        """Close; safe to call twice."""
        await self._socket.close()


async def forward(transport: Transport, namespace: str, pod: str, port: int) -> PortForward:
    """Open `port` of a Pod; raises ConnectionFailed or another ApiError."""
    request = Request(method="GET", path=f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward", query=(("ports", str(port)),))
    return PortForward(await transport.upgrade(request, PROTOCOLS))
