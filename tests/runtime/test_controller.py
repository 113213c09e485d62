"""Controllers and the manager, on our API server in virtual time."""

import asyncio
import itertools
from datetime import timedelta
from random import Random

import pytest

from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference
from clusterwright.api.scheme import gvk_of
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.dynamic import OwnerWatches
from clusterwright.runtime.errors import ConnectionFailed, NoKindMatch, NotFound, Terminal, TooManyRequests
from clusterwright.runtime.leases import LEASE, LeadershipLost, LeaseTimes
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.mapping import by_label, itself, owners
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Result, Watch
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.sample import GROUP, Child, Parent, ParentSpec, crds
from clusterwright.simulation.world import START

from .conftest import Recording

PARENT = gvk_of(Parent)


class Bench:
    """A server, a user, and a manager whose one controller calls `reconcile`."""

    def __init__(self, server=None, **options):
        self.clock = LoopClock(START)
        self.server = server or ApiServer(now=self.clock.now, random=Random(1))
        self.user = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.transport = Recording(InProcessTransport(self.server))
        self.manager = Manager(self.transport, clock=self.clock, random=Random(2), options=Options(**options))
        self.passes = []

    async def start(self, reconcile=None, **wiring):
        if not await self.user.list(gvk_of(_crd()), fields=f"metadata.name=parents.{GROUP}"):
            for crd in crds():
                await self.user.create(crd)
        self.controller = self.manager.add_controller("test", Parent, lambda controller: Reconciler(self, reconcile), **wiring)
        self.task = asyncio.ensure_future(self.manager.run())
        return self

    async def stop(self):
        self.manager.stop()
        await self.task

    async def make(self, name="ada", **spec):
        await self.user.create(Parent(metadata=ObjectMeta(namespace="default", name=name), spec=ParentSpec(**spec)))
        return ObjectKey("default", name)


def _crd():
    from clusterwright.api.kubernetes import CustomResourceDefinition

    return CustomResourceDefinition


class Reconciler:
    def __init__(self, bench, act):
        self.bench, self.act = bench, act

    async def reconcile(self, key):
        self.bench.passes.append((key.name, asyncio.get_running_loop().time()))
        return (await self.act(key)) if self.act else Result.await_change()


def virtual(test):
    def run():
        run_virtual(test())

    run.__name__ = test.__name__
    return run


def names(bench):
    return [name for name, _ in bench.passes]


@virtual
async def test_objects_that_exist_and_objects_that_change_are_reconciled_once_each():
    bench = Bench()
    await bench.start()
    await asyncio.sleep(1)
    await bench.make("ada")
    await asyncio.sleep(1)
    await bench.user.patch(PARENT, ObjectKey("default", "ada"), {"spec": {"children": 2}})
    await asyncio.sleep(1)
    await bench.user.delete(PARENT, ObjectKey("default", "ada"))
    await asyncio.sleep(1000)

    assert names(bench) == ["ada"] * 3
    await bench.stop()


@virtual
async def test_without_a_resync_nothing_is_reconciled_by_time_alone():
    bench = await Bench(resync=0.0).start()
    await bench.make()
    await asyncio.sleep(100)
    bench.passes.clear()

    await asyncio.sleep(24 * 3600)

    assert bench.passes == []
    await bench.stop()


@virtual
async def test_without_a_resync_a_pass_that_asks_for_it_comes_again_and_only_the_soonest_vote_counts():
    async def act(key):
        return Result.soonest(None, timedelta(seconds=40), timedelta(seconds=20)) if len(bench.passes) == 1 else Result.await_change()

    bench = await Bench(resync=0.0).start(act)
    await bench.make()
    await asyncio.sleep(1000)

    (_, first), (_, second) = bench.passes
    assert second - first == 20
    await bench.stop()


@virtual
async def test_any_exception_causes_a_retry_with_backoff_and_other_keys_continue():
    async def act(key):
        if key.name == "bad":
            raise [ValueError("bug"), ConnectionFailed("down"), KeyError("x")][len(bench.passes) % 3]
        return Result.await_change()

    bench = await Bench().start(act)
    await bench.make("bad")
    await bench.make("good")
    await asyncio.sleep(60)

    assert names(bench).count("good") == 1
    times = [at for name, at in bench.passes if name == "bad"]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[0] == pytest.approx(0.005)
    assert 10 <= len(times) <= 16
    assert bench.manager.metrics.panics.value("test") > 0
    assert bench.manager.metrics.errors.value("test") == len(times)
    await bench.stop()


