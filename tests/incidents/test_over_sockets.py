"""Incidents that need a network, by number: a runtime extension that redirects (cluster-api#13763), or answers without end (#13944)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from clusterwright.runtimesdk import https
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.https import HttpsPost
from clusterwright.runtimesdk.registry import Registry
from clusterwright.topology.extensions import CallAll, ExtensionError
from support.extension import Running, certificate, extension_config

BOUND = 1024 * 1024


class Hostile:
    """An extension that does not answer what it is asked."""

    def __init__(self) -> None:
        self.stolen = 0
        self.sent = 0

    async def redirect(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect(str(request.url.with_path("/inside")))

    async def inside(self, request: web.Request) -> web.StreamResponse:
        self.stolen += 1
        return web.json_response({"kind": "BeforeClusterUpgradeResponse", "status": "Success"})

    async def endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while self.sent < 200 * BOUND:  # nobody waits for more
            await response.write(b" " * 65536)
            self.sent += 65536
            await asyncio.sleep(0.001)  # client and server share a loop
        return response


@asynccontextmanager
async def hostile(folder: Path, answer: str) -> AsyncIterator[tuple[RuntimeClient, Hostile]]:
    """A client of an extension whose hook is answered by this method of Hostile."""
    extension, app = Hostile(), web.Application()
    app.router.add_post("/inside", extension.inside)
    app.router.add_post("/{rest:.*}", getattr(extension, answer))
    crt, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    running = Running(f"https://127.0.0.1:{port}", crt.read_bytes())
    registry, post = Registry(), HttpsPost()
    registry.warm_up([extension_config("ext", running.url, running.bundle, {"before": "BeforeClusterUpgrade"})])
    nobody: Any = None
    try:
        yield RuntimeClient(registry, post, nobody, lambda: 0.0), extension
    finally:
        await post.close()
        await runner.cleanup()


def upgrade() -> CallAll:
    cluster = {"metadata": {"name": "c", "namespace": "ns"}}
    return CallAll("BeforeClusterUpgrade", cluster, {"cluster": cluster})


async def test_a_redirect_of_an_extension_is_not_followed(tmp_path: Path) -> None:
    async with hostile(tmp_path, "redirect") as (client, extension):
        with pytest.raises(ExtensionError, match="status code 307"):
            await client.call_all(upgrade())

    assert extension.stolen == 0


async def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "_LARGEST_ANSWER", BOUND)
    async with hostile(tmp_path, "endless") as (client, extension):
        with pytest.raises(ExtensionError, match="larger than"):
            await client.call_all(upgrade())

    assert extension.sent < 200 * BOUND


async def test_a_redirect_would_be_followed_without_our_defence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    post = aiohttp.ClientSession.post

    def follow(self: aiohttp.ClientSession, url: str, **options: Any) -> Any:
        return post(self, url, **{**options, "allow_redirects": True})

    monkeypatch.setattr(aiohttp.ClientSession, "post", follow)
    async with hostile(tmp_path, "redirect") as (client, extension):
        await client.call_all(upgrade())

    assert extension.stolen == 1
