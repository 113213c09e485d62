"""The whole plane, seed by seed: a control plane and workers come up, grow, are upgraded, shrink and go, whatever goes wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from clusterwright import app
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.cli import samples
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation.faults import ALL_FAULTS, FaultPlan
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane, prepare
from clusterwright.simulation.world import START, World, run

CLUSTER, WORKERS = ObjectKey("default", "c"), ObjectKey("default", "w")
LONG = 6 * 3600.0


async def life(world: World) -> None:
    """A life that is different for each seed: how large it gets, and what happens first."""
    choice = Random(world.random.getrandbits(32))
    prepare(world.server)
    cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
    p = Plane(world.server, cloud, world.clock)

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        await app.build_manager(transport, clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud).run()

    process = world.start("controllers", controllers)
    before, after, workers = choice.choice([1, 3]), choice.choice([1, 3]), choice.choice([1, 2])
    await p.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=before, seconds=1))
    await p.apply(samples.workers("c", "w", replicas=workers, seconds=1))
    await p.until_available("c", control_plane=before, workers=workers, within=LONG)

    await p.client.patch(KubeadmControlPlane, CLUSTER, {"spec": {"replicas": after}}, subresource="scale")
    await p.client.patch(MachineDeployment, WORKERS, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})

    async def is_settled() -> bool:
        machines = [m for m in await p.client.list(Machine) if m.metadata.deletion_timestamp is None]
        pool = [m for m in machines if "pool" in m.metadata.labels]
        nodes = await p.workload("c").client.list(Node)
        sizes = (len(machines) - len(pool), len(pool), len(nodes))
        return sizes == (after, workers, after + workers) and {m.spec.version for m in pool} == {"v1.34.2"}

    await p.until(is_settled, "the cluster has its new size and version", within=LONG)
    await p.client.delete(Cluster, CLUSTER)
    await p.until_gone(Cluster, "c", within=LONG)
    assert p.leftovers() == {}
    assert process.failure is None
    await cloud.close()


def test_scaling_down_takes_no_more_than_it_should() -> None:
    """That the right number is there in the end is not enough: one too many, made again, would look the same."""

    async def story() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=1))
            await p.apply(samples.workers("c", "w", replicas=4))
            await p.until_available("c", control_plane=1, workers=4)
            before = {m.metadata.uid for m in await p.client.list(Machine)}
            await p.client.patch(MachineDeployment, WORKERS, {"spec": {"replicas": 3}}, subresource="scale")

            async def is_smaller() -> bool:
                deployment = await p.client.get(MachineDeployment, WORKERS)
                return deployment.status.replicas == 3 == deployment.status.available_replicas

            await p.until(is_smaller, "three workers are left")
            after = {m.metadata.uid for m in await p.client.list(Machine)}

            assert len(before) == 5
            assert len(after) == 4
            assert after < before

    run_virtual(story())


def lives(seed: int, plan: FaultPlan) -> None:
    outcome = run(seed, life, plan)

    assert outcome.violation is None, (seed, str(outcome.violation), outcome.trace[-30:])


def test_one_life_while_everything_goes_wrong() -> None:
    lives(3, ALL_FAULTS.scaled(0.3))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000))
def test_two_thousand_lives_while_everything_goes_wrong(seed: int) -> None:
    lives(seed, ALL_FAULTS)
