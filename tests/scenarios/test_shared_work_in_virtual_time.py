"""Three processes with all controllers share some clusters; the machines are made by a fourth. One of the three stops in the middle."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from random import Random
from typing import Any

from clusterwright import app
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.belonging import belongs_to
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.logging import bound_fields
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.shards import ShardOptions
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server
from clusterwright.simulation.world import START

GROUP = ObjectKey("default", "shards")
NAMES = tuple(f"c{n}" for n in range(6))


class Noting:
    """Who wrote which Cluster's objects, in turn."""

    def __init__(self, inner: InProcessTransport, who: str, turns: dict[str, list[str]]) -> None:
        self.inner, self.who, self.turns = inner, who, turns

    async def send(self, request: Any) -> Any:
        named = request.path.split("/")[-1 if not request.path.endswith("/status") else -2].split("-")[0]
        if request.method != "GET" and bound_fields().get("controller") and named in NAMES and self.turns[named][-1:] != [self.who]:
            self.turns[named].append(self.who)
        return await self.inner.send(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_each_cluster_is_one_processes_until_that_one_goes() -> None:
    turns: dict[str, list[str]] = defaultdict(list)
    first: dict[str, list[str]] = {}

    async def scenario() -> None:
        clock, keys = LoopClock(START), FixedKeySource(7)
        server = management_server(clock, Random(1))
        cloud = Cloud(now=clock.now, random=Random(7), keys=keys)
        p = Plane(server, cloud, clock)
        provider = app.inmemory_names()

        def manager(name: str, selected: frozenset[str], shards: ShardOptions | None) -> Manager:
            transport = Noting(InProcessTransport(server), name, turns) if shards is not None else InProcessTransport(server)
            options = Options(shards=shards, grace_period=2.0, resync=600.0)
            made = app.build_manager(
                transport, clock=clock, random=Random(name), keys=keys, cloud=cloud, options=options, features=EMBEDDED_FEATURES, selected=selected
            )  # fmt: skip
            return made

        def share(name: str) -> ShardOptions:
            return ShardOptions(group=GROUP, belongs_to=belongs_to, identity=name)

        core = app.selectable_names() - provider
        managers = {name: manager(name, core, share(name)) for name in ("one", "two", "three")}
        running = [asyncio.create_task(m.run()) for m in (manager("provider", provider, None), *managers.values())]
        await clock.sleep(20)
        for name in NAMES:
            await p.apply(samples.cluster(name, has_control_plane_object=True))
            await p.apply(samples.control_plane(name, replicas=1))
            await p.apply(samples.workers(name, f"{name}-md", replicas=1))
        for name in NAMES:
            await p.until_available(name, control_plane=1, workers=1, within=1800)
        first.update({name: list(who) for name, who in turns.items()})
        leaver = turns["c0"][0]
        managers[leaver].stop()
        for name in NAMES:
            await p.client.delete(Cluster, ObjectKey("default", name))
        for name in NAMES:
            await p.until_gone(Cluster, name, within=1800)
        assert await p.client.list(Machine) == []
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await cloud.close()
        server.close()

    run_virtual(scenario())

    leaver = first["c0"][0]
    assert {name: who for name, who in first.items() if len(who) != 1} == {}
    assert len({who[0] for who in first.values()}) > 1
    followed = {name: who for name, who in turns.items() if len(who) > 1}
    assert followed
    assert {name: who for name, who in followed.items() if len(who) > 2 or who[0] != leaver or who[1] == leaver} == {}
