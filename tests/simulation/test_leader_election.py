"""Two processes, one lease, all faults: work goes on, and never in both at once."""

import asyncio

import pytest

from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.reconcile import Result
from clusterwright.simulation.faults import ALL_FAULTS
from clusterwright.simulation.sample import NAMESPACE, Parent, ParentSpec, crds
from clusterwright.simulation.world import Violation, run

LEASE = ObjectKey(NAMESPACE, "leader")


def scenario(*, elect=True):
    async def play(world):
        for crd in crds():
            await world.client.create(crd)
        working, passes = {}, []

        def program(name):
            async def main(transport, clock, random):
                options = Options(leader_election=LEASE if elect else None, identity=f"{name}-{random.getrandbits(32)}")
                manager = Manager(transport, clock=clock, random=random, options=options)

                class Slow:
                    async def reconcile(self, key):
                        others = [other for other in working if other != name]
                        if others:
                            world.violations.append(f"{name} and {others[0]} worked at once")
                        working[name] = working.get(name, 0) + 1
                        passes.append(name)
                        try:
                            await asyncio.sleep(random.uniform(0, 8))
                        finally:
                            working[name] -= 1
                            if not working[name]:
                                del working[name]
                        return Result.await_change()

                manager.add_controller("slow", Parent, lambda controller: Slow())
                await manager.run()

            return main

        for name in ("one", "two"):
            world.start(name, program(name))
        for n in range(40):
            await world.clock.sleep(world.random.uniform(0, 20))
            await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=f"p{n}"), spec=ParentSpec(children=n)))
        world.calm()
        before = len(passes)
        await world.clock.sleep(100)
        await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name="last")))
        await world.clock.sleep(30)
        if len(passes) <= before:
            raise Violation("nobody leads")
        if world.violations:
            raise Violation(world.violations[0])

    return play


def test_never_two_leaders_at_work_and_always_one_in_the_end():
    outcomes = [run(seed, scenario(), ALL_FAULTS.scaled(1.5)) for seed in range(12)]

    assert [(o.seed, str(o.violation)) for o in outcomes if o.violation] == []
    assert sum(o.crashes for o in outcomes) > 10


@pytest.mark.soak
def test_never_two_leaders_at_work_in_many_runs():
    outcomes = [run(seed, scenario(), ALL_FAULTS.scaled(1.5)) for seed in range(12, 200)]

    assert [(o.seed, str(o.violation)) for o in outcomes if o.violation] == []


def test_without_election_the_same_runs_show_both_at_work():
    assert any(run(seed, scenario(elect=False), ALL_FAULTS.scaled(1.5)).violation for seed in range(3))
