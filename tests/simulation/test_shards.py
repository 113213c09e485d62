"""Three processes share the work, all faults: everything is worked on, nothing by two at once, and each has its share."""

import asyncio
from collections import Counter
from random import Random

import pytest

from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime import shards
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.leases import LEASE
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.shards import SETTLED_LOOK, SLOTS, ShardOptions, preferred, slot_of
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.sample import NAMESPACE, Parent, ParentSpec, crds
from clusterwright.simulation.world import START, Violation, run

GROUP = ObjectKey(NAMESPACE, "shards")
NAMES = ("one", "two", "three")


def family(kind, key, raw):
    """Parents are kept together in pairs: p0 and p1, p2 and p3."""
    return f"{key.namespace}/{int(key.name.removeprefix('p')) // 2}"


def share_out(world, options=None):
    """Three processes whose passes take a while, and what they are at: by family, who; and who made each pass."""
    working, passes = {}, []

    def program(name):
        async def main(transport, clock, random):
            share = ShardOptions(group=GROUP, belongs_to=family, identity=name)
            manager = Manager(transport, clock=clock, random=random, options=Options(shards=share, grace_period=2.0, **(options or {})))

            class Slow:
                async def reconcile(self, key):
                    group = family(None, key, b"")
                    others = {other for other, _ in working.get(group, ())} - {name}
                    if others:
                        world.violations.append(f"{world.clock.monotonic():.1f}: {name} and {others} worked on {group} at once")
                    mark = (name, key)
                    working.setdefault(group, set()).add(mark)
                    passes.append((name, key))
                    try:
                        await asyncio.sleep(random.uniform(0, 8))
                    finally:
                        working[group].discard(mark)
                    return Result.await_change()

            manager.add_controller("slow", Parent, lambda controller: Slow())
            world.managers[name] = manager
            await manager.run()

        return main

    world.managers = {}
    processes = {name: world.start(name, program(name)) for name in NAMES}
    return processes, passes


async def touch(world, n, text):
    await world.client.patch(Parent, ObjectKey(NAMESPACE, f"p{n}"), {"metadata": {"annotations": {"touched": text}}})


def scenario(count=40):
    async def play(world):
        for crd in crds():
            await world.client.create(crd)
        _, passes = share_out(world)
        for n in range(count):
            await world.clock.sleep(world.random.uniform(0, 10))
            await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=f"p{n}"), spec=ParentSpec(children=n)))
            await touch(world, world.random.randrange(n + 1), str(n))
        world.calm()
        await world.clock.sleep(120)
        before = len(passes)
        for n in range(count):
            await touch(world, n, "last")

        async def left_behind():
            missing = {f"p{n}" for n in range(count)} - {key.name for _, key in passes[before:]}
            return f"nobody works on {sorted(missing)}" if missing else ""

        await world.until_nothing(left_behind, within=900)  # a watch that went silent is given up after ten minutes
        if world.violations:
            raise Violation(world.violations[0])

    return play


def test_never_two_at_once_and_nothing_left_behind():
    outcomes = [run(seed, scenario(), ALL_FAULTS) for seed in range(6)]

    assert [(o.seed, str(o.violation)) for o in outcomes if o.violation] == []
    assert sum(o.crashes for o in outcomes) > 10


@pytest.mark.soak
def test_never_two_at_once_in_many_runs():
    outcomes = [run(seed, scenario(), ALL_FAULTS.scaled(1 + seed % 3 / 2)) for seed in range(400)]

    assert [(o.seed, str(o.violation)) for o in outcomes if o.violation] == []


def test_where_slots_are_given_up_under_the_hands_of_a_pass_the_runs_show_it(monkeypatch):
    monkeypatch.setattr(shards.Shards, "enter", lambda self, slot: slot in self.held)
    monkeypatch.setattr(shards.Shards, "leave", lambda self, slot: None)

    assert any("at once" in str(run(seed, scenario(), ALL_FAULTS).violation) for seed in range(6))


def shares(passes, since):
    return Counter(name for name, _ in dict.fromkeys(passes[since:]))


