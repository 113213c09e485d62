import asyncio

import pytest

from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import Stalled, run_virtual
from clusterwright.simulation.world import START


def test_an_hour_of_sleeping_is_exactly_an_hour_and_over_at_once():
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(3600):
            await asyncio.sleep(1.0)
        return loop.time()

    assert run_virtual(main()) == pytest.approx(3600.0)  # in real time this test would not end today


def test_timers_fire_in_order_of_their_time_then_of_their_making():
    async def main():
        seen = []
        loop = asyncio.get_running_loop()
        loop.call_later(2, seen.append, "c")
        loop.call_later(1, seen.append, "a")
        loop.call_later(1, seen.append, "b")
        await asyncio.sleep(3)
        return seen

    assert run_virtual(main()) == ["a", "b", "c"]


def test_awkward_fractions_never_spin_before_their_timer():
    async def main():
        loop = asyncio.get_running_loop()
        for n in range(1, 2000):
            before = loop.time()
            await asyncio.sleep(n / 7 + 1e-7)
            assert loop.time() == pytest.approx(before + n / 7 + 1e-7)

    run_virtual(main())


def test_waiting_for_nothing_is_an_error_not_a_hang():
    with pytest.raises(Stalled):
        run_virtual(asyncio.Event().wait())


def test_executor_work_is_done_on_the_spot_and_its_errors_reach_the_waiter():
    async def main():
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, sum, [1, 2]) == 3
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 / 0)
        return await asyncio.to_thread(len, "four")

    assert run_virtual(main()) == 4


def test_the_clock_follows_the_loop():
    async def main():
        clock = LoopClock(START)
        assert clock.now() == START
        await clock.sleep(90)
        return (clock.now() - START).total_seconds(), clock.monotonic()

    assert run_virtual(main()) == (90.0, 90.0)


def test_tasks_of_a_group_are_cancelled_in_the_same_order_every_time():
    async def main():
        order = []

        async def child(n):
            try:
                await asyncio.sleep(100)
            finally:
                order.append(n)

        async def group():
            async with asyncio.TaskGroup() as tasks:
                for n in range(50):
                    tasks.create_task(child(n))

        task = asyncio.create_task(group())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return order

    ballast = []
    orders = []
    for _ in range(5):
        orders.append(run_virtual(main()))
        ballast.append([object() for _ in range(997)])  # other addresses for the next tasks
    assert all(order == orders[0] for order in orders)
    assert sorted(orders[0]) == list(range(50))
