"""The last net: every object is looked at again after a while, spread, without a write; what is gone is forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from random import Random

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.controller import Resync
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.reconcile import Result
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import NAMESPACE, management_server, plane
from clusterwright.simulation.world import START


class Counting:
    """A transport that counts what goes through it, by method."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent: Counter[str] = Counter()

    async def send(self, request: Request) -> Response:
        self.sent[request.method] += 1
        return await self._inner.send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        self.sent["WATCH"] += 1
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        await self._inner.close()


def test_every_object_is_resynced_except_deleted_ones() -> None:
    async def main() -> dict[str, list[float]]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        seen: dict[str, list[float]] = {}

        class Noting:
            async def reconcile(self, key: ObjectKey) -> Result:
                seen.setdefault(key.name, []).append(clock.monotonic())
                return Result.await_change()

        manager = Manager(InProcessTransport(server), clock=clock, random=Random(1), options=Options(resync=600.0))
        manager.add_controller("noting", Cluster, lambda _: Noting())
        running = asyncio.create_task(manager.run())
        for n in range(20):
            for obj in samples.cluster(f"c{n}"):
                if obj["kind"] == "Cluster":
                    await manager.rest.create(obj)
        await asyncio.sleep(900)
        await manager.rest.delete(Cluster, ObjectKey(NAMESPACE, "c0"))
        await asyncio.sleep(6000)
        manager.stop()
        await asyncio.wait([running])
        server.close()
        running.result()
        return seen

    seen = run_virtual(main())
    assert len(seen) == 20
    gone = seen.pop("c0")
    assert max(gone) < 905
    for times in seen.values():
        gaps = [b - a for a, b in pairwise(times)]
        assert len(gaps) >= 8
        assert max(gaps) <= 600.5
        assert min(gaps[1:]) >= 299
    firsts = sorted(times[1] for times in seen.values())
    assert firsts[-1] - firsts[0] > 100


def test_resyncs_are_spread() -> None:
    delays = [Resync(600.0, Random(1)).delay()] + [Resync(600.0, Random(n)).delay() for n in range(200)]

    assert all(300 <= delay <= 600 for delay in delays)
    assert max(delays) - min(delays) > 250


@pytest.mark.parametrize("clusters", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_clusters_at_rest_cost_no_writes_and_hardly_a_request(clusters: int) -> None:
    """Fewer than ten requests a minute for thirty clusters, whatever is looked at again meanwhile."""
    minutes = 60

    async def main() -> Counter[str]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        transport = Counting(InProcessTransport(server))
        async with plane(clock, server=server, transport=transport) as p:
            for n in range(clusters):
                await p.apply([*samples.cluster(f"c{n}", has_control_plane_object=True), *samples.control_plane(f"c{n}", replicas=1)])
            for n in range(clusters):
                await p.until_available(f"c{n}", within=600)
            await asyncio.sleep(600)
            transport.sent.clear()
            await asyncio.sleep(minutes * 60)
            sent = Counter(transport.sent)
        server.close()
        return sent

    sent = run_virtual(main())
    writes = {method: count for method, count in sent.items() if method not in {"GET", "WATCH"}}
    assert writes == {}
    allowed = {"GET": 10 * minutes * clusters / 30 + minutes}
    assert sent["GET"] <= allowed["GET"], sent
