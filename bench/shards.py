"""Measure what more replicas that share the work gain: `python -m bench.shards`.

The same clusters are brought up by one replica and by three (`manager --shard`), each with the usual budget of a client (`--qps`,
`--burst`), on an API server that takes a while to answer and is not the limit itself. Time is virtual: what is measured is how long
a user waits where budget and answers are what costs, not how fast this machine is. The simulated machines are those of another
process, without a budget, and take no time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from random import Random

from clusterwright import app
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import is_true
from clusterwright.controllers.belonging import belongs_to
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.shards import ShardOptions
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.world import START

GROUP = ObjectKey("kube-system", "shards")


class Distant(InProcessTransport):
    """An API server whose answers take a while; counts them."""

    def __init__(self, server: ApiServer, seconds: float) -> None:
        super().__init__(server)
        self._seconds = seconds
        self.requests = 0

    async def send(self, request: Request) -> Response:
        """One request."""
        self.requests += 1
        await asyncio.sleep(self._seconds)
        return await super().send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """A watch."""
        await asyncio.sleep(self._seconds)
        return await super().stream(request)


async def measure(replicas: int, flags: argparse.Namespace) -> tuple[float, list[int]]:
    """Virtual seconds until all clusters are available, and the requests of each replica."""
    clock, random, keys = LoopClock(START), Random(1), FixedKeySource(1)
    server = management_server(clock, random)
    client = RestClient(InProcessTransport(server), clock=clock)
    cloud = Cloud(now=clock.now, random=random, keys=keys)
    provider, ours = app.inmemory_names(), app.selectable_names() - app.inmemory_names()
    ways = [Distant(server, flags.latency) for _ in range(replicas)]

    def build(way: InProcessTransport, selected: frozenset[str], options: Options) -> Manager:
        return app.build_manager(
            way, apart=InProcessTransport(server), clock=clock, random=Random(random.getrandbits(64)), keys=keys, cloud=cloud,
            options=options, selected=selected,
        )  # fmt: skip

    managers = [build(InProcessTransport(server), provider, Options())]
    for number, way in enumerate(ways):
        share = ShardOptions(group=GROUP, belongs_to=belongs_to, identity=f"replica-{number}")
        managers.append(build(way, ours, Options(shards=share, qps=flags.qps, burst=flags.burst)))
    running = [asyncio.create_task(manager.run()) for manager in managers]
    await clock.sleep(60)  # they know each other, and have shared out what there is not yet
    for way in ways:
        way.requests = 0
    names = [f"c{number}" for number in range(flags.clusters)]
    for name in names:
        control_plane = samples.control_plane(name, replicas=1)
        for obj in (
            *samples.cluster(name, has_control_plane_object=True),
            *control_plane,
            *samples.workers(name, f"{name}-md", replicas=1),
        ):
            await client.create(obj)
    began = clock.monotonic()
    while not all(is_true(c.status.conditions, "Available") for c in await client.list(Cluster)):
        await clock.sleep(0.5)
    took = clock.monotonic() - began
    for manager in managers:
        manager.stop()
    await asyncio.gather(*running)
    await cloud.close()
    server.close()
    return took, [way.requests for way in ways]


def main(words: Sequence[str] | None = None) -> int:
    """Print how long each takes; 1 where three are not at least twice as fast as one."""
    parser = argparse.ArgumentParser(prog="python -m bench.shards")
    parser.add_argument("--clusters", type=int, default=60, help="of 1+1")
    parser.add_argument("--qps", type=float, default=20.0)
    parser.add_argument("--burst", type=int, default=30)
    parser.add_argument("--latency", type=float, default=0.01, help="seconds that an answer takes")
    flags = parser.parse_args(words)
    taken = {}
    for replicas in (1, 3):
        taken[replicas], requests = run_virtual(measure(replicas, flags))
        shares = ", ".join(map(str, requests))
        sys.stdout.write(
            f"{replicas} replicas: {flags.clusters} clusters of 1+1 available after {taken[replicas]:.0f} s; requests {shares}\n"
        )
    gain = taken[1] / taken[3]
    sys.stdout.write(
        f"three are {gain:.1f} times as fast as one (--qps {flags.qps:g} --burst {flags.burst}, answers after {flags.latency:g} s)\n"
    )
    return 0 if gain >= 2 else 1


if __name__ == "__main__":
    raise SystemExit(main())
