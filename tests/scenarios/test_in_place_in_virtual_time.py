"""Machines that the example extension updates in place, in virtual time: what stays, what is replaced, and what a rollout may cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from clusterwright import admission, app
from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.conditions import get, is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.registry import Registry
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane, prepare
from clusterwright.simulation.world import START, Violation, run
from clusterwright.simulation.world import World as Faulty
from clusterwright.webhooks import embedded
from support.extension import InProcess, example_module
from support.moments import Moment, moment

HOUR = 3600.0
OLD, NEW = "v1.34.0", "v1.34.1"
FEATURES = {**EMBEDDED_FEATURES, "RuntimeSDK": True, "InPlaceUpdates": True}


class World:
    """A plane with 1+3 Machines, and the extension."""

    def __init__(self, p: Plane, post: InProcess) -> None:
        self.p = p
        self.post = post

    async def deployment(self) -> MachineDeployment:
        return await self.p.client.get(MachineDeployment, ObjectKey("default", "md"))

    async def workers(self) -> dict[str, Machine]:
        found = await self.p.client.list(Machine)
        return {m.metadata.name: m for m in found if "cluster.x-k8s.io/control-plane" not in m.metadata.labels}

    async def change(self, **template: Any) -> None:
        """Change the spec of the Machines that the MachineDeployment wants."""
        await self.p.client.patch(MachineDeployment, ObjectKey("default", "md"), {"spec": {"template": {"spec": template}}})

    async def until_rolled_out(self, version: str, replicas: int = 3, within: float = HOUR) -> None:
        async def holds() -> bool:
            status, found = (await self.deployment()).status, await self.workers()
            counts = {status.replicas, status.up_to_date_replicas, status.available_replicas}
            return counts == {replicas} and len(found) == replicas and {m.spec.version for m in found.values()} == {version}

        await self.p.until(holds, f"{replicas} workers are at {version}", within=within, step=1.0)


@asynccontextmanager
async def managed(extension: Any) -> AsyncIterator[tuple[Plane, InProcess]]:
    """A plane with this extension registered."""
    clock = LoopClock(START)
    server = management_server(clock, Random(1), FEATURES)
    post = InProcess(extension)
    registry = Registry()
    registry.warm_up([post.config])
    nobody: Any = None
    async with plane(clock, server=server, features=FEATURES, extensions=RuntimeClient(registry, post, nobody, clock.monotonic)) as p:
        yield p, post
    server.close()


@asynccontextmanager
async def world(extension: Any = None, **rolling: Any) -> AsyncIterator[World]:
    async with managed(extension or example_module().example()) as (p, post):
        await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1, seconds=1)])
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0, **rolling}}
        await p.apply(samples.workers("c", "md", replicas=3, seconds=1, version=OLD, rollout={"strategy": strategy}))
        made = World(p, post)
        await p.until_available("c", workers=3, within=HOUR)
        await made.until_rolled_out(OLD)
        yield made


@pytest.fixture(scope="module")
def settled() -> Iterator[Moment[World]]:
    with moment(world) as made:
        yield made


def virtual(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_virtual(scenario())


async def _watched(w: World, seen: dict[str, int]) -> None:
    """How many Machines there were at most, and how few of them were available."""
    while True:
        found = await w.workers()
        available = sum(is_true(m.status.conditions, "Available") for m in found.values())
        seen["most"] = max(seen.get("most", 0), len(found))
        seen["least available"] = min(seen.get("least available", 99), available)
        await asyncio.sleep(0.2)


# ------------------------------------------------------------------------------------------------- a MachineDeployment


def test_a_whole_deployment_is_updated_in_place_and_the_budgets_hold(settled: Moment[World]) -> None:
    async def scenario(w: World) -> None:
        before = await w.workers()
        hosts = {d.metadata.name: d.metadata.uid for d in await w.p.client.list(DevMachine)}
        seen: dict[str, int] = {}
        watching = asyncio.create_task(_watched(w, seen))
        await w.change(version=NEW)
        await w.until_rolled_out(NEW)
        watching.cancel()
        after = await w.workers()

        kept = before.keys() & after.keys()
        assert len(kept) >= 2, "three Machines are moved, one made to begin with; the one too many at the end may be any"
        assert {n: before[n].metadata.uid for n in kept} == {n: after[n].metadata.uid for n in kept}
        still = {d.metadata.name: d.metadata.uid for d in await w.p.client.list(DevMachine)}
        assert all(still[n] == hosts[n] for n in kept), "hosts stay"
        assert all(d.metadata.labels.get("cluster.x-k8s.io/cluster-name") for d in await w.p.client.list(DevMachine)), "with their labels"
        assert seen == {"most": 4, "least available": 3}
        assert [hook for hook, _ in w.post.calls].count("UpdateMachine") >= 2 * len(kept)
        for machine in after.values():
            assert not [k for k in machine.metadata.annotations if "in-place" in k or "pending-hooks" in k]
        marks = [k for s in await w.p.client.list(MachineSet) for k in s.metadata.annotations if "in-place" in k]
        assert marks == [], "a rollout that is over leaves nothing behind"

        calls, revision = len(w.post.calls), w.p.server.store.revision
        await asyncio.sleep(HOUR / 2)
        assert len(w.post.calls) == calls
        assert w.p.server.store.revision - revision < 5

    settled.then(scenario)


def test_without_surge_no_machine_is_made_at_all() -> None:
    async def scenario() -> None:
        async with world(maxSurge=0, maxUnavailable=1) as w:
            before = await w.workers()
            await w.change(version=NEW)
            await w.until_rolled_out(NEW)
            assert (await w.workers()).keys() == before.keys()

    virtual(scenario)


def test_machines_that_the_extension_cannot_update_are_replaced(settled: Moment[World]) -> None:
    async def scenario(w: World) -> None:
        before = await w.workers()
        await w.p.apply([_other_template()])
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "bigger"}
        await w.change(version=NEW, infrastructureRef=reference)
        await w.until_rolled_out(NEW)
        assert not before.keys() & (await w.workers()).keys()
        assert "CanUpdateMachineSet" in [hook for hook, _ in w.post.calls]
        assert "UpdateMachine" not in [hook for hook, _ in w.post.calls]

    settled.then(scenario)


def _other_template() -> Json:
    backend = {"inMemory": {"vm": {"provisioning": {"startupDuration": "3s"}}}}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevMachineTemplate",
        "metadata": {"name": "bigger", "namespace": "default"},
        "spec": {"template": {"spec": {"backend": backend}}},
    }


def test_a_machine_deployment_that_is_changed_back_in_the_middle_ends_where_it_began(settled: Moment[World]) -> None:
    async def scenario(w: World) -> None:

        async def one_is_updating() -> bool:
            return any((get(m.status.conditions, "Updating") or m).status == "True" for m in (await w.workers()).values())

        await w.change(version=NEW)
        await w.p.until(one_is_updating, "a Machine is being updated", within=HOUR, step=0.2)
        await w.change(version=OLD)
        await w.until_rolled_out(OLD)

    settled.then(scenario)


@pytest.mark.parametrize("replicas", [5, 1])
def test_a_machine_deployment_that_is_scaled_while_it_is_updated_has_what_it_asks_for(replicas: int, settled: Moment[World]) -> None:
    async def scenario(w: World) -> None:
        await w.change(version=NEW)
        await asyncio.sleep(4)
        await w.p.client.patch(MachineDeployment, ObjectKey("default", "md"), {"spec": {"replicas": replicas}})
        await w.until_rolled_out(NEW, replicas)

    settled.then(scenario)


def test_a_failed_update_stops_the_rollout_and_is_reported() -> None:
    async def scenario() -> None:
        module = example_module()
        extension, updates = module.Extension(), module.Updates()
        broken = {"now": True}

        def update(request: Json) -> Json:
            return {"status": "Failure", "message": "no"} if broken["now"] else updates.update_machine(request)

        extension.add("can", "CanUpdateMachineSet", module.can_update)
        extension.add("update", "UpdateMachine", update)
        async with world(extension) as w:
            before = await w.workers()
            await w.change(version=NEW)
            await asyncio.sleep(HOUR / 4)
            found = await w.workers()
            failed = [m for m in found.values() if (get(m.status.conditions, "Updating") or m).reason == "InPlaceUpdateFailed"]
            assert len(failed) == 1
            assert len(before.keys() & found.keys()) == 3, "nothing else moves"
            rolling_out = get((await w.deployment()).status.conditions, "RollingOut")
            assert rolling_out is not None
            assert f"* In-place update of Machine {failed[0].metadata.name} failed" in rolling_out.message
            broken["now"] = False
            await w.until_rolled_out(NEW)

    virtual(scenario)


# ------------------------------------------------------------------------------------------------------ a control plane


@pytest.mark.parametrize(("surge", "kept"), [(0, 3), (1, 2)])
def test_a_whole_control_plane_is_updated_in_place(surge: int, kept: int) -> None:
    """Without surge no host is replaced; with a surge of one, one more is made first, and one of the four goes at the end."""

    async def scenario() -> None:
        async with managed(example_module().example()) as (p, post):
            plane_ = samples.control_plane("c", replicas=3, seconds=1, version=OLD)
            rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
            plane_[-1]["spec"]["rollout"] = {"strategy": rolling}
            await p.apply([*samples.cluster("c", has_control_plane_object=True), *plane_])
            await p.until_available("c", control_plane=3, within=HOUR)
            before = {m.metadata.name: m.metadata.uid for m in await p.client.list(Machine)}
            await p.client.patch(KubeadmControlPlane, ObjectKey("default", "c"), {"spec": {"version": NEW}})

            async def rolled_out() -> bool:
                found = await p.client.list(Machine)
                status = (await p.client.get(KubeadmControlPlane, ObjectKey("default", "c"))).status
                ready = all(m.spec.version == NEW and is_true(m.status.conditions, "Ready") for m in found)
                return len(found) == 3 and ready and status.up_to_date_replicas == status.ready_replicas == 3

            await p.until(rolled_out, f"three Machines are at {NEW}", within=HOUR, step=1.0)
            after = {m.metadata.name: m.metadata.uid for m in await p.client.list(Machine)}
            assert len(before.items() & after.items()) >= kept
            for kind in (DevMachine, KubeadmConfig):
                assert all("cluster.x-k8s.io/control-plane" in obj.metadata.labels for obj in await p.client.list(kind))
            for machine in await p.client.list(Machine):
                assert not [k for k in machine.metadata.annotations if "in-place" in k or "pending-hooks" in k]
            assert [hook for hook, _ in post.calls].count("UpdateMachine") >= 2 * kept

    virtual(scenario)


# --------------------------------------------------------------------------------------------------------- under faults


async def _updated_under_faults(faulty: Faulty) -> None:
    """Two workers are updated in place without surge while everything goes wrong: no Machine is made, and no mark is left."""
    faulty.server.close()
    links, random = admission.chain(FEATURES), Random(faulty.random.getrandbits(64))
    faulty.server = ApiServer(now=faulty.clock.now, random=random, admission=links, converters=embedded.converters)
    prepare(faulty.server)
    cloud = Cloud(now=faulty.clock.now, random=Random(7), keys=FixedKeySource(7))
    p, post = Plane(faulty.server, cloud, faulty.clock), InProcess(example_module().example())

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        registry = Registry()
        registry.warm_up([post.config])
        nobody: Any = None
        extensions = RuntimeClient(registry, post, nobody, clock.monotonic)
        keys = FixedKeySource(8)
        manager = app.build_manager(transport, clock=clock, random=random, keys=keys, cloud=cloud, features=FEATURES, extensions=extensions)
        await manager.run()

    process = faulty.start("controllers", controllers)
    await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1, seconds=1)])
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    await p.apply(samples.workers("c", "md", replicas=2, seconds=1, version=OLD, rollout={"strategy": strategy}))
    w = World(p, post)
    await w.until_rolled_out(OLD, 2, within=12 * HOUR)
    before = {n: m.metadata.uid for n, m in (await w.workers()).items()}
    await w.change(version=NEW)
    await w.until_rolled_out(NEW, 2, within=12 * HOUR)
    after = await w.workers()
    if {n: m.metadata.uid for n, m in after.items()} != before:
        faulty.violations.append(f"{sorted(before)} became {sorted(after)}")
    faulty.calm()

    async def is_clean() -> bool:
        found = [*(await w.workers()).values(), *await p.client.list(DevMachine), *await p.client.list(KubeadmConfig)]
        return not [k for o in found for k in o.metadata.annotations if "in-place" in k or "pending-hooks" in k]

    await p.until(is_clean, "no mark is left", within=HOUR)
    if faulty.violations or process.failure is not None:
        raise Violation(f"{faulty.violations} {process.failure}")
    await cloud.close()


def test_updates_in_place_are_done_once_with_everything_going_wrong() -> None:
    outcome = run(5, _updated_under_faults, ALL_FAULTS.scaled(0.5))

    assert str(outcome.violation) == "None"
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_the_same_many_times(seed: int) -> None:
    assert str(run(seed, _updated_under_faults, ALL_FAULTS).violation) == "None"
