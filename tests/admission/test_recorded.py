"""Every recorded conversation with upstream's CRDs and webhooks, for the kinds whose admission we have."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterwright.admission import chain
from clusterwright.api.crds import crds
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.identity import ADMIN
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from conformance import replay
from support.patience import PATIENCE
from vectors import v1_14

CORPUS = Path(__file__).parents[1] / "conformance"
_SOME = {"ClusterTopology": True, "MachinePool": True}
_ON = ("RuntimeSDK", "MachineTaintPropagation", "MachineSetPreflightChecks", "KubeadmBootstrapFormatIgnition")
GATES: dict[str, Mapping[str, bool]] = {"off": {}, "some": _SOME, "on": _SOME | dict.fromkeys(_ON, True)}
FEWEST = {"off": 5, "some": 8, "on": 518}


class InThread:
    """A server in a thread of its own, because the corpus' client blocks."""

    def __init__(self, features: Mapping[str, bool]) -> None:
        self._features = features
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = ApiServer(now=lambda: datetime.now(UTC), random=random.Random(), admission=chain(self._features))
        server.ensure(list(crds()))
        http = HttpServer(server, Authenticator({"admin": ADMIN}))
        self.url = f"http://127.0.0.1:{await http.start('127.0.0.1', 0)}"
        self._ready.set()
        await self._stop.wait()
        await http.stop()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)


@pytest.mark.parametrize("gates", GATES)
def test_recorded_answers_of_the_webhooks(gates: str) -> None:
    """Of KubeadmConfig; and edge cases 87 to 89 of KubeadmControlPlane: as recorded, on create, update and scale."""
    scenarios = [s for s in replay.load([CORPUS / "admission.jsonl"]) if s.get("gates", "on") == gates]
    server = InThread(GATES[gates])
    try:
        client = replay.Client(server.url, "admin")
        with ThreadPoolExecutor(8) as pool:
            played = pool.map(lambda s: replay.differences(s, replay.play(client, s)), scenarios)
            found = list(played)
    finally:
        server.close()

    assert {s["name"]: f for s, f in zip(scenarios, found, strict=True) if f and s["name"] not in v1_14.CONVERSATIONS} == {}
    assert len(scenarios) >= FEWEST[gates]
