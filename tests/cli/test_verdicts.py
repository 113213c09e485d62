"""What `up` tells of its clusters: a line for each verdict that is another, and nothing while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli.verdicts import MANY, MOST, Teller
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from clusterwright.verdicts.judge import Judge


class Counting(InProcessTransport):
    """Counts what is asked."""

    asked = 0

    async def send(self, request: Request) -> Response:
        self.asked += 1
        return await super().send(request)


@asynccontextmanager
async def told(p: Plane, shown: ObjectKey | None = None) -> AsyncIterator[tuple[list[str], Counting]]:
    """The lines, as they are told, and what the judge asks the API server."""
    lines: list[str] = []
    transport = Counting(p.server)
    cache = Cache(RestClient(transport, clock=p.clock), random=Random(3))
    judge = Judge(cache, p.clock)
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(judge.run())]
    Teller(judge, p.clock, lines.append, shown)
    try:
        yield lines, transport
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await judge.objects_by_cluster.close()


def words(lines: list[str]) -> list[str]:
    return [line.split("  ", 1)[1] for line in lines]


def test_a_life_in_a_few_lines_and_none_at_rest() -> None:
    async def main() -> tuple[list[str], list[str], int, list[str]]:
        async with plane(LoopClock(START)) as p, told(p) as (lines, transport):
            await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1, seconds=2)])
            await p.until_available("c")
            await asyncio.sleep(60)
            coming, before = list(lines), transport.asked
            await asyncio.sleep(3600)
            resting, asked = lines[len(coming) :], transport.asked - before
            await p.client.delete(Cluster, ObjectKey("default", "c"))
            await p.until_gone(Cluster, "c")
            await asyncio.sleep(5)
            return words(coming), resting, asked, words(lines[len(coming) + len(resting) :])

    coming, resting, asked, going = run_virtual(main())
    assert coming[0].startswith("cluster default/c  Progressing: ")
    assert coming[-1] == "cluster default/c  Fine: nothing is wrong; 1 control plane and 0 worker Machines are ready"
    assert len(coming) == len(set(coming)) <= 8, coming
    assert (resting, asked) == ([], 0)
    assert going[-1] == "cluster default/c  Gone"


def test_trouble_caused_by_time_is_reported_after_the_time_limit() -> None:
    async def main() -> list[str]:
        async with plane(LoopClock(START)) as p, told(p) as (lines, _):
            objects = [*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)]
            for obj in objects:
                if obj["kind"] == "DevMachineTemplate":
                    obj["spec"]["template"]["spec"]["backend"]["inMemory"]["vm"] = {"provisioning": {"startupDuration": "100000s"}}
            await p.apply(objects)
            await asyncio.sleep(420)
            return words(lines)

    lines = run_virtual(main())
    assert lines[-1].startswith("cluster default/c  Waiting: DevMachine/default/c-"), lines


async def paused_clusters(p: Plane, number: int) -> None:
    for n in range(number):
        metadata = {"name": f"c{n}", "namespace": "default"}
        await p.client.create({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": {"paused": True}})


def test_with_too_many_clusters_no_changes_are_printed() -> None:
    async def main() -> list[str]:
        async with plane(LoopClock(START)) as p, told(p) as (lines, _):
            await paused_clusters(p, MOST + 1)
            await asyncio.sleep(30)
            return lines

    lines = run_virtual(main())
    assert [line for line in lines if line.startswith(f"more than {MOST} clusters")] == lines[-1:]


def test_with_many_clusters_only_trouble_and_its_end_are_printed() -> None:
    async def main() -> tuple[list[str], list[str], list[str]]:
        async with plane(LoopClock(START)) as p, told(p) as (lines, _):
            await paused_clusters(p, MANY)
            await asyncio.sleep(30)
            first = list(lines)
            await p.apply([*samples.cluster("d", has_control_plane_object=True), *samples.control_plane("d", replicas=1, seconds=2)])
            await p.until_available("d")
            await asyncio.sleep(60)
            second = lines[len(first) :]
            await p.client.patch(Cluster, ObjectKey("default", "d"), {"spec": {"paused": True}})
            await asyncio.sleep(60)
            await p.client.patch(Cluster, ObjectKey("default", "d"), {"spec": {"paused": False}})
            await asyncio.sleep(60)
            return words(first), second, words(lines[len(first) + len(second) :])

    first, second, third = run_virtual(main())
    assert len([line for line in first if "Waiting: Cluster/" in line]) == len(first) == MANY
    assert second == [f"more than {MANY} clusters: from now on, only problems and their end are printed"]
    assert [line.partition(":")[0] for line in third] == ["cluster default/d  Waiting", "cluster default/d  Fine"], third


def test_a_start_that_was_shown_is_not_printed_again() -> None:
    async def main() -> list[str]:
        async with plane(LoopClock(START)) as p:
            await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)])
            await p.until_available("c")
            await asyncio.sleep(30)
            async with told(p, ObjectKey("default", "c")) as (lines, _):
                await asyncio.sleep(30)
                return list(lines)

    assert run_virtual(main()) == []
