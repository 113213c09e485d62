"""Whole lives of healthy clusters with a network between the parts, judged after every single write: never a bad word, and no to and fro.

The verdict is the one of lists, pages and lines of progress: by what is written alone, also while sums are behind their parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.offline.verdict import State
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START
from offline.live import CLUSTER, CONTROL_PLANE, DEPLOYMENT, NAMESPACE, key, whole
from offline.moments import Distant, Moment, Onlooker, slow, watched

Story = Callable[[Plane, Onlooker], Awaitable[None]]
STAGE = 0.5
"""Seconds that each stage of a machine takes, as in the demo."""


async def _rest(p: Plane, onlooker: Onlooker, control_plane: int, workers: int) -> None:
    """Until all is there, and a little longer."""
    await p.until_available("c", control_plane=control_plane, workers=workers, within=600)
    await asyncio.sleep(20)
    onlooker.look()


async def small(p: Plane, onlooker: Onlooker) -> None:
    await p.apply(whole(1, 1, seconds=STAGE))
    await _rest(p, onlooker, 1, 1)


async def large(p: Plane, onlooker: Onlooker) -> None:
    check = samples.machine_health_check("c", "md", NAMESPACE, labels={"pool": "md"})
    await p.apply([*whole(3, 3, seconds=STAGE), check])
    await _rest(p, onlooker, 3, 3)


async def scaled(p: Plane, onlooker: Onlooker) -> None:
    await small(p, onlooker)
    for leaders, workers in ((3, 3), (1, 1)):
        await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"replicas": leaders}})
        await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": workers}})
        await _rest(p, onlooker, leaders, workers)


async def rolled_out(p: Plane, onlooker: Onlooker) -> None:
    await small(p, onlooker)
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"version": "v1.35.0"}})
    await asyncio.sleep(30)
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"version": "v1.35.0"}}}})
    await asyncio.sleep(30)
    await _rest(p, onlooker, 1, 1)


async def topology(p: Plane, onlooker: Onlooker) -> None:
    await p.apply([*samples.cluster_class(seconds=STAGE), samples.topology("c", version="v1.34.1")])
    await p.until_available("c", control_plane=1, workers=1, within=600)
    await asyncio.sleep(20)
    await p.client.patch(CLUSTER, key("c"), {"spec": {"topology": {"version": "v1.35.0"}}})
    await asyncio.sleep(90)
    onlooker.look()


async def pooled(p: Plane, onlooker: Onlooker) -> None:
    await small(p, onlooker)
    await p.apply(samples.machine_pool("c", "pool", replicas=2, seconds=STAGE))
    await asyncio.sleep(20)
    await _rest(p, onlooker, 1, 3)


async def deleted(p: Plane, onlooker: Onlooker) -> None:
    await large(p, onlooker)
    await p.client.delete(CLUSTER, key("c"))
    await p.until_gone(Cluster, "c")


def _life(story: Story, seed: int) -> list[Moment]:
    async def main() -> list[Moment]:
        async with watched(seed) as (p, onlooker):
            await story(p, onlooker)
            return onlooker.moments

    return run_virtual(main())


SOAK = pytest.mark.soak
LIVES = [
    pytest.param(large, 1, State.FINE),
    *(pytest.param(s, seed, State.FINE, marks=SOAK) for s in (large, scaled, rolled_out, topology, pooled) for seed in (2, 3, 4)),
    *(pytest.param(deleted, seed, State.PROGRESSING, marks=SOAK) for seed in (1, 2, 3)),
]


@pytest.mark.parametrize(("story", "seed", "end"), LIVES)
def test_no_moment_of_a_healthy_life_has_a_bad_word(story: Story, seed: int, end: State) -> None:
    moments = _life(story, seed)
    assert [str(m) for m in moments if m.verdict.state not in {State.FINE, State.PROGRESSING}] == []
    assert moments[-1].verdict.state is end, str(moments[-1])
    told = [m for before, m in zip([None, *moments], moments, strict=False) if before is None or _said(before) != _said(m)]
    swings = [(a, b, c) for a, b, c in zip(told, told[1:], told[2:], strict=False) if _said(a) == _said(c) and c.at - a.at < 1.0]
    assert [[str(m) for m in swing] for swing in swings] == []


def test_a_restart_makes_no_healthy_cluster_unavailable() -> None:
    async def main() -> tuple[list[Moment], list[str]]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        cloud = Distant(now=clock.now, random=Random(1), keys=FixedKeySource(1), connecting=0.5)
        async with plane(clock, server=server, cloud=cloud, reach=cloud.reach) as p:
            await small(p, Onlooker(p))
        moments: list[Moment] = []
        unavailable: list[str] = []
        begun = clock.now()
        for seed in range(2, 5):
            transport = slow(server, seed)
            async with plane(clock, seed=seed, server=server, cloud=cloud, transport=transport, reach=cloud.reach) as p:
                onlooker = Onlooker(p)
                onlooker.begin()
                await asyncio.sleep(15)
                onlooker.look()
                moments += onlooker.moments
        for kind in (KubeadmControlPlane, Cluster):
            found = await p.condition(kind, "c", "Available")
            is_as_before = found is not None and found.last_transition_time is not None and found.last_transition_time <= begun
            unavailable += [] if is_as_before else [f"{kind.__name__}: {found}"]
        await cloud.close()
        server.close()
        return moments, unavailable

    moments, unavailable = run_virtual(main())
    assert [str(m) for m in moments if m.verdict.state is not State.FINE] == []
    assert unavailable == []


def _said(moment: Moment) -> tuple[str, str, str]:
    """What a line of progress is told for; which of several alike is named does not matter."""
    verdict = moment.verdict
    return verdict.state, verdict.object.partition("/")[0], verdict.field
