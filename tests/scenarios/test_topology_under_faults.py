"""Clusters that a ClusterClass describes, while everything between controllers and API server goes wrong.

One life: hooks hold up its beginning and its end; between them a variable changes that rolls nothing, one that rolls the workers, the class
becomes another, and the version goes up by several minors. At no moment are there two objects where the topology wants one, and nothing
is rolled, made or deleted that nobody asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from clusterwright import admission, app
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, MachineDeployment, MachineHealthCheck
from clusterwright.apiserver.server import ApiServer
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.plane import Plane, prepare
from clusterwright.simulation.world import Violation, World, run
from clusterwright.webhooks import embedded
from support.topologies import (
    CLUSTER,
    HOUR,
    NOTE,
    PATCHES,
    SIZE,
    VERSIONS,
    Scripted,
    machines,
    only_class_left,
    topology,
    until_settled,
)

FEATURES = {**EMBEDDED_FEATURES, "RuntimeSDK": True}


class Life:
    """A plane whose controllers suffer, extensions that do not, and a judge."""

    def __init__(self, world: World, workers: int) -> None:
        world.server.close()
        links, random = admission.chain(FEATURES), Random(world.random.getrandbits(64))
        world.server = ApiServer(now=world.clock.now, random=random, admission=links, converters=embedded.converters)
        prepare(world.server)
        self.world = world
        self.workers = workers
        self.scripted = Scripted()
        self.cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
        self.p = Plane(world.server, self.cloud, world.clock)
        self.process = world.start("controllers", self._controllers)
        self._judge = asyncio.create_task(self._no_twins())

    async def _controllers(self, transport: Any, clock: Any, random: Random) -> None:
        manager = app.build_manager(
            transport,
            clock=clock,
            random=random,
            keys=FixedKeySource(8),
            cloud=self.cloud,
            features=FEATURES,
            extensions=self.scripted,
        )
        await manager.run()

    async def _no_twins(self) -> None:
        while True:
            for kind, most in ((KubeadmControlPlane, 1), (MachineDeployment, self.workers), (MachineHealthCheck, 0)):
                found = [o.metadata.name for o in await self.p.client.list(kind)]
                if len(found) > most:
                    self.world.violations.append(f"{kind.__name__}: {found}")
            await asyncio.sleep(1.0)

    async def settled(self, version: str) -> None:
        await until_settled(self.p, version, workers=self.workers, within=12 * HOUR)

    async def names(self) -> set[str]:
        return set(await machines(self.p))

    async def leaders(self) -> set[str]:
        return {n for n, m in (await machines(self.p)).items() if "cluster.x-k8s.io/control-plane" in m.metadata.labels}

    async def asked(self, hook: str) -> None:
        """Wait until a hook that blocks was asked, and a while longer."""

        async def holds() -> bool:
            return hook in self.scripted.asked

        await self.p.until(holds, f"{hook} is asked", within=6 * HOUR, step=1.0)
        await asyncio.sleep(120)

    async def rolled(self, gone: set[str], version: str) -> None:
        """Wait until none of these Machines is there, and everything is settled."""

        async def holds() -> bool:
            return not gone & await self.names()

        await self.p.until(holds, f"{', '.join(sorted(gone))} are gone", within=12 * HOUR, step=2.0)
        await self.settled(version)

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.world.violations.append(what)

    async def end(self) -> None:
        self._judge.cancel()
        self.world.calm()
        await self.p.until(lambda: only_class_left(self.p), "nothing of the Cluster is left behind", within=HOUR)
        if self.world.violations:
            raise Violation("; ".join(dict.fromkeys(self.world.violations)))
        if self.process.failure is not None:
            raise Violation(f"the controllers ended: {self.process.failure}")
        await self.cloud.close()


def life(first: str, workers: int) -> Callable[[World], Awaitable[None]]:
    """The whole story, from a version on."""

    async def scenario(world: World) -> None:
        life = Life(world, workers)
        p, scripted = life.p, life.scripted
        await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS, variables=[SIZE, NOTE], patches=PATCHES))
        await p.apply(samples.cluster_class("other", seconds=2, kubernetesVersions=VERSIONS, variables=[SIZE, NOTE], patches=PATCHES))

        scripted.blocking = {"BeforeClusterCreate"}
        await p.client.create(samples.topology("c", version=first, workers={f"md-{n}": 1 for n in range(workers)}))
        await life.asked("BeforeClusterCreate")
        life.must(await p.client.list(KubeadmControlPlane) == [], "something was made while BeforeClusterCreate blocked")
        scripted.blocking = set()
        await life.settled(first)

        before, leaders = await life.names(), await life.leaders()
        await topology(p, {"variables": [{"name": "size", "value": "small"}, {"name": "note", "value": "something"}]})
        await asyncio.sleep(HOUR)
        life.must(await life.names() == before, "a variable that no template uses rolled Machines")
        await topology(p, {"variables": [{"name": "size", "value": "large"}, {"name": "note", "value": "something"}]})
        await life.rolled(before - leaders, first)
        life.must(await life.leaders() == leaders, "a variable of the workers rolled the control plane")

        before = await life.names()
        await topology(p, {"classRef": {"name": "other"}})
        await life.rolled(before, first)
        await topology(p, {"version": VERSIONS[-1]})
        await life.settled(VERSIONS[-1])

        scripted.blocking = {"BeforeClusterDelete"}
        before = await life.names()
        await p.client.delete(Cluster, CLUSTER)
        await life.asked("BeforeClusterDelete")
        life.must(await life.names() == before, "something was deleted while BeforeClusterDelete blocked")
        scripted.blocking = set()
        await p.until_gone(Cluster, "c", within=6 * HOUR)
        await life.end()

    return scenario


@pytest.mark.soak  # 20 s of CPU; test_topology_in_virtual_time has its steps one by one
def test_a_topology_lives_with_everything_going_wrong() -> None:
    outcome = run(3, life(VERSIONS[-2], 1), ALL_FAULTS)

    assert str(outcome.violation) == "None"
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_the_same_life_many_times(seed: int) -> None:
    assert str(run(seed, life(VERSIONS[0], 2), ALL_FAULTS if seed % 2 else NO_FAULTS).violation) == "None"
