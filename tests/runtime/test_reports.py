"""Reports: which changes are, and when a controller sends what its passes left."""

import asyncio
from datetime import timedelta

import pytest

from clusterwright.api.core import Cluster, ClusterStatus, Machine, MachineNodeReference, MachineStatus, ReplicaCounters
from clusterwright.api.core.shared import StatusVersion
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.runtime.errors import Conflict, NotFound
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.reports import DELAY, LIMIT, Reports, is_report

from .test_controller import Bench, virtual


def a_machine(*conditions, labels=None, **status):
    told = tuple(Condition(type=type, status=state, message=message) for type, state, message in conditions)
    return Machine(metadata=ObjectMeta(name="m", labels=labels or {}), status=MachineStatus(conditions=told, **status))


WAITING = a_machine(("Ready", "False", "waiting for a host"), ("Up", "True", ""))
UP = ("Up", "True", "")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(WAITING, True, id="nothing"),
        pytest.param(a_machine(("Ready", "False", "waiting for a Node"), UP), True, id="message"),
        pytest.param(a_machine(("Ready", "Unknown", "who knows"), UP), True, id="false-to-unknown"),
        pytest.param(a_machine(("Ready", "False", ""), UP, ("Paused", "False", "")), True, id="one-more-that-is-false"),
        pytest.param(a_machine(("Ready", "False", ""), UP, observed_generation=2), True, id="generation"),
        pytest.param(a_machine(("Ready", "True", ""), UP), False, id="becomes-true"),
        pytest.param(a_machine(("Ready", "False", "")), False, id="ceases-to-be-true"),
        pytest.param(a_machine(("Ready", "False", ""), UP, phase="Provisioned"), False, id="phase"),
        pytest.param(a_machine(("Ready", "False", ""), UP, node_ref=MachineNodeReference(name="n")), False, id="node"),
        pytest.param(a_machine(("Ready", "False", ""), UP, labels={"a": "b"}), False, id="label"),
    ],
)
def test_changes_of_counts_and_messages_are_only_reports(after, expected):
    assert is_report(WAITING, after) is expected


def test_counts_are_reports_wherever_in_the_status_they_are():
    before, after = (Cluster(status=ClusterStatus(workers=workers)) for workers in (None, ReplicaCounters(replicas=3, ready_replicas=0)))

    assert is_report(before, after)
    assert not is_report(before, Cluster(status=ClusterStatus(workers=ReplicaCounters(replicas=3), phase="Provisioned")))


def test_counts_in_a_list_are_reports_and_a_new_item_is_not():
    def counting(**replicas):
        versions = tuple(StatusVersion(version=version, replicas=number) for version, number in replicas.items())
        return Cluster(status=ClusterStatus(workers=ReplicaCounters(versions=versions)))

    assert is_report(counting(v1=1), counting(v1=2))
    assert not is_report(counting(v1=1), counting(v1=1, v2=1))


class Leaving(Bench):
    """A bench whose passes leave what `leaves` says; `sent` tells what was sent, and how long after the beginning."""

    def __init__(self, *leaves, **options):
        super().__init__(**options)
        self.leaves, self.sent, self.failures = list(leaves), [], []

    async def begin(self, requeue=None):
        async def act(key):
            now = self.leaves.pop(0) if self.leaves else ()
            if isinstance(now, float):
                await asyncio.sleep(now)
                now = self.leaves.pop(0)
            if isinstance(now, Exception):
                raise now
            if now != "undecided":
                self.controller.reports.leave(key, [self._report(text) for text in now])
            return Result.after(timedelta(seconds=requeue)) if requeue else Result.await_change()

        await self.start(act)
        await asyncio.sleep(1)
        self.begun = asyncio.get_running_loop().time()
        return await self.make()

    def _report(self, text):
        async def send():
            if self.failures:
                raise self.failures.pop(0)
            self.sent.append((text, self.since))

        return send

    @property
    def since(self):
        return round(asyncio.get_running_loop().time() - self.begun, 2)

    def times(self):
        return [round(at - self.begun, 2) for _, at in self.passes]


@virtual
async def test_a_report_is_sent_after_a_moment_and_the_pass_comes_again_when_it_asked_for_it():
    bench = Leaving(["waiting"])
    await bench.begin(requeue=20)
    await asyncio.sleep(21)

    assert bench.sent == [("waiting", DELAY)]
    assert bench.times() == [0, 20]
    await bench.stop()


