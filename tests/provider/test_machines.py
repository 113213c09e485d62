"""A provider made of `clusterwright.provider`, in virtual time, beside everything else that runs."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from clusterwright import provider
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey, ObjectMeta
from clusterwright.conditions import get
from clusterwright.provider import BootstrapData, Gone, InfraMachine, InfraMachines, Pending, ProvisionFailed, Server
from clusterwright.provider.bootstrap import read_bootstrap_data
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
    asked: ClassVar[list[float]] = []
    data: ClassVar[list[BootstrapData]] = []
    removed_for: ClassVar[list[str]] = []
    ignored: ClassVar[frozenset[str]] = frozenset()
    says_no: ClassVar[bool] = False
    is_stopped: ClassVar[str] = ""
    is_gone: ClassVar[str] = ""
    keeps: ClassVar[str] = ""
    pending: ClassVar[str] = ""

    def concerns(self, obj: RackMachine) -> bool:
        return obj.metadata.name not in Racks.ignored

    async def provision(self, obj: RackMachine, machine: Machine) -> Server | Gone | Pending | None:
        Racks.asked.append(asyncio.get_running_loop().time())
        if Racks.says_no:
            raise ProvisionFailed("there is no room in rack 7")
        if Racks.is_gone:
            return Gone(Racks.is_gone)
        assert FINALIZER in obj.metadata.finalizers
        assert machine.spec.bootstrap.data_secret_name
        Racks.data.append(await self.bootstrap_data(machine))
        if Racks.pending:
            return Pending(Racks.pending)
        looks = self.servers[obj.metadata.name] = self.servers.get(obj.metadata.name, 0) + 1
        server = Server(provider_id=f"rack://{obj.metadata.name}", failure_domain="rack-7", stopped=Racks.is_stopped)
        return server if looks >= 3 else None

    async def remove(self, obj: RackMachine, machine: Machine | None) -> bool:
        if Racks.keeps:
            raise ProvisionFailed(Racks.keeps)
        if machine is not None:
            Racks.removed_for.append(machine.metadata.name)
        looks = self.servers.pop(obj.metadata.name, None)
        if looks is not None:
            raise NotFound("somebody else took it away")
        return True


@pytest.fixture(autouse=True)
def _nothing_ordered() -> None:
    Racks.servers, Racks.asked, Racks.data, Racks.removed_for, Racks.ignored = {}, [], [], [], frozenset()
    Racks.says_no, Racks.is_stopped, Racks.is_gone, Racks.keeps, Racks.pending = False, "", "", "", ""


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
    async def told() -> bool:
        found = await rack(plane)
        ready = get(found.status.conditions, "Ready") if found else None
        return ready is not None and (ready.status, ready.reason) == (status, reason)

    await plane.until(told, f"Ready={status}: {reason}")
    found = await rack(plane)
    said = get(found.status.conditions, "Ready") if found else None
    return said.message if said else ""


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


def test_a_failed_provisioning_is_reported_and_retried() -> None:
    async def story(plane: Plane) -> None:
        Racks.says_no = True
        await plane.apply(worker())
        assert await until_ready(plane, "False", "ProvisioningFailed") == "there is no room in rack 7"
        Racks.says_no = False
        await until_ready(plane, "True", "Provisioned")

    in_a_cluster(story)


def test_a_message_of_several_lines_is_one_line_of_the_machine() -> None:
    async def story(plane: Plane) -> None:
        Racks.pending = "Waiting for the rack\n\n  its door is locked\n"
        await plane.apply(worker())
        assert await until_ready(plane, "False", "Provisioning") == "Waiting for the rack; its door is locked"

        async def told() -> bool:
            machine = await plane.client.get(Machine, KEY)
            ready = get(machine.status.conditions, "Ready")
            return ready is not None and "* InfrastructureReady: Waiting for the rack; its door is locked" in ready.message

        await plane.until(told, "the Machine repeats it as one line")

    in_a_cluster(story)


def test_the_progress_of_a_server_is_reported() -> None:
    async def story(plane: Plane) -> None:
        Racks.pending = "the cables are plugged in"
        await plane.apply(worker())

        async def told() -> bool:
            said = await plane.condition(Machine, "w-0", "InfrastructureReady")
            return said is not None and "the cables are plugged in" in said.message

        await plane.until(told, "the Machine says it")
        Racks.pending = ""
        assert await until_ready(plane, "True", "Provisioned") == ""

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


def test_an_object_without_owner_is_left_alone() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker()[-1:])
        await asyncio.sleep(3600)

        found = await rack(plane)
        assert found is not None
        assert (found.metadata.finalizers, found.status.conditions, Racks.servers) == ((), (), {})

    in_a_cluster(story)


def test_a_server_that_stops_returns_or_is_gone_is_reported_without_a_watch() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker())
        await until_ready(plane, "True", "Provisioned")

        Racks.is_stopped = "the power supply is off"
        assert await until_ready(plane, "False", "Stopped") == "the power supply is off"
        machine = await plane.until_condition(Machine, "w-0", "InfrastructureReady", "False")
        assert "the power supply is off" in machine.message

        Racks.is_stopped = ""
        await until_ready(plane, "True", "Provisioned")
        Racks.is_gone = "somebody carried it away"
        assert await until_ready(plane, "False", "Gone") == "somebody carried it away"
        found = await rack(plane)
        assert found is not None
        assert found.status.initialization is not None
        assert found.status.initialization.provisioned is True, "the contract: it is never taken back"

    in_a_cluster(story)


def test_the_time_between_attempts_grows_to_a_limit() -> None:
    async def story(plane: Plane) -> None:
        Racks.says_no = True
        await plane.apply(worker())
        await plane.until_condition(RackMachine, "w-0", "Ready", "False")
        await asyncio.sleep(1800)
        before = len(Racks.asked)
        await asyncio.sleep(1200)
        late = len(Racks.asked) - before
        assert 9 <= late <= 12, "two minutes apart, with the resync"

        waits = [b - a for a, b in pairwise(Racks.asked) if b - a > 1][:3]
        assert waits == pytest.approx([10, 20, 40], abs=2), "attempts that other changes cause in between prolong nothing"

    in_a_cluster(story)


def test_the_machine_and_its_data_are_given_to_the_provider() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker())
        await until_ready(plane, "True", "Provisioned")
        assert Racks.data[0].format == "cloud-config"
        assert Racks.data[0].value.startswith(b"## template: jinja\n#cloud-config")
        assert "kubeadm" not in repr(Racks.data[0]), "it is secret"

        await plane.client.delete(Machine, KEY)
        await plane.until_gone(RackMachine, "w-0")
        assert "w-0" in Racks.removed_for

    in_a_cluster(story)


def test_a_failed_removal_is_reported() -> None:
    async def story(plane: Plane) -> None:
        await plane.apply(worker())
        await until_ready(plane, "True", "Provisioned")
        Racks.keeps = "the rack is locked"
        await plane.client.delete(Machine, KEY)
        assert await until_ready(plane, "False", "DeletionFailed") == "the rack is locked"

        Racks.keeps = ""
        await plane.until_gone(RackMachine, "w-0")

    in_a_cluster(story)


def test_objects_that_are_not_the_providers_are_left_alone() -> None:
    async def story(plane: Plane) -> None:
        Racks.ignored = frozenset({"w-0"})
        await plane.apply(worker())
        await asyncio.sleep(1200)
        found = await rack(plane)
        assert found is not None
        assert (found.metadata.finalizers, found.status.conditions, Racks.asked) == ((), (), [])

    in_a_cluster(story)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "Secret w-0-data does not exist"),
        ({}, "has no key `value`"),
        ({"value": b"x", "format": b"butane"}, "has the unknown format 'butane'; known: cloud-config, ignition"),
    ],
)
async def test_data_that_cannot_be_read_is_named(data: dict[str, bytes] | None, said: str) -> None:
    class OneSecret:
        async def find(self, kind: type[Any], key: ObjectKey) -> Any:
            return None if data is None else Secret(metadata=ObjectMeta(name=key.name), data=data)

    machine = Machine(metadata=ObjectMeta(name="w-0", namespace="default"))
    machine = replace(machine, spec=replace(machine.spec, bootstrap=replace(machine.spec.bootstrap, data_secret_name="w-0-data")))
    reader: Any = OneSecret()
    with pytest.raises(ProvisionFailed, match=re.escape(said)):
        await read_bootstrap_data(reader, machine)
