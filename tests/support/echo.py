"""Pods whose ports send everything back, except port 81, at which nobody is."""

from __future__ import annotations

from typing import Any

from clusterwright.api.wire import Duplex
from clusterwright.streams.pipe import duplex_pair


class _Same:
    """What is sent is received."""

    def __init__(self) -> None:
        self._near, self._far = duplex_pair()

    async def send(self, message: bytes) -> None:
        await self._near.send(message)

    async def receive(self) -> bytes | None:
        return await self._far.receive()

    async def close(self) -> None:
        await self._near.close()
        await self._far.close()


async def echo(namespace: str, pod: str, port: int) -> Duplex:
    """An `apiserver.server.Forward`."""
    if port == 81:
        raise ConnectionRefusedError("nobody at 81")
    return _Same()


def a_pod(name: str = "p") -> dict[str, Any]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name}, "spec": spec, "status": status}