@virtual
async def test_the_next_pass_replaces_a_report_and_none_waits_longer_than_the_limit():
    bench = Leaving(*([f"step {n}"] for n in range(20)))
    key = await bench.begin()
    for _ in range(19):
        await asyncio.sleep(0.15)
        bench.controller.enqueue(key, "changed")
    await asyncio.sleep(2)

    assert bench.sent == [("step 6", LIMIT), ("step 13", 1.05 + LIMIT), ("step 19", 2.1 + LIMIT)]
    await bench.stop()


@virtual
async def test_passes_without_a_pause_do_not_keep_a_report_from_being_sent():
    steps = [part for n in range(10) for part in (0.3, [f"step {n}"])]
    bench = Leaving(*steps)
    key = await bench.begin()
    for _ in range(9):
        await asyncio.sleep(0.3)
        bench.controller.enqueue(key, "changed during the pass")
    await asyncio.sleep(5)

    assert bench.sent[0] == ("step 4", 1.5)  # the first was left after 0.3 s, and a pass ran when the limit was over
    assert bench.sent[-1][0] == "step 9"
    await bench.stop()


@virtual
async def test_a_pass_without_reports_drops_earlier_reports():
    bench = Leaving(["waiting"], [])
    key = await bench.begin()
    await asyncio.sleep(0.2)
    bench.controller.enqueue(key, "changed")
    await asyncio.sleep(5)

    assert bench.sent == []
    await bench.stop()


@pytest.mark.parametrize("outcome", ["undecided", Conflict("no")])
def test_a_pass_that_ends_early_keeps_earlier_reports(outcome):
    @virtual
    async def scenario():
        bench = Leaving(["waiting"], outcome, "undecided")
        key = await bench.begin()
        await asyncio.sleep(0.2)
        bench.controller.enqueue(key, "changed")
        await asyncio.sleep(5)

        assert bench.sent == [("waiting", DELAY)]
        await bench.stop()

    scenario()


@virtual
async def test_nothing_is_sent_while_a_pass_over_the_key_runs():
    bench = Leaving(["old"], 3.0, ["new"])
    key = await bench.begin()
    await asyncio.sleep(0.2)
    bench.controller.enqueue(key, "changed")
    await asyncio.sleep(10)

    assert bench.sent == [("new", 3.2)]  # the old one should have been told by then
    await bench.stop()


@virtual
async def test_a_report_that_fails_leads_to_a_new_pass_with_backoff():
    bench = Leaving(*[["waiting"]] * 20)
    bench.failures = [Conflict("changed meanwhile")] * 10
    await bench.begin()
    await asyncio.sleep(60)

    assert [text for text, _ in bench.sent] == ["waiting"]
    pauses = [later - sooner for sooner, later in zip(bench.times(), bench.times()[1:], strict=False)]
    assert len(pauses) == 10
    assert bench.controller.queue.failures(_key()) == 0
    assert pauses[0] < 2 * DELAY < 2 < pauses[-1]
    await bench.stop()


def _key():
    from clusterwright.api.meta import ObjectKey

    return ObjectKey("default", "ada")


@virtual
async def test_pending_reports_are_sent_at_a_graceful_stop():
    bench = Leaving(["waiting"])
    await bench.begin()
    await asyncio.sleep(0.1)
    await bench.stop()

    assert bench.sent == [("waiting", 0.1)]


@virtual
async def test_pending_reports_of_a_transferred_object_are_dropped():
    class Shards:
        def slot(self, *_):
            return 1

        def enter(self, slot):
            return False

        def leave(self, slot):
            return

    bench = Leaving(["waiting"])
    await bench.begin()
    await asyncio.sleep(0.1)
    bench.controller._shards = Shards()  # type: ignore[assignment]
    await asyncio.sleep(5)

    assert bench.sent == []
    assert bench.controller.reports.keys == ()
    await bench.stop()


@virtual
async def test_all_reports_are_attempted_and_a_deleted_object_is_not_a_failure():
    reports, sent = Reports(), []

    def report(error=None):
        async def send():
            sent.append(error)
            if error is not None:
                raise error

        return send

    reports.leave(_key(), [report(NotFound("gone")), report(Conflict("one")), report(Conflict("two")), report()])
    with pytest.raises(ExceptionGroup) as caught:
        await reports.send(_key())
    assert len(sent) == 4
    assert [str(e) for e in caught.value.exceptions] == ["one", "two"]

    await reports.send(_key())
    assert len(sent) == 4
