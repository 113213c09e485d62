"""Clusters that were moved are built again from their objects, and the plane that they left lets go of them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from clusterwright.api.codec import convert
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import ConfigMap, Node
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.inmemory.conditions import Progress
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts
from clusterwright.controllers.inmemory.revival import ADDRESS
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.controllers.inmemory.status import conclude
from clusterwright.moving.plan import CannotMove, in_order
from clusterwright.moving.transfer import gather, move
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from support.moments import moment

KEY = ObjectKey("default", "c")


@asynccontextmanager
async def two(*, seconds: float = 0) -> AsyncIterator[tuple[Plane, Plane]]:
    """Two planes at once, with a cluster on the first, whose machines take so long to come."""
    clock = LoopClock(START)
    async with plane(clock, seed=1) as here, plane(clock, seed=2) as there:
        await bring_up(here, seconds=seconds)
        yield here, there


Body = Callable[[Plane, Plane], Awaitable[None]]


@pytest.fixture(scope="module")
def settled() -> Iterator[Callable[[Body], None]]:
    """Goes on from where the cluster is there."""
    with moment(two) as made:
        yield lambda body: made.then(lambda both: body(*both))


def slowly(body: Body) -> None:
    async def main() -> None:
        async with two(seconds=5) as (here, there):
            await body(here, there)

    run_virtual(main())


def client(p: Plane) -> RestClient:
    return RestClient(InProcessTransport(p.server), clock=p.clock)


async def carry(source: Plane, target: Plane) -> None:
    await move(client(source), client(target), "default", 60)


async def bring_up(p: Plane, *, seconds: float = 0) -> None:
    await p.apply(samples.cluster("c", has_control_plane_object=True))
    await p.apply(samples.control_plane("c", replicas=3, seconds=seconds))
    await p.apply(samples.workers("c", "md", replicas=2, seconds=seconds))
    await p.until_available("c", control_plane=3, workers=2, within=600)


async def addresses(p: Plane) -> dict[str, str]:
    return {m.metadata.name: m.status.addresses[1].address for m in await p.client.list(DevMachine)}


async def there_and_back(here, there):
    port, known = here.workload("c").port, await addresses(here)

    for source, target in ((here, there), (there, here)):
        await carry(source, target)
        await target.until_available("c", control_plane=3, workers=2, within=600)
        assert source.cloud.find(KEY) is None  # its port is free for the other
        assert await source.client.find(Cluster, KEY) is None
        assert await addresses(target) == known
        workload = target.workload("c")
        assert workload.port == port
        assert {n.metadata.name for n in await workload.client.list(Node)} == set(known)
        assert len(workload.members()) == 3


def test_a_cluster_is_the_same_there_and_back(settled):
    settled(there_and_back)


@pytest.mark.soak
def test_a_cluster_of_machines_that_take_their_time_is_the_same_there_and_back():
    slowly(there_and_back)


def test_a_cluster_can_grow_after_its_founding_machine_is_gone(settled):
    async def body(here, there):
        founders = {m.metadata.name for m in await here.client.list(Machine)}
        await here.client.patch(KubeadmControlPlane, KEY, {"spec": {"version": "v1.34.2"}})

        async def rolled():
            leaders = [m for m in await here.client.list(Machine) if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            return len(leaders) == 3 and not founders & {m.metadata.name for m in leaders}

        await here.until(rolled, "no control plane machine is left of those at the beginning", within=600)
        await here.until_available("c", control_plane=3, workers=2, within=600)
        await carry(here, there)
        await there.until_available("c", control_plane=3, workers=2, within=600)
        assert await there.workload("c").client.get(ConfigMap, ObjectKey("kube-system", "kubeadm-config"))

        await there.client.patch(KubeadmControlPlane, KEY, {"spec": {"replicas": 5}})
        await there.client.patch(MachineDeployment, ObjectKey("default", "md"), {"spec": {"replicas": 3}})
        await there.until_available("c", control_plane=5, workers=3, within=600)

    settled(body)


def test_a_machine_that_may_not_start_yet_keeps_its_address():
    metadata = {"name": "m", "namespace": "default", "annotations": {ADDRESS: "10.0.0.7"}}
    moved = convert({"metadata": metadata, "spec": {"providerID": "inmemory:////m", "backend": {"inMemory": {}}}}, DevMachine)
    scene = Scene(moved, MachineFacts(), ClusterFacts.of(Cluster()), cast("Any", None), START)

    concluded, _ = conclude(scene, moved, Progress(cluster_infrastructure_provisioned=False), "")

    assert [a.address for a in concluded.status.addresses] == ["m", "10.0.0.7"]


def test_a_move_that_fails_is_undone(settled):
    async def body(here, there):
        moved = in_order(await gather(client(here), "default"))
        taken = next(m.json["metadata"]["name"] for m in reversed(moved) if m.json["kind"] == "DevMachine")
        for obj in samples.machine("other", taken, is_control_plane=False):
            if obj["kind"] == "DevMachine":
                await there.client.create(obj)

        with pytest.raises(AlreadyExists):
            await move(client(here), client(there), "default", 60)

        assert await there.client.list(Machine) == []
        assert await there.client.find(Cluster, KEY) is None
        cluster = await here.client.get(Cluster, KEY)
        assert not cluster.spec.paused
        await here.until_available("c", control_plane=3, workers=2)

    settled(body)


def test_objects_created_during_the_pause_of_a_move_are_waited_for():
    """A Machine that is on its way has no Node yet: it must not be left behind, nor taken along half made."""

    async def body(here, there):
        await here.client.patch(MachineDeployment, ObjectKey("default", "md"), {"spec": {"replicas": 3}})

        async def begun():
            return len(await here.client.list(Machine)) == 6

        await here.until(begun, "there is a Machine more")
        with pytest.raises(CannotMove, match="has no Node yet"):
            await carry(here, there)

        assert await there.client.list(Cluster) == []
        await here.until_available("c", control_plane=3, workers=3, within=600)
        await carry(here, there)
        await there.until_available("c", control_plane=3, workers=3, within=600)

    slowly(body)


def test_a_move_waits_for_a_blocking_object_and_is_undone_after_the_timeout(settled):
    async def body(here, there):
        await here.client.patch(Cluster, KEY, {"metadata": {"annotations": {"clusterctl.cluster.x-k8s.io/block-move": ""}}})

        with pytest.raises(CannotMove, match="some objects were not ready to move within 60 s"):
            await move(client(here), client(there), "default", 60)

        assert not (await here.client.get(Cluster, KEY)).spec.paused
        assert await there.client.list(Cluster) == []

    settled(body)
