"""What passes cost and how they fail, seen from outside: in virtual time, on a whole plane."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import MachineDeployment
from clusterwright.api.infrastructure import DevMachine, DevMachineTemplate
from clusterwright.api.meta import ObjectKey
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START

KCP = "kubeadmcontrolplane"


def metrics(p: Plane) -> RuntimeMetrics:
    assert p.manager is not None
    return p.manager.metrics


def passes(p: Plane, controller: str) -> float:
    return sum(metrics(p).reconciles.value(controller, result) for result in ("success", "requeue_after", "error"))


async def made(p: Plane) -> list[DevMachine | KubeadmConfig]:
    """What KubeadmControlPlanes and MachineSets have made for their Machines."""
    return [*await p.client.list(DevMachine), *await p.client.list(KubeadmConfig)]


def objects(*, without: type[Any] | None = None) -> list[dict[str, Any]]:
    all_of = [*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)]
    return [o for o in all_of if without is None or o["kind"] != without.__name__]


def test_a_missing_template_is_an_error_and_not_a_panic() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(objects(without=DevMachineTemplate))
            await asyncio.sleep(300)

            assert metrics(p).errors.value(KCP) > 3
            assert metrics(p).panics.total() == 0

    run_virtual(scenario())


def test_a_secret_that_is_missing_for_the_first_machine_is_waited_for_without_a_storm_of_passes() -> None:
    async def scenario() -> tuple[float, bool]:
        user = {"name": "ops", "passwdFrom": {"secret": {"name": "ops-password", "key": "value"}}}
        made = objects()
        for obj in made:
            if obj["kind"] == "KubeadmControlPlane":
                obj["spec"]["kubeadmConfigSpec"]["users"] = [user]
        async with plane(LoopClock(START)) as p:
            await p.apply(made)
            await asyncio.sleep(120)
            waited = passes(p, "kubeadmconfig")
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "ops-password", "namespace": "default"},
                "stringData": {"value": "x"},
            }
            await p.apply([secret])
            await p.until_available("c", control_plane=1, within=60)
            return waited, True

    waited, came_up = run_virtual(scenario())

    assert waited < 40, "each attempt takes the init lock and gives it back, which must not wake the same config"
    assert came_up


def test_a_control_plane_is_woken_once_by_a_change_of_itself() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(objects())
            await p.until_available("c", within=3600)
            await asyncio.sleep(120)
            before = passes(p, KCP)
            name = next(iter(await p.client.list(KubeadmControlPlane))).metadata.name
            await p.annotate(KubeadmControlPlane, name, {"example.com/note": "1"})
            await asyncio.sleep(2)

            assert passes(p, KCP) - before == 1
            assert p.manager is not None
            trace = p.manager.traces.latest(KCP, ObjectKey("default", name))
            assert trace is not None
            assert trace.rows["Available"] == "available"

    run_virtual(scenario())


def test_labels_and_annotations_of_a_template_come_and_go_on_what_was_made_of_it() -> None:
    """Also by a manager that did not make it; and a new manager writes nothing where nothing has to change."""

    async def scenario() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        cloud = Cloud(now=clock.now, random=Random(1), keys=FixedKeySource(1))
        async with plane(clock, server=server, cloud=cloud) as p:
            await p.apply([*objects(), *samples.workers("c", "w", replicas=1)])
            await p.until_available("c", workers=1, within=3600)
            await asyncio.sleep(60)
        async with plane(clock, server=server, cloud=cloud) as p:
            before = await made(p)
            await asyncio.sleep(60)
            assert [m.metadata.resource_version for m in await made(p)] == [m.metadata.resource_version for m in before]

            owners: dict[type[Any], tuple[str, str]] = {MachineDeployment: ("w", "template"), KubeadmControlPlane: ("c", "machineTemplate")}
            for value in ("a", "b", None):
                for kind, (name, template) in owners.items():
                    metadata = {"labels": {"team": value}, "annotations": {"note": value}}
                    await p.client.patch(kind, ObjectKey("default", name), {"spec": {template: {"metadata": metadata}}})
                await asyncio.sleep(60)
                for obj in await made(p):
                    assert obj.metadata.labels.get("team") == value, obj.metadata.name
                    assert obj.metadata.annotations.get("note") == value
                    assert obj.metadata.labels["cluster.x-k8s.io/cluster-name"] == "c"
            assert all("cluster.x-k8s.io/cloned-from-name" in m.metadata.annotations for m in await p.client.list(DevMachine))

    run_virtual(scenario())


def test_a_cluster_with_a_deployment_of_three_costs_no_more_writes_than_it_should() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            mine = [*samples.cluster("c"), *samples.machine("c", "cp", is_control_plane=True), *samples.workers("c", "w", replicas=3)]
            await p.apply(mine)
            before = p.server.store.revision
            await p.until_available("c", workers=3)

            assert p.server.store.revision - before <= 108
            await asyncio.sleep(30)
            assert p.server.store.revision - before <= 110  # when all is told

    run_virtual(scenario())


def test_a_cluster_of_three_and_two_costs_no_more_writes_than_it_should() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            leaders = samples.control_plane("c", replicas=3)
            await p.apply([*samples.cluster("c", has_control_plane_object=True), *leaders, *samples.workers("c", "w", replicas=2)])
            before = p.server.store.revision
            await p.until_available("c", control_plane=3, workers=2)
            await asyncio.sleep(30)

            assert p.server.store.revision - before <= 169  # when all is told

    run_virtual(scenario())
