"""A real kube-apiserver with our CRDs and our webhooks answers as recorded; only where KUBEBUILDER_ASSETS names one."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Connection, Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks.running import WebhookOptions, serving
from conformance import replay

CORPUS = Path(__file__).parents[1] / "conformance"
GATES = (
    "ClusterTopology", "MachinePool", "RuntimeSDK", "MachineTaintPropagation", "MachineSetPreflightChecks", "KubeadmBootstrapFormatIgnition",
)  # fmt: skip
FEWEST = {"versions": 80, "admission": 518}
NEEDS_ANOTHER_STATE = {"versions-watch"}
"""Was recorded while an object that cannot be converted was left behind."""


class Webhooks:
    """Our webhooks in a thread of their own, because the corpus' client blocks."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._main)
        self._thread.start()
        assert self._ready.wait(120)
        if self._failed is not None:
            raise self._failed

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failed = error
            self._ready.set()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        transport = HttpTransport(_connection(self._url, self._token), SystemClock(), {})
        client = RestClient(transport, clock=SystemClock())
        options = WebhookOptions(host="127.0.0.1", port=0, url="https://127.0.0.1:0")
        try:
            async with serving(client, SystemClock(), options, dict.fromkeys(GATES, True)):
                self._ready.set()
                await self._stop.wait()
        finally:
            await transport.close()
            await SystemClock().sleep(0.5)  # TLS takes a moment to say goodbye

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)


def _connection(url: str, token: str) -> Connection:
    cluster, user = {"server": url, "insecure-skip-tls-verify": True}, {"token": token}
    contexts = [{"name": "x", "context": {"cluster": "x", "user": "x"}}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        text = {"contexts": contexts, "clusters": [{"name": "x", "cluster": cluster}], "users": [{"name": "x", "user": user}]}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **text}))
        return Kubeconfig.load([path]).resolve()


@pytest.fixture
def webhooks(kube_apiserver: tuple[str, str]) -> Iterator[Any]:
    client = replay.Client(*kube_apiserver, insecure=True)
    ready = threading.Event()
    while client.send({"method": "GET", "path": "/api/v1/namespaces/default"})["status"] != 200:
        ready.wait(0.2)
    running = Webhooks(*kube_apiserver)
    try:
        while (
            client.send({"method": "GET", "path": "/apis/infrastructure.cluster.x-k8s.io/v1beta1/dockermachinetemplates"})["status"] != 200
        ):
            ready.wait(0.2)
        yield client
    finally:
        running.close()


@pytest.mark.parametrize("corpus", ["versions", "admission"])
def test_a_real_api_server_that_asks_us_answers_as_recorded(webhooks: Any, corpus: str) -> None:
    scenarios = [
        s for s in replay.load([CORPUS / f"{corpus}.jsonl"]) if s.get("gates", "on") == "on" and s["name"] not in NEEDS_ANOTHER_STATE
    ]
    with ThreadPoolExecutor(4) as pool:
        played = pool.map(lambda s: replay.differences(s, replay.play(webhooks, s), not fnmatch(s["name"], "*-naming*")), scenarios)
        found = {s["name"]: differences for s, differences in zip(scenarios, played, strict=True) if differences}

    assert found == {}
    assert len(scenarios) >= FEWEST[corpus]
