"""A MachineDeployment under all controllers and the in-memory infrastructure: made, upgraded, scaled, healed, deleted."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from clusterwright import app
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, FaultPlan
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane, prepare
from clusterwright.simulation.world import START, World, run

KEY = ObjectKey("default", "w")
HOUR = 3600.0


async def life(world: World) -> None:
    prepare(world.server)
    cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
    p = Plane(world.server, cloud, world.clock)

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        await app.build_manager(transport, clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud).run()

    process = world.start("controllers", controllers)
    await p.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=1, seconds=1))
    await p.apply(samples.workers("c", "w", replicas=2, seconds=2))
    await p.until_available("c", control_plane=1, workers=2, within=4 * HOUR)

    await p.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
    await p.until(lambda: is_rolled_out(p, 2, "v1.34.2"), "the workers are upgraded", within=4 * HOUR)
    assert len(await p.workload("c").client.list(Node)) == 3

    await p.client.patch(MachineDeployment, KEY, {"spec": {"replicas": 1}}, subresource="scale")
    await p.until(lambda: is_rolled_out(p, 1, "v1.34.2"), "one worker is left", within=HOUR)

    await p.client.delete(Cluster, ObjectKey("default", "c"))
    await p.until_gone(Cluster, "c", within=4 * HOUR)
    assert p.leftovers() == {}
    assert process.failure is None
    await cloud.close()


async def is_rolled_out(p: Plane, replicas: int, version: str) -> bool:
    deployment = await p.client.get(MachineDeployment, KEY)
    workers = [m for m in await p.client.list(Machine) if "pool" in m.metadata.labels]
    status = deployment.status
    return (
        status.observed_generation == deployment.metadata.generation
        and status.phase == "Running"
        and status.up_to_date_replicas == status.available_replicas == status.replicas == replicas
        and {m.spec.version for m in workers} == {version}
        and len(await p.client.list(MachineSet)) == 1
    )


def test_waiting_objects_wait_for_a_watch() -> None:
    """Workers that wait for their control plane, a rollout, a scaling and a deletion are over before the first timer of any of them."""

    async def quick() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True) + samples.workers("c", "w", replicas=2))
            await p.until_condition(MachineSet, await only_machine_set(p), "ScalingUp", "True")
            await p.apply(samples.control_plane("c", replicas=1))
            await p.until_available("c", control_plane=1, workers=2)
            await p.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
            await p.until(lambda: is_rolled_out(p, 2, "v1.34.2"), "the workers are upgraded")
            await p.client.patch(MachineDeployment, KEY, {"spec": {"replicas": 1}}, subresource="scale")
            await p.until(lambda: is_rolled_out(p, 1, "v1.34.2"), "one worker is left")
            await p.client.delete(Cluster, ObjectKey("default", "c"))
            await p.until_gone(Cluster, "c")
            assert p.leftovers() == {}
            assert p.clock.monotonic() < 15.0

    run_virtual(quick())


async def only_machine_set(p: Plane) -> str:
    await p.until(lambda: has_machine_set(p), "there is a MachineSet")
    return (await p.client.list(MachineSet))[0].metadata.name


async def has_machine_set(p: Plane) -> bool:
    return bool(await p.client.list(MachineSet))


def lives(seed: int, plan: FaultPlan) -> None:
    outcome = run(seed, life, plan)

    assert outcome.violation is None, (str(outcome.violation), outcome.trace[-30:])


def test_while_everything_goes_wrong() -> None:
    lives(1, ALL_FAULTS.scaled(0.4))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_while_everything_goes_wrong_for_long(seed: int) -> None:
    lives(seed, ALL_FAULTS)