@virtual
async def test_without_a_resync_error_groups_count_by_their_members():
    groups = [
        ExceptionGroup("both", [ConnectionFailed("down"), TooManyRequests("slowly", {}, 90.0)]),
        ExceptionGroup("mixed", [ConnectionFailed("down"), ValueError("bug")]),
        ExceptionGroup("partly", [Terminal("no use"), ConnectionFailed("down")]),
        ExceptionGroup("for good", [Terminal("no use"), ExceptionGroup("inner", [Terminal("nor this")])]),
    ]

    async def act(key):
        raise groups[len(bench.passes) - 1]

    bench = await Bench(resync=0.0).start(act)
    await bench.make()
    await asyncio.sleep(5000)

    times = [at for _, at in bench.passes]
    assert len(times) == 4  # all were retried but the last
    assert times[1] - times[0] == pytest.approx(90.0)
    metrics = bench.manager.metrics
    assert [m.value("test") for m in (metrics.errors, metrics.panics, metrics.terminal)] == [4, 1, 1]
    await bench.stop()


@virtual
async def test_without_a_resync_a_terminal_failure_is_not_retried_until_something_changes():
    async def act(key):
        raise Terminal("no use")

    bench = await Bench(resync=0.0).start(act)
    key = await bench.make()
    await asyncio.sleep(5000)
    assert len(bench.passes) == 1

    await bench.user.patch(PARENT, key, {"spec": {"children": 2}})
    await asyncio.sleep(10)
    assert len(bench.passes) == 2
    await bench.stop()


@virtual
async def test_a_pass_that_hangs_is_cut_off_and_run_again():
    async def act(key):
        if len(bench.passes) == 1:
            await asyncio.Event().wait()
        return Result.await_change()

    bench = await Bench(reconcile_deadline=30.0).start(act)
    await bench.make()
    await asyncio.sleep(100)

    (_, first), (_, second) = bench.passes
    assert second - first == pytest.approx(30, abs=0.1)
    assert bench.manager.metrics.timeouts.value("test") == 1
    await bench.stop()


@virtual
async def test_a_pass_that_cancels_itself_does_not_kill_its_worker():
    async def act(key):
        if len(bench.passes) < 3:
            raise asyncio.CancelledError
        return Result.await_change()

    bench = await Bench().start(act, concurrency=1)
    await bench.make()
    await asyncio.sleep(100)

    assert len(bench.passes) == 3
    await bench.stop()


@virtual
async def test_a_worker_that_is_cancelled_while_its_pass_fails_ends():
    """A TaskGroup that is cancelled and fails at once tells of the failure only."""
    begun = asyncio.Event()

    async def fail_when_cancelled():
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ConnectionFailed("closed at the same time") from None

    async def act(key):
        if not begun.is_set():
            begun.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(fail_when_cancelled())
        return Result.await_change()

    bench = await Bench().start(act, concurrency=1)
    await bench.make()
    await begun.wait()
    bench.task.cancel()

    done, _ = await asyncio.wait([bench.task], timeout=3600)

    assert done
    assert len(bench.passes) == 1


@virtual
async def test_one_key_is_never_reconciled_twice_at_once_and_different_keys_are():
    running, most = {}, []

    async def act(key):
        assert key not in running
        running[key] = None
        most.append(len(running))
        await asyncio.sleep(5)
        del running[key]
        return Result.await_change()

    bench = await Bench().start(act, concurrency=3)
    for n in range(6):
        await bench.make(f"p{n}")
    for n in range(20):
        await asyncio.sleep(1)
        await bench.user.patch(PARENT, ObjectKey("default", f"p{n % 2}"), {"spec": {"children": n}})
    await asyncio.sleep(100)

    assert max(most) == 3
    await bench.stop()


@virtual
async def test_children_wake_their_owner_by_old_and_new_state():
    bench = await Bench().start(watches=(Watch(Child, owners(GROUP, "Parent")),))
    await asyncio.sleep(1)

    def child(owner):
        return {"ownerReferences": [{"apiVersion": f"{GROUP}/v1", "kind": "Parent", "name": owner, "uid": f"u-{owner}"}]}

    await bench.user.create(
        {"apiVersion": f"{GROUP}/v1", "kind": "Child", "metadata": {"namespace": "default", "name": "c", **child("ada")}}
    )
    await asyncio.sleep(1)
    await bench.user.patch(gvk_of(Child), ObjectKey("default", "c"), {"metadata": child("bob")})
    await asyncio.sleep(1)
    await bench.user.delete(Child, ObjectKey("default", "c"))
    await asyncio.sleep(1)

    assert names(bench)[0] == "ada"
    assert sorted(names(bench)[1:3]) == ["ada", "bob"]
    assert names(bench)[3:] == ["bob"]
    await bench.stop()


