"""Whole stories of a healthy cluster, with one verdict a second: it is never called broken, nor waiting for somebody."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.meta import GroupVersionKind
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import NotFound
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START
from offline.live import CLUSTER, CONTROL_PLANE, DEPLOYMENT, admitting, key, look, up, whole
from offline.moments import slow

POOL = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachinePool")
GOOD = {State.FINE, State.PROGRESSING}
EVERY = pytest.mark.parametrize("step", [7.0, pytest.param(1.0, marks=pytest.mark.soak)])
"""How often the verdict is asked for: now and then, and each second."""


async def verdicts(p: Plane, seconds: float, step: float) -> list[Verdict]:
    found: list[Verdict] = []
    for _ in range(int(seconds / step)):
        await asyncio.sleep(step)
        try:
            found.append((await look(p)).verdict)
        except NotFound:
            break
    return found


def told(found: list[Verdict]) -> list[str]:
    return [v.headline for v in found]


@EVERY
def test_a_cluster_that_comes_up_progresses_until_it_is_fine(step: float) -> None:
    async def main() -> list[Verdict]:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole(seconds=3))
            return await verdicts(p, 49, step)

    found = run_virtual(main())
    assert [v.headline for v in found if v.state not in GOOD] == []
    assert found[0].state is State.PROGRESSING
    assert found[-1].state is State.FINE, told(found[-3:])
    later = [v.state for v in found]
    assert State.PROGRESSING not in later[later.index(State.FINE) :], told(found)


@EVERY
def test_a_rollout_progresses_and_says_how_far_it_has_come(step: float) -> None:
    async def main() -> list[Verdict]:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole(seconds=3))
            await p.until_available("c", workers=1, within=600)
            await asyncio.sleep(30)
            await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"version": "v1.35.0"}})
            found = await verdicts(p, 35, min(step, 2.5))
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"version": "v1.35.0"}}}})
            return [*found, *await verdicts(p, 35, min(step, 2.5))]

    found = run_virtual(main())
    assert [v.headline for v in found if v.state not in GOOD] == []
    rolling = [v for v in found if "is rolling out" in v.what]
    assert {v.object for v in rolling} - {"Cluster/default/c"} == {"KubeadmControlPlane/default/c", "MachineDeployment/default/md"}
    assert all(v.since and ", for " in v.headline for v in rolling)
    assert all("up to date" in v.what for v in rolling if v.object != "Cluster/default/c")
    assert found[-1].state is State.FINE, told(found[-3:])


@EVERY
def test_a_cluster_that_is_deleted_progresses_until_it_is_gone(step: float) -> None:
    async def main() -> list[Verdict]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        async with plane(clock, server=server, transport=slow(server, 1)) as p:  # without a network it is gone at once
            await up(p)
            await p.client.delete(CLUSTER, key("c"))
            found = await verdicts(p, 40, step / 35)
            await p.until_gone(Cluster, "c")
        server.close()
        return found

    found = run_virtual(main())
    assert found
    assert [v.headline for v in found if v.state is not State.PROGRESSING] == []


@pytest.mark.soak
def test_a_large_cluster_comes_up_scales_and_shrinks_without_a_bad_word() -> None:
    async def main() -> list[Verdict]:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole(3, 3, seconds=5))
            found = await verdicts(p, 150, 1.0)
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 1}})
            await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"replicas": 1}})
            return [*found, *await verdicts(p, 120, 1.0)]

    found = run_virtual(main())
    assert [v.headline for v in found if v.state not in GOOD] == []
    assert found[-1].state is State.FINE, told(found[-3:])


@EVERY
def test_a_topology_comes_up_upgrades_and_goes_without_a_bad_word(step: float) -> None:
    async def main() -> tuple[list[Verdict], list[Verdict], list[Verdict]]:
        async with admitting(LoopClock(START)) as p:
            await p.apply([*samples.cluster_class(seconds=2), samples.topology("c", version="v1.34.1")])
            coming = await verdicts(p, 56, step)
            await p.client.patch(CLUSTER, key("c"), {"spec": {"topology": {"version": "v1.35.0"}}})
            upgrading = await verdicts(p, 84, step)
            await p.client.delete(CLUSTER, key("c"))
            going = await verdicts(p, 40, step / 14)
            await p.until_gone(Cluster, "c")
            return coming, upgrading, going

    coming, upgrading, going = run_virtual(main())
    assert [v.headline for v in (*coming, *upgrading) if v.state not in GOOD] == []
    assert coming[-1].state is State.FINE, told(coming[-3:])
    assert State.PROGRESSING in {v.state for v in upgrading}
    assert upgrading[-1].state is State.FINE, told(upgrading[-3:])
    assert [v.headline for v in going if v.state is not State.PROGRESSING] == []


@EVERY
def test_workers_of_all_kinds_come_scale_and_are_repaired_without_a_bad_word(step: float) -> None:
    async def main() -> tuple[list[Verdict], list[Verdict]]:
        async with plane(LoopClock(START)) as p:
            await up(p)
            await p.apply([*samples.machine_pool("c", "pool", replicas=2, seconds=2), *samples.workers("c", "more", replicas=2, seconds=2)])
            coming = await verdicts(p, 42, step)
            await p.client.patch(DEPLOYMENT, key("more"), {"spec": {"replicas": 1}})
            await p.client.patch(POOL, key("pool"), {"spec": {"replicas": 3}})
            return coming, await verdicts(p, 42, step)

    coming, changing = run_virtual(main())
    assert [v.headline for v in (*coming, *changing) if v.state not in GOOD] == []
    assert coming[-1].state is State.FINE, told(coming[-3:])
    assert changing[-1].state is State.FINE, told(changing[-3:])
