"""A way to a real kube-apiserver on which things go wrong by plan: the faults of the simulation, between two processes."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from types import TracebackType

from aiohttp import web

from clusterwright.api.wire import Request
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.simulation.faults import NO_FAULTS, FaultPlan, FaultyTransport
from clusterwright.simulation.trace import Trace
from real.kube import Kube

HOPS = frozenset({"connection", "host", "content-length", "transfer-encoding", "accept-encoding", "content-encoding"})
"""Headers that belong to one connection, or to how a body is packed on it."""


class Weather:
    """Passes requests on with the caller's own credentials; `answers` counts what the caller was told. Fair until `suffer` is called."""

    def __init__(self, kube: Kube, seed: int) -> None:
        self._kube = kube
        kube.write_kubeconfig(path := kube.folder / "nobody.conf", {})
        self._inner = HttpTransport(Kubeconfig.load([path]).resolve(), SystemClock(), limit=0)
        self._transport = FaultyTransport(self._inner, Random(seed), NO_FAULTS, Trace(), process="manager")
        self.answers: Counter[int] = Counter()
        self._under_way: set[asyncio.Task[web.StreamResponse]] = set()
        self.server = ""

    async def __aenter__(self) -> Weather:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._kube.folder / "server.crt", self._kube.folder / "server.key")
        self._runner = web.ServerRunner(web.Server(self._pass_on), shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        _, port = self._runner.addresses[0]
        self.server = f"https://127.0.0.1:{port}"
        return self

    async def __aexit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._runner.cleanup()
        await self._inner.close()

    def suffer(self, plan: FaultPlan) -> None:
        """Let this go wrong from now on."""
        self.answers.clear()
        self._transport.suffer(plan)

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        self._transport.calm()

    async def _pass_on(self, asked: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.ensure_future(self._answer(asked))
        self._under_way.add(task)
        try:
            return await task
        finally:
            self._under_way.discard(task)

    async def _answer(self, asked: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in asked.headers.items() if name.lower() not in HOPS}
        request = Request(
            method=asked.method, path=asked.path, query=tuple(asked.query.items()), headers=headers, body=await asked.read()
        )  # fmt: skip
        try:
            if asked.query.get("watch") in {"1", "true"}:
                return await self._watch(asked, request)
            answer = await self._transport.send(request)
        except ConnectionFailed:
            return self._broken(asked)
        self.answers[answer.status] += 1
        kept = {name: value for name, value in answer.headers.items() if name not in HOPS}
        return web.Response(status=answer.status, headers=kept, body=answer.body)

    async def _watch(self, asked: web.BaseRequest, request: Request) -> web.StreamResponse:
        answer, lines = await self._transport.stream(request)
        self.answers[answer.status] += 1
        kept = {name: value for name, value in answer.headers.items() if name not in HOPS}
        if answer.status >= 300:
            return web.Response(status=answer.status, headers=kept, body=answer.body)
        told = web.StreamResponse(headers=kept)
        assert isinstance(lines, AsyncGenerator)
        try:
            async with aclosing(lines):
                await told.prepare(asked)
                async for line in lines:
                    await told.write(line + b"\n")
        except (ConnectionFailed, ConnectionResetError):
            return self._broken(asked)
        return told

    def _broken(self, asked: web.BaseRequest) -> web.StreamResponse:
        """The caller's connection ends in the middle."""
        self.answers[0] += 1
        if asked.transport is not None:
            asked.transport.abort()
        return web.Response()
