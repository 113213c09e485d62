"""After a restart clusters are where they were, with or without what they held."""

import asyncio
from random import Random

import pytest

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import ConfigMap, Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import IN_MEMORY_LISTENER_ANNOTATION
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server, plane
from clusterwright.simulation.world import START


def lives(*bodies, **options):
    """Several lives of a plane on one management API server; the simulated clusters are anew in each."""

    async def main():
        clock = LoopClock(START)
        server = management_server(clock, Random(5))
        for number, body in enumerate(bodies):
            async with plane(clock, seed=number + 1, server=server, **options) as p:
                await body(p)
            await asyncio.sleep(30)
        server.close()

    run_virtual(main())


async def bring_up(p):
    await p.apply(samples.cluster("c"))
    for name in ("cp-0", "cp-1", "w-0"):
        await p.apply(samples.machine("c", name, is_control_plane=name != "w-0"))
    await p.until_available("c", control_plane=2, workers=1)


def test_simulated_clusters_that_were_lost_are_built_again_where_they_were():
    seen = {}

    async def first(p):
        await bring_up(p)
        seen["port"] = p.workload("c").port
        seen["nodes"] = {m: (await p.machine(m)).status.node_ref.name for m in ("cp-0", "cp-1", "w-0")}
        seen["addresses"] = {m: (await p.dev_machine(m)).status.addresses for m in ("cp-0", "cp-1", "w-0")}

    async def second(p):
        await p.until(lambda: _is_back(p), "it answers again", within=5)
        await asyncio.sleep(5)
        await p.until_available("c", control_plane=2, workers=1)
        workload = p.workload("c")
        assert workload.port == seen["port"]
        assert {n.metadata.name for n in await workload.client.list(Node)} == {"cp-0", "cp-1", "w-0"}
        assert len(workload.members()) == 2
        assert await workload.client.get(ConfigMap, ObjectKey("kube-system", "kubeadm-config"))
        assert len(await workload.client.list(Pod, namespace="kube-system", labels={"tier": "control-plane"})) == 8
        assert {m: (await p.dev_machine(m)).status.addresses for m in seen["addresses"]} == seen["addresses"]
        # a machine made now joins, and has an address of its own
        await p.apply(samples.machine("c", "w-1", is_control_plane=False))
        await p.until_available("c", control_plane=2, workers=2)
        new = (await p.dev_machine("w-1")).status.addresses
        assert new[1] not in {a[1] for a in seen["addresses"].values()}

    lives(first, second)


def test_new_clusters_do_not_take_the_ports_of_old_ones():
    seen = {}

    async def first(p):
        await bring_up(p)
        seen["port"] = p.workload("c").port

    async def second(p):
        await p.apply(samples.cluster("a-new"))
        await p.until(lambda: _has_endpoint(p, "a-new"), "it has an endpoint")
        assert (await p.dev_cluster("a-new")).spec.control_plane_endpoint.port == seen["port"] + 1
        await p.until_available("c", control_plane=2, workers=1)

    lives(first, second)


async def _is_back(p):
    found = p.cloud.find(ObjectKey("default", "c"))
    return found is not None and found.is_serving


async def _has_endpoint(p, name):
    return (await p.dev_cluster(name)).spec.control_plane_endpoint is not None


@pytest.mark.parametrize("what", ["annotation", "host", "port"])
def test_an_endpoint_that_cannot_be_restored_is_refused(what):
    async def first(p):
        await bring_up(p)
        await p.apply(samples.cluster("d"))
        await p.until(lambda: _has_endpoint(p, "d"), "it has an endpoint")

    async def between(p):
        pass

    async def tamper(server_client):
        patch = {
            "annotation": {"metadata": {"annotations": {IN_MEMORY_LISTENER_ANNOTATION: None}}},
            "host": {"spec": {"controlPlaneEndpoint": {"host": "10.1.1.1"}}},
            "port": {"spec": {"controlPlaneEndpoint": {"port": 20000}}},
        }[what]
        await server_client.patch(DevCluster, ObjectKey("default", "d"), patch)

    async def main():
        clock = LoopClock(START)
        server = management_server(clock, Random(5))
        async with plane(clock, server=server) as p:
            await first(p)
            client = p.client
        await tamper(client)
        async with plane(clock, server=server) as p:
            await asyncio.sleep(60)
            assert p.cloud.find(ObjectKey("default", "d")) is None
            events = [o.raw for o in server.store.table("events").objects.values()]
            assert any(b"EndpointRefused" in raw for raw in events)
            await p.until_available("c", control_plane=2, workers=1)  # the others do not suffer
            await p.client.delete(Cluster, ObjectKey("default", "d"))
            await p.until_gone(Cluster, "d")
            await p.until_available("c", control_plane=2, workers=1)
        server.close()

    run_virtual(main())


def test_machines_deleted_while_the_plane_was_down_leave_nothing_in_a_stored_cluster():
    """The cloud outlives the controllers, as a real one does."""

    async def main():
        clock = LoopClock(START)
        server = management_server(clock, Random(5))
        cloud = Cloud(now=clock.now, random=Random(3), keys=FixedKeySource(3))
        async with plane(clock, server=server, cloud=cloud) as p:
            await bring_up(p)
            client = p.client
        await client.delete(Machine, ObjectKey("default", "w-0"))
        async with plane(clock, server=server, cloud=cloud) as p:
            await p.until_gone(Machine, "w-0")
            assert {n.metadata.name for n in await p.workload("c").client.list(Node)} == {"cp-0", "cp-1"}
            await p.client.delete(Cluster, ObjectKey("default", "c"))
            await p.until_gone(Cluster, "c")
            assert p.leftovers() == {}
            assert cloud.find(ObjectKey("default", "c")) is None
        await cloud.close()
        server.close()

    run_virtual(main())


def test_a_deletion_continues_after_a_restart():
    async def first(p):
        await bring_up(p)
        await p.client.delete(Cluster, ObjectKey("default", "c"))

    async def second(p):
        await p.until_gone(Cluster, "c")
        assert p.leftovers() == {}
        assert await p.client.list(DevMachine) == []

    lives(first, second)
