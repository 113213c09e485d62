"""A MachinePool on simulated infrastructure: comes up, scales out and in, is upgraded, and leaves nothing behind.

In virtual time, in peace and while everything between controllers and API server goes wrong. At no moment has the pool more machines
than were asked for.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from clusterwright import app
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane, prepare
from clusterwright.simulation.world import START, Violation, World, run

HOUR = 3600.0
POOL = ObjectKey("default", "pool")


async def settled(p: Plane, replicas: int, version: str) -> bool:
    """Whether the pool runs with so many Nodes of that version, and a Machine for each."""
    pool = await p.client.get(MachinePool, POOL)
    nodes = {n.metadata.name: n for n in await p.workload("c").client.list(Node)}
    refs = [r.name for r in pool.status.node_refs]
    machines = await p.client.list(Machine, labels={"cluster.x-k8s.io/pool-name": "pool"})
    if len(await p.client.list(DevMachine, labels={"cluster.x-k8s.io/pool-name": "pool"})) != replicas:
        return False
    return (
        pool.status.phase == "Running"
        and len(refs) == len(machines) == replicas
        and (pool.status.ready_replicas or 0) == replicas
        and all(name in nodes and nodes[name].status.node_info.kubelet_version == version for name in refs)
    )


class Watched:
    """The controllers' way to the API server; after every write the machines of the pool are counted."""

    def __init__(self, inner: Any, server: ApiServer, asked: list[int]) -> None:
        self._inner, self._server, self._asked = inner, server, asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send(self, request: Request) -> Any:
        response = await self._inner.send(request)
        if request.method == "POST" and request.path.endswith("/devmachines"):
            found = await RestClient(InProcessTransport(self._server)).list(DevMachine, labels={"cluster.x-k8s.io/pool-name": "pool"})
            staying = [m.metadata.name for m in found if m.metadata.deletion_timestamp is None]
            if len(staying) > max(self._asked[-2:]):
                raise Violation(f"{len(staying)} machines where {self._asked[-1]} are asked for: {staying}")
        return response


async def life(world: World) -> None:
    prepare(world.server)
    asked = [3]
    cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
    p = Plane(world.server, cloud, world.clock)

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        watched = Watched(transport, world.server, asked)
        await app.build_manager(watched, clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud).run()

    async def scaled(replicas: int, version: str = samples.VERSION, **spec: Any) -> None:
        asked.append(replicas)
        await p.client.patch(MachinePool, POOL, {"spec": {"replicas": replicas, **spec}})
        await p.until(lambda: settled(p, replicas, version), f"the pool has {replicas} machines of {version}", within=3 * HOUR)

    process = world.start("controllers", controllers)
    objects = samples.cluster("c") + samples.machine("c", "cp", is_control_plane=True, seconds=1)
    objects[2]["spec"]["clusterConfiguration"].pop("encryptionAlgorithm")  # RSA signatures are the same each time
    await p.apply(objects + samples.machine_pool("c", "pool", replicas=3, seconds=1))
    await p.until_available("c", control_plane=1, workers=3, within=3 * HOUR)
    await scaled(3)
    await scaled(5)
    await scaled(1)
    newer = "v1.35.0"
    await scaled(2, newer, template={"spec": {"version": newer}})

    victim = (await p.client.list(Machine, labels={"cluster.x-k8s.io/pool-name": "pool"}))[0]
    await p.client.delete(Machine, victim.key)

    async def victim_is_gone() -> bool:
        now = await p.client.find(Machine, victim.key)
        return now is None or now.metadata.uid != victim.metadata.uid  # its place may be taken again at once, under its name

    await p.until(victim_is_gone, f"Machine {victim.metadata.name} is gone", within=HOUR)
    await scaled(2, newer)
    await scaled(0, newer)

    await p.client.delete(Cluster, ObjectKey("default", "c"))
    await p.until_gone(Cluster, "c", within=3 * HOUR)
    world.calm()

    async def nothing_left() -> bool:
        return not p.leftovers()

    await p.until(nothing_left, f"nothing is left behind: {p.leftovers()}", within=HOUR)
    if process.failure is not None:
        raise Violation(f"the controllers ended: {process.failure}")
    await cloud.close()


def test_a_pool_lives_and_leaves_nothing_behind() -> None:
    outcome = run(1, life, NO_FAULTS)

    assert (str(outcome.violation), outcome.crashes) == ("None", 0)


@pytest.mark.parametrize("seed", range(1))
def test_the_same_life_with_everything_going_wrong(seed: int) -> None:
    outcome = run(seed, life, ALL_FAULTS)

    assert str(outcome.violation) == "None"
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 20))
def test_the_same_life_with_everything_going_wrong_many_times(seed: int) -> None:
    assert str(run(seed, life, ALL_FAULTS).violation) == "None"


def test_a_pool_counts_its_machines_when_they_change_also_beside_a_deployment() -> None:
    """Nothing wakes a pool but its Machines where its Nodes and its infrastructure were ready before them."""

    async def scenario() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        async with plane(clock, server=server) as p:
            await p.apply(samples.cluster_class())
            await p.client.create(samples.topology("c", workers={"md-0": 2}, pools={"mp": 2}))

            async def ready(machines: int) -> bool:
                found = await p.client.list(Machine)
                return sum(is_true(m.status.conditions, "Ready") for m in found) == machines

            await p.until(lambda: ready(5), "all Machines are ready", within=HOUR)
            await clock.sleep(5)
            (pool,) = await p.client.list(MachinePool)
            assert (pool.status.ready_replicas, pool.status.available_replicas) == (2, 2)

            named = [m for m in await p.client.list(Machine) if "cluster.x-k8s.io/pool-name" in m.metadata.labels]
            name = named[0].status.node_ref.name if named[0].status.node_ref else ""
            broken = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
            await p.workload("c").client.patch(Node, ObjectKey("", name), broken, subresource="status")
            await p.until(lambda: ready(4), "one is not ready", within=HOUR)
            await clock.sleep(5)
            (pool,) = await p.client.list(MachinePool)
            assert (pool.status.ready_replicas, pool.status.available_replicas) == (1, 1)
        server.close()

    run_virtual(scenario())
