"""Clusters as the page gets them, on a live plane in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.dashboard.feed import Feed
from clusterwright.dashboard.fleet import Fleet, newest
from clusterwright.offline.timeline import Moment, Sort
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.traces import Decision
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from clusterwright.verdicts.judge import Judge
from offline.faults_of_neighbours import REFUSED, config, extended, patched_from_outside

KEY = ObjectKey("default", "c")


def whole(name: str = "c") -> list[Json]:
    return [
        *samples.cluster(name, has_control_plane_object=True),
        *samples.control_plane(name, replicas=1, seconds=1),
        *samples.workers(name, f"{name}-md", replicas=1, seconds=1),
    ]


@asynccontextmanager
async def judged(p: Plane, *, always: bool = False) -> AsyncIterator[Judge]:
    """A judge of the plane at work."""
    assert p.manager is not None
    judge = Judge(p.manager.cache, p.clock, always=always)
    task = asyncio.create_task(judge.run())
    try:
        yield judge
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await judge.objects_by_cluster.close()


@asynccontextmanager
async def fleet_of(p: Plane) -> AsyncIterator[Fleet]:
    assert p.manager is not None
    traces = p.manager.traces

    def history(kind: str, key: ObjectKey) -> tuple[Decision, ...]:
        return traces.of("cluster" if kind == "Cluster" else "", key)

    async with judged(p) as judge:
        yield Fleet(judge, history)


async def until(differences: AsyncIterator[Json], holds: Any) -> Json:
    """What a page knows as soon as something holds of it."""
    values: Json = {}
    async with asyncio.timeout(600):
        async for difference in differences:
            if difference.get("reset"):
                values = {}
            values = {k: v for k, v in values.items() if k not in difference.get("gone", [])} | difference.get("set", {})
            if holds(values):
                return values
    raise AssertionError("the stream has ended")


def test_rows_come_change_and_go() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p, fleet_of(p) as fleet, aclosing(fleet.follow_all()) as rows:
            await until(rows, lambda known: known == {})
            await p.apply(whole())
            seen = await until(rows, lambda known: known.get("default/c", {}).get("verdict", {}).get("state") == "progressing")
            assert seen["default/c"]["phase"] in {"Pending", "Provisioning", "Provisioned"}

            await p.until_available("c", workers=1)
            fine = await until(rows, lambda known: known.get("default/c", {}).get("verdict", {}).get("state") == "fine")
            assert fine["default/c"]["workers"] == {"wanted": 1, "ready": 1}

            await p.client.delete(Cluster, KEY)
            await until(rows, lambda known: known == {})

    run_virtual(main())


def test_a_cluster_is_shown_completely_without_its_secrets() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply([*whole(), *whole("other")])
            await p.until_available("c", workers=1)
            await p.until_available("other", workers=1)
            async with fleet_of(p) as fleet, aclosing(fleet.follow(KEY)) as told:
                known = await until(told, lambda known: len([k for k in known if k.startswith("object Machine/")]) == 2)

            objects = {k.removeprefix("object ").partition("/")[0] for k in known if k.startswith("object ")}
            assert objects >= {"Cluster", "DevCluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "Machine", "DevMachine"}
            assert not objects & {"Secret", "Event", "ConfigMap"}
            assert not [k for k in known if "/other" in k]
            assert known["verdict"]["state"] == "fine"
            assert len([k for k in known if k.startswith("steps Machine/")]) == 2
            moments = [v for k, v in known.items() if k.startswith("moment ")]
            assert {m["sort"] for m in moments} >= {"created", "condition", "event", "decision"}
            everything = msgspec.json.encode(known).decode()
            secrets = [o for o in fleet.objects_by_cluster.objects_of(KEY) if o["kind"] == "Secret"]
            assert secrets
            for value in (v for s in secrets for v in (s.get("data") or {}).values() if len(v) > 20):
                assert value not in everything

    run_virtual(main())


def test_nothing_is_computed_without_a_reader() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p, fleet_of(p) as fleet:
            async with aclosing(fleet.follow_all()) as rows:
                await until(rows, lambda known: known == {})
            await p.apply(whole())
            await p.until_available("c", workers=1)
            assert fleet.clusters.values == {}

            async with aclosing(fleet.follow_all()) as rows:
                await until(rows, lambda known: known.get("default/c", {}).get("verdict", {}).get("state") == "fine")

    run_virtual(main())


def test_a_missing_cluster_is_shown_as_missing_until_it_exists() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p, fleet_of(p) as fleet, aclosing(fleet.follow(KEY)) as told:
            await until(told, lambda known: known == {"known": {"isThere": False}})
            await p.apply(whole())
            await until(told, lambda known: "object Cluster/default/c" in known)

    run_virtual(main())


class Told(Feed):
    """A feed that remembers what it was told, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[tuple[str, str]] = []

    def put(self, key: str, value: Json | None) -> None:
        self.states.append((key, value["verdict"]["state"] if value is not None else ""))
        super().put(key, value)


def test_clusters_are_shown_before_they_are_judged_and_those_in_trouble_are_judged_first() -> None:
    async def main() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole())
            await p.until_available("c", workers=1)
            await p.apply([samples.cluster(f"z{n}")[0] for n in range(3)])
            await asyncio.sleep(30)
            async with fleet_of(p) as fleet:
                told = fleet.clusters = Told()
                async with aclosing(fleet.follow_all()) as rows:
                    await until(rows, lambda known: len(known) == 4 and all(v["verdict"]["state"] != "looking" for v in known.values()))

            assert {key for key, _ in told.states[:4]} == {"default/c", "default/z0", "default/z1", "default/z2"}
            assert {state for _, state in told.states[:4]} == {"looking"}
            assert [key for key, _ in told.states[4:8]] == ["default/z0", "default/z1", "default/z2", "default/c"]

    run_virtual(main())


def test_decisions_do_not_take_the_room_of_what_happened() -> None:
    moments = [Moment(f"2026-01-01T00:00:{n:02}Z", "Machine/ns/m", Sort.EVENT if n < 5 else Sort.DECISION, "", str(n)) for n in range(60)]

    assert [m.text for m in newest(moments, 3)] == ["2", "3", "4", "57", "58", "59"]


def test_changes_of_runtime_extensions_of_a_cluster_are_shown() -> None:
    def blames(known: Json, words: str) -> bool:
        verdict = known.get("default/c", {}).get("verdict") or {}
        return verdict.get("object") == "ExtensionConfig/ext" and words in verdict.get("what", "")

    async def main() -> None:
        async with extended(LoopClock(START)) as p, fleet_of(p) as fleet, aclosing(fleet.follow_all()) as rows:
            await p.apply([*patched_from_outside(), samples.topology("c", version="v1.34.1")])
            await until(rows, lambda known: blames(known, "does not exist"))
            p.extension.fault = REFUSED  # type: ignore[attr-defined]
            await p.client.create(config())
            await until(rows, lambda known: blames(known, "fails") or blames(known, "was never discovered"))

    run_virtual(main())
