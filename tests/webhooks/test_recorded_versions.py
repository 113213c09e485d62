"""Every recorded conversation with upstream in v1beta1 and v1alpha1."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from clusterwright.admission import chain
from clusterwright.api.crds import crds
from clusterwright.apiserver.admission.webhooks import Webhooks
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.identity import ADMIN
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks import embedded
from clusterwright.webhooks.running import WebhookOptions, serving
from conformance import replay
from support.patience import PATIENCE

CORPUS = Path(__file__).parents[1] / "conformance"
GATES = (
    "ClusterTopology", "MachinePool", "RuntimeSDK", "MachineTaintPropagation", "MachineSetPreflightChecks", "KubeadmBootstrapFormatIgnition",
)  # fmt: skip
FEATURES = dict.fromkeys(GATES, True)
NOW = SystemClock().now
AFTER = "versions-watch"
"""Was recorded while a Cluster that cannot be converted was left in another namespace."""
UNCONVERTIBLE = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "left-behind"},
    "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchCluster", "name": "r"}},
}


class InThread:
    """A server in a thread of its own, because the corpus' client blocks."""

    def __init__(self, *, webhooks: bool) -> None:
        self._webhooks = webhooks
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            if self._webhooks:
                await self._serve(await self._asking(stack))
            else:
                server = ApiServer(now=NOW, random=Random(), admission=chain(FEATURES), converters=embedded.converters)
                server.ensure(list(crds()))
                await self._serve(server)

    @staticmethod
    async def _asking(stack: AsyncExitStack) -> ApiServer:
        """A server that knows nothing of our kinds but what it is told, and asks our webhooks over HTTPS."""
        server = ApiServer(now=NOW, random=Random())
        server.admission.append(Webhooks(server))
        client = RestClient(InProcessTransport(server))
        options = WebhookOptions(host="127.0.0.1", port=0, url="https://127.0.0.1:0")
        await stack.enter_async_context(serving(client, SystemClock(), options, FEATURES))
        return server

    async def _serve(self, server: ApiServer) -> None:
        http = HttpServer(server, Authenticator({"admin": ADMIN}))
        self.url = f"http://127.0.0.1:{await http.start('127.0.0.1', 0)}"
        self._ready.set()
        await self._stop.wait()
        await http.stop()
        await server.callouts.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)


@pytest.mark.parametrize("webhooks", [False, True], ids=["in process", "webhooks"])
def test_recorded_answers_in_old_versions(webhooks: bool) -> None:
    scenarios = replay.load([CORPUS / "versions.jsonl"])
    first = [s for s in scenarios if s["name"] != AFTER]
    last = [s for s in scenarios if s["name"] == AFTER]
    server = InThread(webhooks=webhooks)
    try:
        client = replay.Client(server.url, "admin")
        with ThreadPoolExecutor(8) as pool:
            found = dict(
                zip((s["name"] for s in first), pool.map(lambda s: replay.differences(s, replay.play(client, s)), first), strict=True)
            )
        client.send({"method": "POST", "path": "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters", "body": UNCONVERTIBLE})
        for scenario in last:
            found[scenario["name"]] = replay.differences(scenario, replay.play(client, scenario))
    finally:
        server.close()

    assert {name: differences for name, differences in found.items() if differences} == {}
    assert len(found) >= 81


def test_recorded_admission_through_webhooks() -> None:
    """A part of it: whether the way over the network changes anything. What the rules say is judged in `tests/admission`."""
    scenarios = [s for s in replay.load([CORPUS / "admission.jsonl"]) if s.get("gates", "on") == "on" and "naming" not in s["name"]][::10]
    server = InThread(webhooks=True)
    try:
        client = replay.Client(server.url, "admin")
        with ThreadPoolExecutor(8) as pool:
            played = pool.map(lambda s: replay.differences(s, replay.play(client, s)), scenarios)
            found = {s["name"]: differences for s, differences in zip(scenarios, played, strict=True) if differences}
    finally:
        server.close()

    assert found == {}
    assert len(scenarios) >= 48
