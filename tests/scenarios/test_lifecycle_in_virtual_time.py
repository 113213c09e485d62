"""A cluster's whole life in virtual time, while everything between controllers and API server goes wrong."""

from functools import cache
from random import Random

import pytest

from clusterwright import app
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.inmemory import faults
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.plane import Plane, prepare
from clusterwright.simulation.world import World, run

CONTROL_PLANES, WORKERS = ("cp-0", "cp-1", "cp-2"), ("w-0", "w-1", "w-2")
HOUR = 3600.0


async def lifecycle(world: World) -> None:
    """Create, Available, a node dies and says so, workers drained and deleted, cluster deleted, nothing left."""
    prepare(world.server)
    cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
    p = Plane(world.server, cloud, world.clock)

    async def controllers(transport, clock, random):
        await app.build_manager(transport, clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud).run()

    process = world.start("controllers", controllers)
    await p.apply(samples.cluster("c"))
    for name in CONTROL_PLANES + WORKERS:
        objects = samples.machine("c", name, is_control_plane=name in CONTROL_PLANES, seconds=2)
        objects[0]["spec"].get("clusterConfiguration", {}).pop("encryptionAlgorithm", None)  # RSA signatures are the same each time
        await p.apply(objects)
    await p.until_available("c", control_plane=3, workers=3, within=2 * HOUR)
    workload = p.workload("c")
    nodes = {node.metadata.name: node for node in await workload.client.list(Node)}
    assert set(nodes) == {*CONTROL_PLANES, *WORKERS}
    assert len(workload.members()) == 3

    await p.annotate(DevMachine, "w-2", {faults.FAULT: "node-dies"})
    await p.until_condition(Machine, "w-2", "NodeHealthy", "Unknown", within=HOUR)
    await p.until_condition(Cluster, "c", "WorkerMachinesReady", "Unknown", within=HOUR)

    await workload.client.create(_pod("app", "w-0"))
    for name in WORKERS:
        await p.client.delete(Machine, ObjectKey("default", name))
    await p.until(lambda: _is_gone(workload, "app"), "the Pod is evicted", within=HOUR)
    for name in WORKERS:
        await p.until_gone(Machine, name, within=HOUR)
    assert {node.metadata.name for node in await workload.client.list(Node)} == set(CONTROL_PLANES)
    assert await p.client.find(DevMachine, ObjectKey("default", "w-0")) is None

    await p.client.delete(Cluster, ObjectKey("default", "c"))
    await p.until_gone(Cluster, "c", within=HOUR)
    assert p.leftovers() == {}
    assert cloud.find(ObjectKey("default", "c")) is None
    assert cloud.at(workload.host, workload.port) is None
    assert process.failure is None
    await cloud.close()


async def _is_gone(workload, name):
    return await workload.client.find(Pod, ObjectKey("default", name)) is None


def _pod(name, node):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }


def test_without_faults():
    outcome = run(1, lifecycle, NO_FAULTS)

    assert outcome.violation is None
    assert outcome.crashes == 0


@cache
def lived(seed):
    return run(seed, lifecycle, ALL_FAULTS)


@pytest.mark.parametrize("seed", range(2))
def test_while_everything_goes_wrong(seed):
    outcome = lived(seed)

    assert outcome.violation is None, outcome.trace[-40:]
    assert outcome.crashes > 0  # the controllers died on the way, and went on


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3, *range(100, 140)])
def test_while_everything_goes_wrong_for_long(seed):
    outcome = run(seed, lifecycle, ALL_FAULTS)

    assert outcome.violation is None, outcome.trace[-40:]


def test_the_same_seed_lives_the_same_life():
    assert run(0, lifecycle, ALL_FAULTS).digest == lived(0).digest
