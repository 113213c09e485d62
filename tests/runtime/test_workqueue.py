import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.workqueue import Backoff, Priority, ShutDown, WorkQueue
from clusterwright.simulation.loop import run_virtual

A, B, C = (ObjectKey("ns", name) for name in "abc")


def virtual(test):
    def run():
        run_virtual(test())

    run.__name__ = test.__name__
    return run


def now():
    return asyncio.get_running_loop().time()


async def take(queue):
    return (await queue.get()).key


@virtual
async def test_keys_come_in_order_and_once():
    queue = WorkQueue("q")
    for key in (A, B, A, A, C):
        queue.add(key)

    assert [await take(queue) for _ in range(3)] == [A, B, C]
    assert len(queue) == 0


@virtual
async def test_a_key_being_worked_on_comes_again_only_when_it_is_done():
    queue = WorkQueue("q")
    queue.add(A)
    await take(queue)
    queue.add(A, "one")
    queue.add(A, "two")
    queue.add(B)
    assert await take(queue) == B

    queue.done(A)

    again = await queue.get()
    assert (again.key, again.reasons) == (A, ("one", "two"))
    queue.done(A)
    queue.done(B)
    assert queue.is_idle


@virtual
async def test_low_priority_waits_but_is_not_starved():
    queue = WorkQueue("q")
    low = ObjectKey("ns", "low")
    queue.add(low, priority=Priority.LOW)
    order = []
    for n in range(40):
        queue.add(ObjectKey("ns", str(n)))
        order.append(await take(queue))
        queue.done(order[-1])

    assert order[0] != low
    assert low in order[:17]


@virtual
async def test_a_low_key_that_changes_is_promoted_and_comes_once():
    queue = WorkQueue("q")
    queue.add(A, priority=Priority.LOW)
    queue.add(B, priority=Priority.LOW)
    queue.add(B, "changed")

    assert [await take(queue), await take(queue)] == [B, A]
    assert len(queue) == 0


@virtual
async def test_of_several_delays_the_soonest_counts():
    queue = WorkQueue("q")
    queue.add_after(A, 30)
    queue.add_after(A, 10)
    queue.add_after(A, 20)

    assert await take(queue) == A
    assert now() == 10
    queue.done(A)
    assert queue.delayed == {}


@virtual
async def test_being_handed_out_for_another_reason_settles_the_delay():
    queue = WorkQueue("q")
    queue.add_after(A, 30)
    queue.add(A, "changed")
    assert await take(queue) == A
    queue.done(A)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await queue.get()


@virtual
async def test_failures_double_the_delay_until_success():
    queue = WorkQueue("q", backoff=Backoff(first=1, most=10))
    delays = []
    queue.add(A)
    for _ in range(6):
        await take(queue)
        delays.append(queue.fail(A))
        queue.done(A)
    assert delays == [1, 2, 4, 8, 10, 10]

    await take(queue)
    queue.succeed(A)
    assert queue.fail(A) == 1
    queue.done(A)


@virtual
async def test_a_floor_spaces_the_passes_of_one_key_only():
    queue = WorkQueue("q", backoff=Backoff(floor=1.0))
    times = []
    queue.add(A)
    for _ in range(3):
        await take(queue)
        times.append(now())
        queue.done(A)
        queue.add(A, "changed")
        queue.add(B)
        assert await take(queue) == B
        queue.done(B)
        await asyncio.sleep(0)
        if len(times) == 1:
            assert now() == 0
    assert times == [0, 1, 2]


@virtual
async def test_the_default_backoff_is_upstreams():
    backoff = Backoff(floor=1.0)
    assert [round(backoff.delay(n), 3) for n in (1, 2, 3)] == [1.005, 1.01, 1.02]
    assert backoff.delay(50) == 1001.0


@virtual
async def test_every_waiting_worker_is_woken_for_its_own_key():
    queue = WorkQueue("q")
    workers = [asyncio.ensure_future(take(queue)) for _ in range(3)]
    await asyncio.sleep(1)
    for key in (A, B, C):
        queue.add(key)

    assert sorted(await asyncio.gather(*workers)) == [A, B, C]


@virtual
async def test_a_cancelled_worker_does_not_take_a_wake_up_with_it():
    queue = WorkQueue("q")
    first, second = asyncio.ensure_future(take(queue)), asyncio.ensure_future(take(queue))
    await asyncio.sleep(1)
    queue.add(A)
    first.cancel()

    assert await second == A
    with pytest.raises(asyncio.CancelledError):
        await first


@virtual
async def test_closing_a_queue_ends_all_waiting_workers():
    queue = WorkQueue("q")
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(1)
    queue.add_after(A, 5)
    queue.close()
    queue.add(B)

    with pytest.raises(ShutDown):
        await waiting
    assert queue.delayed == {}
    assert len(queue) == 0


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "low", "after", "take", "done", "fail", "wait"]), st.integers(0, 4)), max_size=60))
def test_no_key_is_lost_and_none_is_worked_on_twice_at_once(steps):
    async def main():
        queue = WorkQueue("q", backoff=Backoff(first=0.5))
        working, wanted = {}, set()
        for step, n in steps:
            key = ObjectKey("ns", str(n))
            match step:
                case "add" | "low":
                    queue.add(key, priority=Priority.LOW if step == "low" else Priority.NORMAL)
                    wanted.add(key)
                case "after":
                    queue.add_after(key, float(n))
                    wanted.add(key)
                case "take" if len(queue):
                    taken = await take(queue)
                    assert taken not in working
                    assert taken in wanted
                    working[taken] = None
                    wanted.discard(taken)
                case "done" | "fail" if key in working:
                    if step == "fail":
                        queue.fail(key)
                        wanted.add(key)
                    del working[key]
                    queue.done(key)
                case "wait":
                    await asyncio.sleep(n)
        for key in list(working):
            queue.done(key)
        # everything that was asked for and not yet handed out is still to come
        while wanted:
            async with asyncio.timeout(1000):
                key = await take(queue)
            wanted.discard(key)
            queue.done(key)

    run_virtual(main())


@virtual
async def test_a_key_comes_for_a_report_and_its_vote_for_a_pass_stays():
    queue, begun = WorkQueue("q"), now()
    queue.add_after(A, 20, "requeue")
    queue.add_report(A, 0.5)

    report = await queue.get()
    assert (report.key, report.is_report, now() - begun) == (A, True, 0.5)
    queue.done(A)
    request = await queue.get()
    assert (request.key, request.is_report, request.reasons, now() - begun) == (A, False, ("requeue",), 20)
    queue.done(A)
    assert queue.is_idle


@virtual
async def test_an_earlier_pass_replaces_the_report():
    queue = WorkQueue("q")
    queue.add_report(A, 0.5)
    queue.add(A, "changed")
    assert not (await queue.get()).is_report
    await asyncio.sleep(5)
    queue.done(A)
    assert queue.is_idle

    queue.add_report(A, 0.5)
    await asyncio.sleep(1)  # nobody has taken it yet
    queue.add(A, "changed")
    request = await queue.get()
    assert (request.is_report, request.reasons) == (False, ("changed",))
    queue.done(A)
    assert queue.is_idle


@virtual
async def test_a_later_report_replaces_an_earlier_one_and_none_comes_after_the_end():
    queue, begun = WorkQueue("q"), now()
    queue.add_report(A, 0.5)
    queue.add_report(A, 0.8)
    await queue.get()
    assert now() - begun == 0.8
    queue.done(A)

    queue.add_report(A, 0.5)
    queue.close()
    queue.add_report(A, 0.5)
    await asyncio.sleep(1)
    assert queue.is_idle