def come_and_go(count=60):
    async def play(world):
        for crd in crds():
            await world.client.create(crd)
        for n in range(count):
            await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=f"p{n}"), spec=ParentSpec(children=n)))
        processes, passes = share_out(world)
        await world.clock.sleep(60)

        async def round():
            before = len(passes)
            for n in range(count):
                await touch(world, n, str(world.clock.monotonic()))
            await world.clock.sleep(20)
            if len({key for _, key in passes[before:]}) != count:
                raise Violation("not everything was worked on")
            return shares(passes, before)

        world.outcomes = [await round()]
        # one is told to stop: the others have all of it within seconds
        await processes["one"].end()
        world.managers["one"].stop()
        died = world.clock.monotonic()
        await world.clock.sleep(20)
        world.outcomes.append(await round())
        world.outcomes.append(died)
        if world.violations:
            raise Violation(world.violations[0])

    return play


def test_each_has_its_share_and_the_dead_ones_is_taken_over_within_its_lease_time():
    seen = {}

    async def play(world):
        try:
            await come_and_go()(world)
        finally:
            seen["rounds"] = world.outcomes

    outcome = run(7, play, NO_FAULTS)

    assert outcome.violation is None
    first, second, _ = seen["rounds"]
    assert set(first) == set(NAMES)
    assert max(first.values()) < 40  # of 60
    assert set(second) == {"two", "three"}


def clean_stop():
    async def play(world):
        for crd in crds():
            await world.client.create(crd)
        for n in range(20):
            await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=f"p{n}"), spec=ParentSpec(children=n)))
        _, passes = share_out(world)
        await world.clock.sleep(60)
        theirs = {key for name, key in passes if name == "one"}
        stopped, before = world.clock.monotonic(), len(passes)
        world.managers["one"].stop()
        await world.until(lambda: _all_of(theirs, passes, before), within=5, what="what one worked on is taken over by others")
        if world.violations:
            raise Violation(world.violations[0])
        assert world.clock.monotonic() - stopped <= 5

    async def _all_of(theirs, passes, before):
        return theirs <= {key for name, key in passes[before:] if name != "one"}

    return play


def test_a_stopping_member_hands_over_within_five_seconds():
    assert [str(o.violation) for seed in range(3) if (o := run(seed, clean_stop())).violation] == []


def test_one_more_member_moves_only_its_share():
    few, more = [f"m{n}" for n in range(4)], [f"m{n}" for n in range(5)]

    moved = [(preferred(s, few), preferred(s, more)) for s in range(SLOTS) if preferred(s, few) != preferred(s, more)]

    assert {new for _, new in moved} == {"m4"}
    assert SLOTS / 5 / 2 < len(moved) < SLOTS / 5 * 2
    assert max(Counter(preferred(s, more) for s in range(SLOTS)).values()) < SLOTS / 5 * 2


def test_slots_are_the_same_everywhere():
    assert [slot_of(f"default/c{n}") for n in range(4)] == [slot_of(f"default/c{n}") for n in range(4)]
    assert len({slot_of(f"default/c{n}") for n in range(1000)}) > SLOTS * 0.9


class Counting(InProcessTransport):
    """Counts what is asked, but for renewals."""

    asked = 0

    async def send(self, request):
        self.asked += request.method == "GET"
        return await super().send(request)


def test_at_rest_members_ask_for_next_to_nothing_and_a_table_that_was_deleted_is_made_again():
    counts = []

    async def main():
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        ways = [Counting(server) for _ in NAMES]
        shares = [ShardOptions(group=GROUP, belongs_to=family, identity=name) for name in NAMES]
        managers = [
            Manager(way, clock=clock, random=Random(n), options=Options(shards=share))
            for n, (way, share) in enumerate(zip(ways, shares, strict=True))
        ]
        running = [asyncio.create_task(manager.run()) for manager in managers]
        await clock.sleep(120)
        for way in ways:
            way.asked = 0
        await clock.sleep(600)
        counts.extend(way.asked for way in ways)
        client = RestClient(InProcessTransport(server), clock=clock)
        await client.delete(LEASE, GROUP)
        await clock.sleep(SETTLED_LOOK + 15)
        held = [slot for manager in managers for slot in manager._shards.held]
        assert sorted(held) == list(range(SLOTS))
        for manager in managers:
            manager.stop()
        await asyncio.gather(*running)
        server.close()

    run_virtual(main())
    assert max(counts) < 10 * 10  # ten a minute
