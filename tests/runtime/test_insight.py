"""Metrics and diagnosis: for whom the API server allows it, and what they tell."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.tls import make_authority, server_context, sign
from clusterwright.install.manifests import METRICS_READER, Settings, manifests
from clusterwright.runtime.access import Gate
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.endpoints import Endpoints, Insight, Probes
from clusterwright.runtime.logging import ROOT
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.metrics import Registry
from clusterwright.runtime.rest import RestClient
from support.patience import PATIENCE

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default", "name": "prometheus"}}


class Counting:
    def __init__(self, inner: Any) -> None:
        self.inner, self.reviews = inner, 0

    async def send(self, request: Any) -> Any:
        self.reviews += request.path.endswith("reviews")
        return await self.inner.send(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest_asyncio.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Any]:
    """Metrics over https, guarded; `get(path, token)`, and the client and token of an account without rights."""
    clock = SystemClock()
    options = serve.ServeOptions(listen="127.0.0.1:0", kubeconfig=tmp_path / "admin", controllers=False, now=clock.now, random=Random(1))
    running = await serve.start(options)
    transport = Counting(InProcessTransport(running.server))
    client = RestClient(transport)
    await client.create(ACCOUNT)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    kind = GroupVersionKind("", "v1", "ServiceAccount")
    answer = await client.create_subresource(kind, ObjectKey("default", "prometheus"), "token", request)
    authority = make_authority(clock.now())
    tls = server_context(sign(authority, clock.now(), "metrics", hosts=["127.0.0.1"]), authority.certificate)
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())
    insight = Insight(registry=Registry(), gate=Gate(client, clock))
    async with (
        Endpoints("127.0.0.1", 0, insight=insight, tls=tls) as endpoints,
        aiohttp.ClientSession(f"https://127.0.0.1:{endpoints.port}", connector=aiohttp.TCPConnector(ssl=trusting)) as session,
    ):

        class Secured:
            token = str(answer["status"]["token"])
            api, counted = client, transport

            async def ask(self, path: str, token: str = "", method: str = "GET", data: str = "") -> tuple[int, str]:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                async with session.request(method, path, headers=headers, data=data or None) as response:
                    return response.status, await response.text()

        yield Secured()
    await running.stop()


async def grant(client: RestClient, *objects: Json) -> None:
    subjects = [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": METRICS_READER}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "p"}}
    for obj in (*objects, {**binding, "roleRef": reference, "subjects": subjects}):
        await client.create(obj)


async def test_metrics_require_an_authorised_token(secured: Any) -> None:
    assert await secured.ask("/metrics") == (401, "a bearer token is needed\n")
    assert await secured.ask("/metrics", "made-up") == (401, "the token is unknown\n")
    status, text = await secured.ask("/metrics", secured.token)
    assert (status, "cannot get path" in text, secured.token in text) == (403, True, False)
    assert (await secured.ask("/nowhere"))[0] == 401  # what there is, is not told either


async def test_the_installed_role_only_reads_metrics_and_is_checked_once(secured: Any) -> None:
    (role,) = [o for o in manifests(Settings(webhooks=False), []) if o["metadata"]["name"] == METRICS_READER]
    await grant(secured.api, role)

    assert (await secured.ask("/metrics", secured.token))[0] == 200
    asked = secured.counted.reviews
    for _ in range(3):
        assert (await secured.ask("/metrics", secured.token))[0] == 200
    assert secured.counted.reviews == asked
    assert (await secured.ask("/debug/tasks", secured.token))[0] == 403
    assert (await secured.ask("/debug/flags/log-level", secured.token, "PUT", "debug"))[0] == 403


@pytest_asyncio.fixture
async def plain() -> AsyncIterator[Any]:
    async with (
        Endpoints("127.0.0.1", 0, insight=Insight(registry=Registry())) as endpoints,
        aiohttp.ClientSession(f"http://127.0.0.1:{endpoints.port}") as session,
    ):

        async def ask(path: str, method: str = "GET", data: str = "") -> tuple[int, str]:
            async with session.request(method, path, data=data or None) as response:
                return response.status, await response.text()

        yield ask


async def test_tasks_are_listed_with_the_place_where_they_wait(plain: Any) -> None:
    async def waits_here() -> None:
        await asyncio.Event().wait()

    waiting = [asyncio.create_task(waits_here(), name=f"waiter {n}") for n in range(3)]
    await asyncio.sleep(0)

    status, text = await plain("/debug/tasks")

    for task in waiting:
        task.cancel()
    assert status == 200
    assert "3: waiter 0, waiter 1, waiter 2\n" in text
    assert "waits_here" in text
    assert "asyncio.locks.wait" in text


async def test_threads_memory_and_a_cpu_profile_are_served(plain: Any) -> None:
    assert "MainThread" in (await plain("/debug/threads"))[1]
    assert "builtins.dict" in (await plain("/debug/memory"))[1]

    async def busy_here() -> None:
        while True:
            sum(range(2000))
            await asyncio.sleep(0)

    task = asyncio.create_task(busy_here())
    status, profile = await plain("/debug/profile?seconds=0.5")
    task.cancel()
    assert status == 200
    assert any("busy_here" in line and line.rsplit(" ", 1)[1].isdecimal() for line in profile.splitlines())
    assert (await plain("/debug/profile?seconds=1e9"))[0] == 400
    assert (await plain("/debug/profile?seconds=soon"))[0] == 400


async def test_the_log_level_is_changed_while_running(plain: Any) -> None:
    logger = logging.getLogger(ROOT)
    before = logger.level
    try:
        logger.setLevel("WARNING")
        assert await plain("/debug/flags/log-level") == (200, "warning\n")
        assert await plain("/debug/flags/log-level", "PUT", "debug") == (200, "log-level is now debug\n")
        assert logger.isEnabledFor(logging.DEBUG)
        assert await plain("/debug/flags/log-level", "PUT", "loud") == (400, "'loud' is not one of debug, info, warning, error\n")
    finally:
        logger.setLevel(before)


async def test_a_probe_endpoint_serves_only_probes() -> None:
    probes = Probes(health={"ping": lambda: True}, readiness={"caches": lambda: "waiting"})
    async with (
        Endpoints("127.0.0.1", 0, probes=probes) as endpoints,
        aiohttp.ClientSession(f"http://127.0.0.1:{endpoints.port}") as session,
    ):
        answers = {}
        for path in ("/healthz", "/readyz", "/metrics", "/debug/tasks"):
            async with session.get(path) as response:
                answers[path] = response.status

    assert answers == {"/healthz": 200, "/readyz": 500, "/metrics": 404, "/debug/tasks": 404}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (Options(health_port=0), {"/healthz": 200, "/healthz/ping": 200, "/metrics": 401, "/traces": 401, "/debug/tasks": 401}),
        (Options(health_port=0, health_guarded=False), {"/healthz": 200, "/metrics": 200, "/traces": 200, "/debug/tasks": 200}),
        (Options(health_port=0, health_insight=False), {"/healthz": 200, "/metrics": 404, "/traces": 404, "/debug/tasks": 404}),
    ],
    ids=["guarded", "open", "probes only"],
)
async def test_the_health_port_shows_the_public_only_health(options: Options, told: dict[str, int]) -> None:
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1))
    manager = Manager(InProcessTransport(server), clock=SystemClock(), random=Random(1), options=options)
    running = asyncio.create_task(manager.run())
    async with asyncio.timeout(PATIENCE):
        while manager.endpoints is None:  # noqa: ASYNC110 - it says nothing when it listens
            await asyncio.sleep(0.01)
    answers = {}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{manager.endpoints.port}") as session:
        for path in told:
            async with session.get(path) as response:
                answers[path] = response.status
        async with session.put("/debug/flags/log-level", data="loud") as response:
            changed = response.status
    manager.stop()
    await running

    assert answers == told
    assert changed == (400 if told["/debug/tasks"] == 200 else told["/debug/tasks"])
