"""What passes cost and how they fail, seen from outside: in virtual time, on a whole plane."""

from __future__ import annotations

import asyncio
from typing import Any

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.infrastructure import DevMachineTemplate
from clusterwright.api.meta import ObjectKey
from clusterwright.cli import samples
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START

KCP = "kubeadmcontrolplane"


def metrics(p: Plane) -> RuntimeMetrics:
    assert p.manager is not None
    return p.manager.metrics


def passes(p: Plane, controller: str) -> float:
    return sum(metrics(p).reconciles.value(controller, result) for result in ("success", "requeue_after", "error"))


def objects(*, without: type[Any] | None = None) -> list[dict[str, Any]]:
    all_of = [*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)]
    return [o for o in all_of if without is None or o["kind"] != without.__name__]


def test_a_template_that_was_forgotten_is_an_error_and_no_panic() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(objects(without=DevMachineTemplate))
            await asyncio.sleep(300)

            assert metrics(p).errors.value(KCP) > 3
            assert metrics(p).panics.total() == 0

    run_virtual(scenario())


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


def test_a_cluster_with_a_deployment_of_three_costs_no_more_writes_than_it_should() -> None:
    async def scenario() -> None:
        async with plane(LoopClock(START)) as p:
            mine = [*samples.cluster("c"), *samples.machine("c", "cp", is_control_plane=True), *samples.workers("c", "w", replicas=3)]
            await p.apply(mine)
            before = p.server.store.revision
            await p.until_available("c", workers=3)

            assert p.server.store.revision - before <= 130
            await asyncio.sleep(30)
            assert p.server.store.revision - before <= 136  # when all is told

    run_virtual(scenario())
