"""Live, recorded and web agree: the page's judge, started after everything is there, says what `explain` says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from clusterwright.api.meta import Json
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from clusterwright.verdicts.judge import Judge
from clusterwright.verdicts.wiring import running_of
from offline.live import SUBJECT, key, lived, recorded, whole
from offline.situations.gallery import SITUATIONS
from offline.situations.truth import Situation


@asynccontextmanager
async def started_again(p: Plane) -> AsyncIterator[Judge]:
    """A judge with informers of its own: it learns of all by lists, as after a restart."""
    assert p.manager is not None
    cache = Cache(RestClient(InProcessTransport(p.server), clock=p.clock), random=Random(7))
    judge = Judge(cache, p.clock, running=running_of(p.manager))
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(judge.run())]
    try:
        yield judge
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await judge.objects_by_cluster.close()


async def from_the_page(p: Plane) -> Verdict:
    """The first verdict after a restart."""
    async with started_again(p) as judge:
        judged = asyncio.Event()
        judge.listen(lambda cluster, *_: judged.set() if cluster == key("c") else None)
        await judged.wait()
        return judge.verdicts[key("c")]


def all_three(situation: Situation) -> tuple[Verdict, Verdict, Verdict]:
    """The verdict live, from a file, and on the page of a plane that was started again."""

    async def main() -> tuple[Verdict, Verdict, Verdict]:
        stage = situation.stage(LoopClock(START))
        async with lived(stage) if situation.needs_cluster else stage as p:
            await situation.make(p)
            await asyncio.sleep(situation.after)
            live = explain(assemble(await recorded(p, keep_secrets=True)), situation.subject).verdict
            saved = explain(assemble(await recorded(p, keep_secrets=False)), situation.subject).verdict
            return live, saved, await from_the_page(p)

    return run_virtual(main())


UNKNOWN_TO_THE_PAGE = frozenset(
    {
        # only the workload cluster tells, which the page does not look into
        "Node with another providerID",
        "Node that no cloud controller has initialized",
        "drain blocked by a finalizer of a Pod",
        "drain held with a finalizer in another namespace",
        # when a spec was changed is told by managedFields, which informers do not keep
        "status of an older generation",
        "infrastructure of the cluster changed and not looked at again",
        # right at the edge of what counts as just made: the page looks a moment later
        "cluster just made",
        # the file has no values of Secrets
        "token gone while a worker boots",
    }
)
ALL = [s for s in SITUATIONS if s.subject == SUBJECT and s.leaders == 1 and s.name not in UNKNOWN_TO_THE_PAGE]


def agree(situation: Situation) -> None:
    live, saved, page = ((str(v.state), v.object, v.cause) for v in all_three(situation))
    assert live == saved, "the file says something else"
    assert live == page, "the page says something else"


@pytest.mark.parametrize("situation", [s for s in ALL if not s.is_long][::7], ids=lambda s: s.name)
def test_live_recorded_and_web_agree(situation: Situation) -> None:
    agree(situation)


@pytest.mark.soak
@pytest.mark.parametrize("situation", ALL, ids=lambda s: s.name)
def test_live_recorded_and_web_agree_on_all(situation: Situation) -> None:
    agree(situation)


def test_only_situations_of_the_gallery_are_left_out() -> None:
    assert {s.name for s in SITUATIONS} >= UNKNOWN_TO_THE_PAGE


@pytest.mark.parametrize("name", ["token gone while a worker boots", "conversion webhook down"])
def test_the_page_claims_no_absence_of_what_it_could_not_list(name: str) -> None:
    _, _, page = all_three(next(s for s in SITUATIONS if s.name == name))
    assert "does not exist" not in page.what, page.headline


def test_a_cluster_in_the_middle_of_provisioning_is_not_accused_after_a_restart() -> None:
    async def main() -> list[Verdict]:
        found = []
        async with plane(LoopClock(START)) as p:
            await p.apply(whole(seconds=20))
            for _ in range(14):
                found.append(await from_the_page(p))
                await asyncio.sleep(8)
        return found

    verdicts = run_virtual(main())
    assert {str(v.state) for v in verdicts} <= {"progressing", "fine"}, [v.headline for v in verdicts]
    assert verdicts[-1].state is State.FINE


def test_everything_that_the_judge_reads_says_what_it_is() -> None:
    async def main() -> list[Json]:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole())
            await p.until_available("c", workers=1)
            async with started_again(p) as judge:
                await judge.objects_by_cluster.ready()
                found = await judge.objects_by_cluster.of(key("c"))
                assert found is not None
                return [*found.objects, *found.events, *found.common]

    read = run_virtual(main())
    assert {"Secret", "Event", "Cluster", "CustomResourceDefinition"} <= {o.get("kind") for o in read}
    assert [o for o in read if not o.get("kind") or not o.get("apiVersion")] == []
