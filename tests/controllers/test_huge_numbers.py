"""A number that a user writes bounds nothing: each pass does a bounded amount of work, and a plane starts with such an object stored."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import get
from clusterwright.controllers.intstr import total
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.controllers.machinedeployment.rollout import Sized, proportional
from clusterwright.controllers.owned_machines import MOST_CREATED, creation_budget
from clusterwright.kubeadm.naming import BadNamingTemplate, machine_name
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane as Simulated
from clusterwright.simulation.plane import management_server, plane
from clusterwright.simulation.world import START
from support.worker_passes import KEY, NOW, Plane, objects

HUGE = 2**31 - 1
"""The largest number that `spec.replicas` can hold."""


async def test_a_pass_creates_so_many_machines_and_says_how_many_are_left() -> None:
    world = Plane(objects("MachineSet", HUGE))

    await world.reconcile("MachineSet", times=1)  # the finalizer
    result = await world.world.reports.complete(world.reconciler("MachineSet"), KEY)

    assert len(await world.machines()) == MOST_CREATED
    assert result.requeue_after is not None
    told = get((await world.client.get(MachineSet, KEY)).status.conditions, "ScalingUp")
    assert told is not None
    assert told.message == f"Scaling up from 0 to {HUGE} replicas, 50 at a time: {HUGE - 50} are still to be created"

    await world.reconcile("MachineSet")  # no time has passed

    assert len(await world.machines()) == MOST_CREATED


def test_a_second_later_the_next_ones_may_be_created() -> None:
    created = [NOW] * MOST_CREATED + [None]

    assert creation_budget(created[:20], NOW) == 30
    assert creation_budget(created, NOW) == creation_budget(created * 2, NOW) == 0
    assert creation_budget(created, NOW + timedelta(seconds=1)) == MOST_CREATED
    assert creation_budget(created, NOW - timedelta(hours=1)) == MOST_CREATED  # a clock that is ahead blocks nothing


async def test_a_number_within_the_bound_is_created_at_once_and_not_mentioned() -> None:
    world = Plane(objects("MachineSet", MOST_CREATED))

    await world.reconcile("MachineSet", times=2)

    assert len(await world.machines()) == MOST_CREATED
    told = get((await world.client.get(MachineSet, KEY)).status.conditions, "ScalingUp")
    assert told is not None
    assert told.message == f"Scaling up from 0 to {MOST_CREATED} replicas"


@pytest.mark.parametrize("surge", [HUGE, "100%", "2147483647%"])
async def test_a_huge_surge_of_a_huge_deployment_is_only_arithmetic(surge: int | str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": HUGE}}
    world = Plane(objects("MachineDeployment", HUGE, rollout={"strategy": strategy}))
    started = time.process_time()

    await world.reconcile("MachineDeployment", times=3)
    await world.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.99.0"}}}})
    error = await world.reconcile("MachineDeployment", times=3)

    assert error == ""
    assert len(await world.machine_sets()) == 2
    assert time.process_time() - started < 10


def test_a_naming_template_that_cannot_give_another_name_is_given_up_soon() -> None:
    taken = {"always"} | {f"other-{n}" for n in range(100_000)}
    started = time.process_time()

    with pytest.raises(BadNamingTemplate, match="same name again"):
        machine_name(template="always{{/* {{ .random }} */}}", cluster="c", control_plane="k", uid="u", slot="s", taken=taken)

    assert time.process_time() - started < 2  # it took a rendering for each taken name


# ------------------------------------------------------------------------------------------------------- whole planes


async def _count(p: Simulated, kind: type) -> int:
    return len(await p.client.list(kind))


async def _at_least(p: Simulated, kind: type, number: int) -> bool:
    return await _count(p, kind) >= number


async def _all_joined(p: Simulated) -> bool:
    return all(machine.status.node_ref is not None for machine in await p.client.list(Machine))


def _pool() -> list[Any]:
    return [*samples.control_plane("c", replicas=1), *samples.machine_pool("c", "w", replicas=HUGE)]


def _topology() -> list[Any]:
    cluster = samples.topology("t", control_plane=HUGE, workers={"md": HUGE}, pools={"mp": HUGE})
    return [*samples.cluster_class(), cluster]


KINDS: dict[str, tuple[Callable[[], list[Any]], type, int]] = {
    # what is applied; what there is so many of while the plane goes on working
    "MachineSet": (lambda: samples.workers("c", "w", kind="MachineSet", replicas=HUGE), Machine, 60),
    "MachineDeployment": (lambda: samples.workers("c", "w", kind="MachineDeployment", replicas=HUGE), Machine, 60),
    "KubeadmControlPlane": (lambda: samples.control_plane("c", replicas=HUGE), Machine, 3),
    "MachinePool": (_pool, DevMachine, 60),
    "topology": (_topology, Machine, 3),
}


def _lives(*bodies: Callable[[Simulated], Awaitable[None]]) -> None:
    """Run several lives of a plane on one management API server, which keeps its objects."""

    async def main() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(5), EMBEDDED_FEATURES)
        for number, body in enumerate(bodies):
            async with plane(clock, seed=number + 1, server=server, features=EMBEDDED_FEATURES) as p:
                await body(p)
        server.close()

    run_virtual(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_plane_works_on_and_starts_again_with_a_huge_number_of_replicas(kind: str) -> None:
    made, counted, number = KINDS[kind]
    used: list[float] = []

    async def first(p: Simulated) -> None:
        started = time.process_time()
        if kind != "topology":
            await p.apply(samples.cluster("c", has_control_plane_object=kind in ("KubeadmControlPlane", "MachinePool")))
        await p.apply(made())
        await p.until(lambda: _at_least(p, counted, number), f"some {counted.__name__}s are there")
        if kind == "KubeadmControlPlane":  # one that is just joining could not go on: its token is lost with the simulated cluster
            await p.until(lambda: _all_joined(p), "no Machine is joining")
        used.append(time.process_time() - started)

    async def second(p: Simulated) -> None:
        started = time.process_time()
        before = await _count(p, counted)
        await p.apply(samples.cluster("other"))
        await p.until(lambda: _has_endpoint(p, "other"), "another cluster is served")
        await p.until(lambda: _at_least(p, counted, before + 1), "it goes on")
        used.append(time.process_time() - started)

    _lives(first, second)

    assert max(used) < 30  # without a bound a first pass never ended


async def _has_endpoint(p: Simulated, name: str) -> bool:
    return (await p.client.get(DevCluster, ObjectKey("default", name))).spec.control_plane_endpoint is not None


@pytest.mark.parametrize(
    ("counts", "sum_of_them"), [([], None), ([None], None), ([1, None, 2], 3), ([HUGE, HUGE], HUGE), ([HUGE, 1], HUGE), ([0], 0)]
)
def test_sums_of_counters_stay_within_what_a_counter_can_hold(counts: list[int | None], sum_of_them: int | None) -> None:
    assert total(counts) == sum_of_them


def test_a_paused_deployment_never_asks_for_more_than_a_counter_can_hold() -> None:
    sets = [Sized("a", wanted=1, annotated_max="2"), Sized("b", wanted=1, annotated_max="2")]

    intents = proportional(replicas=HUGE, surge=HUGE, is_rolling=True, new="b", sets=sets)

    assert intents == {"b": HUGE - 1}  # with the one of "a" that is as many as there may be