@virtual
async def test_changes_that_settle_first_are_seen_by_one_pass_and_nothing_else_waits_for_them():
    bench = Bench()
    await bench.start(watches=(Watch(Child, owners(GROUP, "Parent"), settle=0.5),))
    key = await bench.make()
    await asyncio.sleep(10)
    uid = (await bench.user.get(Parent, key)).metadata.uid
    owner = OwnerReference(api_version=f"{GROUP}/v1", kind="Parent", name=key.name, uid=uid)
    bench.passes.clear()

    begun = asyncio.get_running_loop().time()
    for number in range(4):
        await bench.user.create(Child(metadata=ObjectMeta(namespace="default", name=f"c{number}", owner_references=(owner,))))
        await asyncio.sleep(0.1)
    await asyncio.sleep(10)

    assert [round(at - begun, 1) for _, at in bench.passes] == [0.5]
    await bench.user.create(Child(metadata=ObjectMeta(namespace="default", name="late", owner_references=(owner,))))
    await bench.user.patch(Parent, key, {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(0.1)
    assert len(bench.passes) == 2
    await bench.stop()


@virtual
async def test_predicates_keep_changes_away_and_one_that_fails_lets_them_through():
    bench = await Bench().start(when=changed(lambda p: p.spec.children))
    key = await bench.make(children=1)
    await asyncio.sleep(1)
    await bench.user.patch(PARENT, key, {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(1)
    assert len(bench.passes) == 1
    await bench.user.patch(PARENT, key, {"spec": {"children": 2}})
    await asyncio.sleep(1)
    assert len(bench.passes) == 2
    await bench.stop()

    failing = await Bench().start(when=lambda old, new: 1 / 0)
    await failing.make()
    await asyncio.sleep(1)
    assert len(failing.passes) == 1
    await failing.stop()


@virtual
async def test_a_mapper_that_fails_is_tried_again_so_that_no_change_is_lost():
    tries = []

    async def flaky(obj, reader):
        tries.append(obj)
        if len(tries) < 4:
            raise ConnectionFailed("down")
        return (ObjectKey("default", "ada"),)

    bench = await Bench().start(watches=(Watch(Child, flaky),))
    await asyncio.sleep(1)
    await bench.user.create(Child(metadata=ObjectMeta(namespace="default", name="c")))
    await asyncio.sleep(30)

    assert names(bench) == ["ada"]
    await bench.stop()


@virtual
async def test_kinds_learned_at_run_time_are_watched_once_and_an_unknown_one_can_be_tried_again():
    bench = await Bench().start()
    await asyncio.sleep(1)
    watch = Watch(gvk_of(Child), owners(GROUP, "Parent"))
    await bench.controller.watch(watch)
    await bench.controller.watch(watch)
    await asyncio.sleep(1)
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Parent", "name": "ada", "uid": "u"}
    await bench.user.create(
        {"apiVersion": f"{GROUP}/v1", "kind": "Child", "metadata": {"namespace": "default", "name": "c", "ownerReferences": [owner]}}
    )
    await asyncio.sleep(1)
    assert names(bench) == ["ada"]

    unknown = Watch(type(PARENT)("nowhere.dev", "v1", "Thing"), owners(GROUP, "Parent"))
    for _ in range(2):
        with pytest.raises(NoKindMatch):
            await bench.controller.watch(unknown)
    await bench.stop()


@virtual
async def test_objects_of_learned_kinds_wake_their_owners_unless_they_are_paused():
    bench = await Bench().start()
    await asyncio.sleep(1)
    dynamic, by_also = OwnerWatches(bench.controller), by_label("also")
    for _ in range(2):
        await dynamic.ensure(gvk_of(Child), by_also)
    await asyncio.sleep(1)

    async def child(name, **metadata):
        owners = [
            {"apiVersion": f"{GROUP}/v9", "kind": "Parent", "name": name, "uid": "u"},
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v"},
        ]
        metadata = {"namespace": "default", "name": f"of-{name}", "ownerReferences": owners, **metadata}
        await bench.user.create({"apiVersion": f"{GROUP}/v1", "kind": "Child", "metadata": metadata})

    await child("ada")
    await child("bob", annotations={"cluster.x-k8s.io/paused": ""})
    await child("eve", labels={"also": "dan"})
    await asyncio.sleep(1)
    assert sorted(names(bench)) == ["ada", "dan", "eve"]
    bench.passes.clear()
    await bench.user.patch(gvk_of(Child), ObjectKey("default", "of-bob"), {"metadata": {"annotations": None}})
    await bench.user.delete(gvk_of(Child), ObjectKey("default", "of-ada"))
    await asyncio.sleep(1)
    assert sorted(names(bench)) == ["ada", "bob"]
    await bench.stop()


@virtual
async def test_mappings_by_label_and_to_itself():
    async def both(obj, reader):
        return [*await by_label("owner")(obj, reader), *await itself(obj, reader)]

    bench = await Bench().start(watches=(Watch(Child, both),))
    await asyncio.sleep(1)
    await bench.user.create(Child(metadata=ObjectMeta(namespace="default", name="c", labels={"owner": "ada"})))
    await bench.user.create(Child(metadata=ObjectMeta(namespace="default", name="d")))
    await asyncio.sleep(1)

    assert names(bench) == ["ada", "c", "d"]
    await bench.stop()


@virtual
async def test_the_watch_filter_keeps_other_objects_away():
    bench = await Bench(watch_filter="mine").start()
    await bench.make("theirs")
    labels = {"cluster.x-k8s.io/watch-filter": "mine"}
    await bench.user.create(Parent(metadata=ObjectMeta(namespace="default", name="ours", labels=labels)))
    await asyncio.sleep(5)

    assert names(bench) == ["ours"]
    await bench.stop()


@virtual
async def test_one_namespace_only():
    bench = await Bench(namespace="kube-system").start()
    await bench.make("theirs")
    await bench.user.create(Parent(metadata=ObjectMeta(namespace="kube-system", name="ours")))
    await asyncio.sleep(5)

    assert names(bench) == ["ours"]
    # outside the watched namespace reads are live, not empty
    assert await bench.manager.client.find(Parent, ObjectKey("default", "theirs")) is not None
    assert len(await bench.manager.client.list(Parent)) == 2
    await bench.stop()


@virtual
async def test_a_write_is_seen_by_the_next_read_and_costs_no_further_request():
    bench = await Bench().start()
    key = await bench.make(children=1)
    await asyncio.sleep(5)
    client = bench.manager.client
    bench.transport.sent.clear()

    for n in range(2, 10):
        await client.patch(PARENT, key, {"spec": {"children": n}})
        assert (await client.get(Parent, key)).spec.children == n
    await client.create(Child(metadata=ObjectMeta(namespace="default", name="c")))
    await client.delete(Parent, key)
    assert await client.find(Parent, key) is None
    assert await client.list(Parent) == []

    assert len(bench.transport.sent) == 10
    await bench.stop()


@virtual
async def test_cache_and_server_report_a_missing_object_in_the_same_words():
    bench = await Bench().start(watches=(Watch(Child, owners(GROUP, "Parent")),))
    await asyncio.sleep(5)
    told = []
    for reader in (bench.manager.client, bench.manager.client.live):
        with pytest.raises(NotFound) as caught:
            await reader.get(Parent, ObjectKey("default", "nobody"))
        told.append((str(caught.value), caught.value.reason, dict(caught.value.status["details"])))

    assert told[0] == told[1]
    assert bench.transport.sent[-1].path.endswith("/parents/nobody")
    await bench.stop()


@virtual
async def test_after_a_write_without_an_answer_reads_are_live_until_a_new_list():
    bench = await Bench().start()
    key = await bench.make(children=1)
    await asyncio.sleep(5)
    client = bench.manager.client

    async def lose_the_answer(request):
        if request.method == "PATCH":
            await bench.transport.inner.send(request)
            raise ConnectionFailed("reset")

    bench.transport.before = lose_the_answer
    with pytest.raises(ConnectionFailed):
        await client.patch(PARENT, key, {"spec": {"children": 7}})
    assert (await client.get(Parent, key)).spec.children == 7  # live
    await asyncio.sleep(5)
    bench.transport.sent.clear()
    assert (await client.get(Parent, key)).spec.children == 7
    assert bench.transport.sent == []  # from the cache again
    await bench.stop()


@virtual
async def test_without_a_resync_an_idle_manager_sends_nothing_but_renewals_of_lease_and_watches():
    bench = Bench(leader_election=ObjectKey("default", "lease"), identity="me", resync=0.0)
    for crd in crds():
        await bench.user.create(crd)
    for n in range(1000):
        await bench.make(f"p{n}")
    await bench.start(watches=(Watch(Child, owners(GROUP, "Parent")),))
    await asyncio.sleep(60)
    assert len(bench.passes) == 1000
    bench.transport.sent.clear()
    bench.passes.clear()

    await asyncio.sleep(3600)

    kinds = {
        (r.method, "lease" if "/leases/" in r.path else "watch" if ("watch", "true") in r.query else r.path) for r in bench.transport.sent
    }
    assert kinds == {("PUT", "lease"), ("GET", "watch")}
    assert len([r for r in bench.transport.sent if r.method == "GET"]) <= 2 * 3600 / 300 + 2
    assert bench.passes == []
    await bench.stop()


@virtual
async def test_a_graceful_stop_lets_passes_finish_and_gives_the_lease_back():
    finished = []

    async def act(key):
        await asyncio.sleep(10)
        finished.append(key.name)
        return Result.await_change()

    bench = await Bench(leader_election=ObjectKey("default", "lease"), identity="me").start(act)
    await bench.make()
    await asyncio.sleep(3)
    await bench.make("late")
    await asyncio.sleep(3)
    await bench.stop()

    assert sorted(finished) == ["ada", "late"]
    lease = await bench.user.get(LEASE, ObjectKey("default", "lease"))
    assert lease.at("spec", "holderIdentity") == ""


@virtual
async def test_a_graceful_stop_does_not_wait_forever():
    async def act(key):
        await asyncio.sleep(1000)
        return Result.await_change()

    bench = await Bench(grace_period=20.0, reconcile_deadline=5000.0).start(act)
    await bench.make()
    await asyncio.sleep(5)
    started = asyncio.get_running_loop().time()
    await bench.stop()

    assert asyncio.get_running_loop().time() - started == pytest.approx(20)


@virtual
async def test_of_two_managers_one_leads_and_the_other_takes_over():
    first = await Bench(leader_election=ObjectKey("default", "lease"), identity="first").start()
    await asyncio.sleep(1)
    second = await Bench(first.server, leader_election=ObjectKey("default", "lease"), identity="second").start()
    await first.make()
    await asyncio.sleep(100)
    assert (names(first), names(second)) == (["ada"], [])
    assert second.manager.is_ready

    first.task.cancel()  # it dies without giving the lease back
    await asyncio.wait([first.task])
    await asyncio.sleep(12)
    assert names(second) == []
    await asyncio.sleep(10)
    assert names(second) == ["ada"]
    lease = await first.user.get(LEASE, ObjectKey("default", "lease"))
    assert (lease.at("spec", "holderIdentity"), lease.at("spec", "leaseTransitions")) == ("second", 1)
    await second.stop()


@virtual
async def test_a_leader_that_cannot_renew_stops_before_another_can_begin():
    bench = await Bench(leader_election=ObjectKey("default", "lease"), identity="me").start()
    await asyncio.sleep(10)

    async def cut_off(request):
        raise ConnectionFailed("partition")

    bench.transport.before = cut_off
    started = asyncio.get_running_loop().time()
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(3600):
            await bench.task

    assert caught.group_contains(LeadershipLost)
    assert asyncio.get_running_loop().time() - started <= LeaseTimes().renew_deadline + LeaseTimes().retry
    assert LeaseTimes().renew_deadline + LeaseTimes().retry < LeaseTimes().duration


@virtual
async def test_requests_are_paced():
    bench = Bench(qps=10.0, burst=5)
    await bench.start()
    key = await bench.make()
    await asyncio.sleep(60)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for n in range(25):
        await bench.manager.client.patch(PARENT, key, {"spec": {"children": n}})

    assert loop.time() - started == pytest.approx(2.0, abs=0.11)
    await bench.stop()


@virtual
async def test_an_error_of_a_part_ends_the_manager():
    bench = Bench()

    async def part():
        await asyncio.sleep(5)
        raise OSError("broken")

    bench.manager.add_part("part", part)
    await bench.start()
    with pytest.raises(BaseExceptionGroup) as caught:
        await bench.task
    assert caught.group_contains(OSError)
