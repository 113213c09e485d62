"""A provider made of `clusterwright.provider`, in virtual time, beside everything else that runs."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from clusterwright import provider
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.conditions import get
from clusterwright.provider import InfraMachine, InfraMachines, ProvisionFailed, Server
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.manager import Manager
from clusterwright.testing import NAMESPACE, Plane, run_virtual, samples, virtual_plane
from support.provider import GROUP, definition

API_VERSION = f"{GROUP}/v1"
FINALIZER = f"rackmachine.{GROUP}"
KEY = ObjectKey(NAMESPACE, "w-0")


class RackMachine(InfraMachine):
    api_version: str = API_VERSION
    kind: str = "RackMachine"


class Racks(InfraMachines[RackMachine]):
    """A cloud that nobody watches: servers take three looks to come, and two to go."""

    kind = RackMachine
    finalizer = FINALIZER
    servers: ClassVar[dict[str, int]] = {}
    says_no: ClassVar[bool] = False

    async def provision(self, obj: RackMachine, machine: Machine) -> Server | None:
        if Racks.says_no:
            raise ProvisionFailed("there is no room in rack 7")
        assert FINALIZER in obj.metadata.finalizers
        assert machine.spec.bootstrap.data_secret_name
        looks = self.servers[obj.metadata.name] = self.servers.get(obj.metadata.name, 0) + 1
        return Server(provider_id=f"rack://{obj.metadata.name}", failure_domain="rack-7") if looks >= 3 else None

    async def remove(self, obj: RackMachine) -> bool:
        looks = self.servers.pop(obj.metadata.name, None)
        if looks is not None:
            raise NotFound("somebody else took it away")
        return True


@pytest.fixture(autouse=True)
def _nothing_ordered() -> None:
    Racks.servers, Racks.says_no = {}, False


def racks(manager: Manager) -> None:
    provider.add(manager, Racks)


def worker() -> list[Json]:
    """A worker whose infrastructure is a RackMachine."""
    objects = [o for o in samples.machine("c", "w-0", is_control_plane=False) if o["kind"] != "DevMachine"]
    for obj in objects:
        if obj["kind"] == "Machine":
            obj["spec"]["infrastructureRef"] = {"apiGroup": GROUP, "kind": "RackMachine", "name": "w-0"}
    return [*objects, {"apiVersion": API_VERSION, "kind": "RackMachine", "metadata": {"name": "w-0", "namespace": NAMESPACE}, "spec": {}}]


async def rack(plane: Plane) -> RackMachine | None:
    return await plane.client.find(RackMachine, KEY)


async def until_ready(plane: Plane, status: str, reason: str) -> str:
    said = await plane.until_condition(RackMachine, "w-0", "Ready", status)
    assert said.reason == reason
    return said.message


def in_a_cluster(story: Any) -> None:
    async def scenario() -> None:
        async with virtual_plane(crds=[definition("RackMachine")], setup=racks) as plane:
            await plane.apply(samples.cluster("c"))
            await plane.apply(samples.machine("c", "cp-0", is_control_plane=True))
            await plane.until_available("c")
            await story(plane)

    run_virtual(scenario())


def test_a_machine_gets_its_server_and_gives_it_back() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker())
        await until_ready(plane, "True", "Provisioned")
        await plane.until_condition(Machine, "w-0", "InfrastructureReady", "True")
        machine = await plane.client.get(Machine, KEY)
        assert (machine.spec.provider_id, machine.status.failure_domain) == ("rack://w-0", "rack-7")

        await plane.client.delete(Machine, KEY)
        await plane.until_gone(RackMachine, "w-0")
        assert Racks.servers == {}

    in_a_cluster(story)


def test_why_there_is_no_server_is_told_and_tried_again() -> None:
    async def story(plane: Plane) -> None:
        Racks.says_no = True
        await plane.apply(worker())
        await plane.until_condition(RackMachine, "w-0", "Ready", "False")

        async def told() -> bool:
            found = await rack(plane)
            ready = get(found.status.conditions, "Ready") if found else None
            return ready is not None and (ready.reason, ready.message) == ("ProvisioningFailed", "there is no room in rack 7")

        await plane.until(told, "the failure is told")
        Racks.says_no = False
        await until_ready(plane, "True", "Provisioned")

    in_a_cluster(story)


def test_nothing_is_ordered_while_the_cluster_is_paused() -> None:
    async def story(plane: Plane) -> None:
        await plane.client.patch(Cluster, ObjectKey(NAMESPACE, "c"), {"spec": {"paused": True}})
        await plane.apply(worker())
        await asyncio.sleep(3600)
        assert Racks.servers == {}

        await plane.client.patch(Cluster, ObjectKey(NAMESPACE, "c"), {"spec": {"paused": False}})
        await until_ready(plane, "True", "Provisioned")

    in_a_cluster(story)


def test_an_object_that_nobody_owns_is_left_alone() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker()[-1:])
        await asyncio.sleep(3600)

        found = await rack(plane)
        assert found is not None
        assert (found.metadata.finalizers, found.status.conditions, Racks.servers) == ((), (), {})

    in_a_cluster(story)
