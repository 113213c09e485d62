"""A leader that stands still for a minute, under load: when it goes on, others lead, and it writes nothing more."""

from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.reconcile import Result
from clusterwright.simulation.sample import NAMESPACE, Parent, ParentSpec, crds
from clusterwright.simulation.world import Violation, run

LEASE = ObjectKey(NAMESPACE, "leader")
PARENTS = 8


class AlwaysOpen(Fence):
    """What there was before fences."""

    def check(self, method):
        pass


def scenario(fence=Fence, pauses=2):
    async def play(world):
        world.allow_pauses()
        for crd in crds():
            await world.client.create(crd)
        for n in range(PARENTS):
            await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=f"p{n}"), spec=ParentSpec(children=n)))
        leads = {}

        def program(name):
            async def main(transport, clock, random):
                options = Options(leader_election=LEASE, identity=f"{name}-{random.getrandbits(32)}", fence=fence(clock))
                manager = Manager(transport, clock=clock, random=random, options=options)

                class Busy:
                    async def reconcile(self, key):
                        leads[name] = clock.monotonic()
                        await clock.sleep(random.uniform(0.2, 1.5))
                        stamp = {"metadata": {"annotations": {"by": f"{name}/{clock.monotonic():.3f}"}}}
                        await manager.client.patch(Parent, key, stamp)
                        return Result.await_change()

                manager.add_controller("busy", Parent, lambda controller: Busy())
                await manager.run()

            return main

        processes = {name: world.start(name, program(name)) for name in ("one", "two")}
        await world.clock.sleep(10)
        for _ in range(pauses):
            leader = max(leads, key=lambda name: leads[name])
            life = f"{leader}.{processes[leader].starts} "
            processes[leader].pause.begin()
            await world.clock.sleep(60)
            other = max(leads, key=lambda name: leads[name])
            if other == leader:
                raise Violation("nobody took over")
            resumed = world.clock.monotonic()
            processes[leader].pause.end()
            await world.clock.sleep(30)
            for line in world.trace.lines:
                at, _, what = line.partition(" ")
                if float(at) > resumed - 0.001 and what.startswith((f"{life}PATCH", f"{life}POST", f"{life}PUT")) and "/leases" not in what:
                    raise Violation(f"resumed at {resumed:.3f}: {line}")

    return play


def test_a_process_that_lost_its_lease_never_writes_again():
    outcomes = [run(seed, scenario()) for seed in range(3)]

    assert [(o.seed, str(o.violation)) for o in outcomes if o.violation] == []
    assert all(o.crashes >= 2 for o in outcomes)  # each time it ended, and came back to wait


def test_without_a_fence_the_same_runs_show_its_writes():
    found = (run(seed, scenario(AlwaysOpen, pauses=1)).violation for seed in range(3))

    assert any(violation is not None and "PATCH" in str(violation) for violation in found)


def hand_over(world_seed):
    took = {}

    async def play(world):
        for crd in crds():
            await world.client.create(crd)
        await world.client.create(Parent(metadata=ObjectMeta(namespace=NAMESPACE, name="p")))
        passes = []

        def program(name):
            async def main(transport, clock, random):
                options = Options(leader_election=LEASE, identity=f"{name}-{random.getrandbits(32)}", grace_period=2.0)
                manager = Manager(transport, clock=clock, random=random, options=options)

                class Long:
                    async def reconcile(self, key):
                        passes.append((manager, clock.monotonic()))
                        await clock.sleep(60)  # longer than anybody would wait for it
                        return Result.await_change()

                manager.add_controller("long", Parent, lambda controller: Long())
                await manager.run()

            return main

        for name in ("one", "two"):
            world.start(name, program(name))
        await world.clock.sleep(20)
        leader = passes[-1][0]
        told = world.clock.monotonic()
        leader.stop()
        await world.clock.sleep(10)
        follower, began = passes[-1]
        if follower is leader:
            raise Violation("nobody took over")
        took["seconds"] = began - told

    outcome = run(world_seed, play)
    assert outcome.violation is None
    return took["seconds"]


def test_a_leader_that_is_told_to_stop_hands_over_within_five_seconds_though_a_pass_is_under_way():
    assert max(hand_over(seed) for seed in range(5)) < 5
