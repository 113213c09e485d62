"""The judge of a plane in virtual time: what it judges when, what that costs at rest, what Prometheus and `/traces` get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.offline import glance
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from clusterwright.verdicts import cluster_objects
from clusterwright.verdicts.history import History
from clusterwright.verdicts.judge import SELDOM, Judge
from clusterwright.verdicts.series import Series
from clusterwright.verdicts.wiring import MOST_TOLD, running_of, told_by
from offline.live import CLUSTER, DEPLOYMENT, DEV_TEMPLATE, key, whole

KEY = key("c")


class Counting(Judge):
    """Counts verdicts."""

    judged = 0

    async def _judge(self, cluster: ObjectKey) -> None:
        self.judged += 1
        await super()._judge(cluster)


@asynccontextmanager
async def judged(p: Plane, *, everything: bool = True, **more: Any) -> AsyncIterator[Counting]:
    assert p.manager is not None
    judge = Counting(p.manager.cache, p.clock, everything=everything, running=running_of(p.manager), **more)
    task = asyncio.create_task(judge.run())
    try:
        yield judge
    finally:
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await judge.objects_by_cluster.close()


def test_a_fine_cluster_at_rest_costs_nothing() -> None:
    async def main() -> tuple[int, int, int]:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            await p.apply(whole())
            await p.until_available("c", workers=1)
            await asyncio.sleep(120)
            assert judge.verdicts[KEY].state is State.FINE
            before, revision = judge.judged, p.server.store.revision
            await asyncio.sleep(500)
            return judge.judged - before, p.server.store.revision - revision, before

    judgements, writes, before = run_virtual(main())
    assert (judgements, writes) == (0, 0)
    assert before < 60, "what comes together is judged once"


def test_a_broken_cluster_at_rest_is_looked_at_less_and_less_often() -> None:
    async def main() -> tuple[int, int]:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            await p.apply([samples.cluster("c", has_control_plane_object=True)[0]])
            await asyncio.sleep(600)
            assert judge.verdicts[KEY].state is State.BROKEN
            first = judge.judged
            await asyncio.sleep(24 * 3600)
            return first, judge.judged - first

    first, day = run_virtual(main())
    assert first < 40
    assert day <= 24 * 3600 / SELDOM.total_seconds() * 2 + 8 + 24 * 6  # resyncs change nothing, so that they are no reason


def test_a_verdict_changes_with_its_cluster_and_since_stays() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            await p.apply(whole(seconds=5))
            await p.until_available("c", workers=1)
            await asyncio.sleep(60)
            await p.client.delete(DEV_TEMPLATE, key("md"))
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})
            await asyncio.sleep(120)
            verdict = judge.verdicts[KEY]
            assert (verdict.state, verdict.object) == (State.BROKEN, "DevMachineTemplate/default/md"), verdict.headline
            assert verdict.cause == "object.missing"
            await p.client.patch(CLUSTER, KEY, {"spec": {"paused": True}})
            await asyncio.sleep(120)
            assert judge.verdicts[KEY].since == verdict.since
            states = [e.state for e in judge.history.of(KEY)]
            assert states[0] == "progressing"
            assert "fine" in states
            assert states[-1] in {"broken", "waiting"}

            await p.client.patch(CLUSTER, KEY, {"spec": {"paused": False}})
            await p.client.delete(Cluster, KEY)
            await p.until_gone(Cluster, "c")
            await asyncio.sleep(5)
            assert KEY not in judge.verdicts
            assert judge.history.of(KEY) == ()

    run_virtual(main())


def test_with_the_kinds_alone_that_controllers_watch_no_request_is_sent() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p:
            assert p.manager is not None
            await asyncio.sleep(5)
            before = p.manager.metrics.watches.total()
            async with judged(p, everything=False) as judge:
                await p.apply(whole())
                await p.until_available("c", workers=1)
                await asyncio.sleep(60)
                assert judge.verdicts[KEY].state is State.FINE
                added = p.manager.metrics.watches.total() - before
            kinds = {g.kind for g in judge.objects_by_cluster._informers}
            assert "Event" not in kinds
            assert {"Cluster", "Machine", "DevMachine", "KubeadmConfig"} <= kinds
            assert added <= 10, "those of controllers that met new kinds"

    run_virtual(main())


def test_series_follow_the_verdict_and_end_with_the_cluster() -> None:
    async def main() -> tuple[str, str, str]:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            assert p.manager is not None
            judge.listen(Series(p.manager.registry).told)
            await p.apply(whole())
            await p.until_available("c", workers=1)
            await asyncio.sleep(60)
            fine = p.manager.registry.render()
            await p.client.patch(CLUSTER, KEY, {"spec": {"paused": True}})
            await asyncio.sleep(60)
            waiting = p.manager.registry.render()
            await p.client.patch(CLUSTER, KEY, {"spec": {"paused": False}})
            await p.client.delete(Cluster, KEY)
            await p.until_gone(Cluster, "c")
            await asyncio.sleep(5)
            return fine, waiting, p.manager.registry.render()

    fine, waiting, gone = ([line for line in text.splitlines() if line.startswith("clusterwright_cluster")] for text in run_virtual(main()))
    assert 'clusterwright_cluster_verdict{namespace="default",cluster="c",verdict="fine",cause=""} 1' in fine
    assert 'clusterwright_cluster_not_fine_since_seconds{namespace="default",cluster="c"} 0' in fine
    assert 'clusterwright_clusters{verdict="fine"} 1' in fine
    assert [line for line in waiting if "verdict{namespace" in line] == [
        'clusterwright_cluster_verdict{namespace="default",cluster="c",verdict="waiting",cause="object.paused"} 1'
    ]
    (since,) = [line for line in waiting if "since_seconds" in line]
    assert float(since.rpartition(" ")[2]) > START.timestamp()
    assert [line for line in gone if "namespace=" in line] == []
    assert 'clusterwright_clusters{verdict="waiting"} 0' in gone


def test_of_many_clusters_each_has_some_of_its_history_in_an_answer() -> None:
    history = History()
    for n in range(600):
        for m in range(5):
            verdict = Verdict("", State.BROKEN, "no", f"Machine/ns/m{m}", cause="object.error")
            history.note(ObjectKey("ns", f"c{n}"), "1", verdict, START)
    told = told_by(history)
    everything = told({"namespace": "ns"})
    assert len(everything) == 600
    assert sum(map(len, everything.values())) <= MOST_TOLD
    assert [len(v) for v in told({"namespace": "ns", "cluster": "c7"}).values()] == [5]
    assert told({"namespace": "other"}) == {}
    assert {len(v) for v in told({"only": "now"}).values()} == {1}


def test_a_list_of_clusters_has_the_since_of_the_history() -> None:
    async def main() -> tuple[Verdict, Verdict]:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            assert p.manager is not None
            p.manager.add_witness("verdicts", told_by(judge.history))
            await p.apply(whole())
            await p.until_available("c", workers=1)
            await asyncio.sleep(60)
            await p.client.delete(DEV_TEMPLATE, key("md"))
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})
            await asyncio.sleep(120)
            await p.client.patch(CLUSTER, KEY, {"spec": {"paused": True}})
            await asyncio.sleep(120)
            fleet = await glance.read(p.client, "default", p.clock.now())
            return judge.verdicts[KEY], fleet.verdict(KEY)

    page, listed = run_virtual(main())
    assert (listed.state, listed.object, listed.cause, listed.since) == (page.state, page.object, page.cause, page.since)


def test_the_share_of_another_process_is_left_to_it() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p:
            mine = {"c"}
            async with judged(p, is_ours=lambda cluster, raw: cluster.name in mine) as judge:
                for name in ("c", "d"):
                    await p.apply([samples.cluster(name)[0]])
                await asyncio.sleep(10)
                assert set(judge.verdicts) == {key("c")}
                mine |= {"d"}
                mine -= {"c"}
                judge.reconsider()
                await asyncio.sleep(10)
                assert set(judge.verdicts) == {key("d")}

    run_virtual(main())


def test_a_cluster_of_which_there_is_too_much_is_judged_by_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_objects, "MOST_BYTES", 100_000)

    async def main() -> None:
        async with plane(LoopClock(START)) as p, judged(p) as judge:
            await p.apply(whole())
            await p.until_available("c", workers=1)
            metadata = {"namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "c"}}
            for n in range(3):
                data = {"huge": "x" * 50_000}
                await p.client.create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": f"huge-{n}"}, "data": data}
                )
            await asyncio.sleep(60)
            found = await judge.objects_by_cluster.of(KEY)
            assert found is not None
            assert found.is_partial
            assert [o["kind"] for o in found.objects] == ["Cluster"]
            assert judge.verdicts[KEY].state is State.FINE

    run_virtual(main())
