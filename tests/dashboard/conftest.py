"""A server with a page, over real HTTPS, in the process of the test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import SystemRandom

import aiohttp
import pytest_asyncio

from clusterwright.api.core import Cluster
from clusterwright.api.crds import crds
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli.webview import open_page
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples


class Hurried(SystemClock):
    """A clock of which a test can let hours pass."""

    passed = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.passed)


@dataclass
class Served:
    """A server with a page, and a browser that keeps cookies."""

    server: ApiServer
    clock: Hurried
    session: aiohttp.ClientSession
    url: str
    admin: ssl.SSLContext
    """With the certificate of an administrator."""
    links: list[str] = field(default_factory=list)

    def link(self) -> str:
        """The way in that was told last."""
        return self.links[-1]

    async def enter(self) -> None:
        async with self.session.post(f"{self.url}/dashboard/session", data=self.link().partition("#token=")[2]) as answer:
            assert answer.status == 204


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    clock, random = Hurried(), SystemRandom()
    async with AsyncExitStack() as stack:
        options = serve.ServeOptions(listen="127.0.0.1:0", controllers=False, crds=tuple(crds()), now=clock.now, random=random)
        running = await serve.start(options)
        stack.push_async_callback(running.stop)
        links: list[str] = []
        await open_page(stack, running, None, clock=clock, random=random, keys=sample_keys(), told=links.append)
        context = ssl.create_default_context(cadata=running.authority.certificate.decode())
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, not of a name
        connector = aiohttp.TCPConnector(ssl=context)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, cookie_jar=jar))
        cluster, *others = samples.cluster("c", has_control_plane_object=True)
        cluster["metadata"]["finalizers"] = ["cluster.cluster.x-k8s.io"]  # as after the first pass
        unpaused = {"type": "Paused", "status": "False", "reason": "NotPaused", "observedGeneration": 1}
        status = {"conditions": [{**unpaused, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        running.server.ensure([cluster, *others])
        client = RestClient(InProcessTransport(running.server), clock=clock)
        await client.patch(Cluster, ObjectKey("default", "c"), {"status": status}, subresource="status")
        admin = ssl.create_default_context(cadata=running.authority.certificate.decode())
        file = tmp_path / "admin.pem"
        file.write_bytes(running.admin.certificate + running.admin.key)
        admin.load_cert_chain(file)
        yield Served(running.server, clock, session, running.url, admin, links)
