"""The recorded conversations of a real kube-apiserver, played against ours over HTTP by the corpus' own replayer."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apiserver.apiserver_testing import CORPUS
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.identity import ADMIN
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from conformance import replay
from support.patience import PATIENCE

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


class InThread:
    """A server in a thread of its own, as the replayer's client blocks."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self.url = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = ApiServer(now=lambda: datetime.now(UTC), random=random.Random(), authorizer=RbacAuthorizer())
        server.ensure(bootstrap_roles())
        http = HttpServer(server, Authenticator({"admin": ADMIN}))
        self.url = f"http://127.0.0.1:{await http.start('127.0.0.1', 0)}"
        self._ready.set()
        await self._stop.wait()
        await http.stop()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)


def judge(url: str, scenarios: list[Any], *, wording: bool) -> dict[str, list[str]]:
    client = replay.Client(url, "admin")

    def one(scenario: Any) -> list[str]:
        try:
            return replay.differences(scenario, replay.play(client, scenario), wording)
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]

    with ThreadPoolExecutor(24) as pool:
        outcomes = list(pool.map(one, scenarios))
    return {s["name"]: found for s, found in zip(scenarios, outcomes, strict=True) if found}


@pytest.fixture
def run() -> Iterator[Any]:
    servers: list[InThread] = []

    def start() -> str:
        servers.append(InThread())
        return servers[-1].url

    yield start
    for server in servers:
        server.close()


def deviations(section: str) -> set[str]:
    """Names listed in docs/conformance.md under a heading: they are counted openly."""
    found: set[str] = set()
    within = False
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("#"):
            within = section in line
        elif within and line.startswith("| `"):
            found.add(line.split("`")[1])
    return found


def explain(failed: dict[str, list[str]], names: set[str]) -> str:
    return "\n\n".join(f"{n}:\n" + "\n".join(failed.get(n, ["passes, but is listed as a deviation"]))[:3000] for n in sorted(names)[:5])


def test_every_recorded_conversation_is_repeated_exactly(run: Any):
    url = run()
    replay.install(replay.Client(url, "admin"), json.loads((CORPUS / "crds.json").read_text()))
    scenarios = replay.load([CORPUS / "apiserver.jsonl"])

    failed = judge(url, scenarios, wording=True)

    wrong = set(failed) ^ deviations("kube-apiserver")
    assert not wrong, explain(failed, wrong)
    assert len(scenarios) >= 196
