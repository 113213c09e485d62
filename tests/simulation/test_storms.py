"""Storms: an API server that refuses, is gone, lags or stands still for minutes, in the middle of clusters coming up.

The controllers slow down, recover by themselves, and nothing was made twice.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from clusterwright import app
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.wire import Request
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import FaultPlan
from clusterwright.simulation.plane import Plane, prepare
from clusterwright.simulation.world import Violation, World, run

STORMS = {
    "429": FaultPlan(throttled=0.97, watch_refused=0.97, watch_cut=0.5),
    "503": FaultPlan(unavailable=0.97, watch_refused=0.97, watch_cut=0.5),
    "gone": FaultPlan(lost_request=1.0, watch_refused=1.0, watch_cut=1.0),
    "restarting": FaultPlan(lost_request=0.3, lost_answer=0.3, watch_cut=0.5, watch_error=0.3),
    "writes arrive late": FaultPlan(
        late_request=0.3, lost_request=0.1, lost_answer=0.2, slow=0.2, slowest=5.0, watch_late=0.3, latest=20.0
    ),
    "lagging": FaultPlan(watch_late=1.0, latest=60.0),
    "etcd stands still": FaultPlan(slow=1.0, slowest=60.0, unavailable=0.5),
}
"""What goes wrong, all at once."""
LASTS = 180.0
MOST_A_SECOND = 12.0
"""Requests per second that a process may still send when a storm has lasted for a minute; in peace, two clusters cost hundreds."""


class Counted:
    """Counts what a process tries."""

    def __init__(self, inner, clock):
        self.inner, self.clock = inner, clock
        self.tries: list[tuple[float, Request]] = []

    async def send(self, request):
        self.tries.append((self.clock.monotonic(), request))
        return await self.inner.send(request)

    async def stream(self, request):
        self.tries.append((self.clock.monotonic(), request))
        return await self.inner.stream(request)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Made:
    """Collects the names of all objects of one kind that were ever created, at the moment of each write."""

    def __init__(self, server, resource):
        self.names = set()
        server.store.table(resource).observe(self)

    def offer(self, event):
        if event.type != "DELETED":
            self.names.add(event.entry.name)


MADE = {
    "machines.cluster.x-k8s.io": 5,
    "machinesets.cluster.x-k8s.io": 1,
    "devmachines.infrastructure.cluster.x-k8s.io": 5,
    "kubeadmconfigs.bootstrap.cluster.x-k8s.io": 5,
}
"""What one cluster of 3+2 consists of: no write may ever create more."""


def life(storm: FaultPlan, seen: dict[str, float], names: tuple[str, ...]):
    async def play(world: World) -> None:
        prepare(world.server)
        every = {resource: Made(world.server, resource) for resource in MADE}
        cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
        p = Plane(world.server, cloud, world.clock)
        counted = []

        async def controllers(transport, clock, random):
            counted.append(Counted(transport, clock))
            await app.build_manager(counted[-1], clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud).run()

        process = world.start("controllers", controllers)
        for name in names:
            await p.apply(samples.cluster(name, has_control_plane_object=True))
            await p.apply(samples.control_plane(name, replicas=3, seconds=2))
            await p.apply(samples.workers(name, f"{name}-md", replicas=2, seconds=2))
        await world.clock.sleep(world.random.uniform(1, 12))
        process.transport.suffer(storm)
        began = world.clock.monotonic()
        await world.clock.sleep(LASTS)
        late = [at for at, _ in counted[-1].tries if at >= began + 60]
        seen["rate"] = len(late) / (LASTS - 60)
        process.transport.calm()
        for name in names:
            await p.until_available(name, control_plane=3, workers=2, within=1800)
        seen["recovered"] = world.clock.monotonic() - began - LASTS
        made = Counter(m.spec.cluster_name for m in await p.client.list(Machine))
        infrastructure, sets = len(await p.client.list(DevMachine)), len(await p.client.list(MachineSet))
        if made != dict.fromkeys(names, 5) or infrastructure != 5 * len(names) or sets != len(names):
            raise Violation(f"a surplus: {made}")
        for resource, most in MADE.items():
            if len(every[resource].names) > most * len(names):
                raise Violation(f"{resource}: more were created than wanted: {sorted(every[resource].names)}")
        if process.starts > 1:
            raise Violation("the process ended")

    return play


def outcome(name: str, seed: int, *clusters: str) -> dict[str, float]:
    seen: dict[str, float] = {}
    result = run(seed, life(STORMS[name], seen, clusters))
    assert result.violation is None, f"seed {seed}: {result.violation}"
    return seen


@pytest.mark.parametrize("name", STORMS)
def test_controllers_slow_down_and_recover_and_make_nothing_twice(name: str) -> None:
    seen = outcome(name, 1, "a")

    assert seen["rate"] < MOST_A_SECOND
    assert seen["recovered"] < 300


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 20))
@pytest.mark.parametrize("name", STORMS)
def test_the_same_many_times(name: str, seed: int) -> None:
    assert outcome(name, seed, "a", "b")["recovered"] < 600
