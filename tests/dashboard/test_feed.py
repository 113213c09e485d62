"""Everything once, then differences: nothing is lost, nothing is told twice, and a slow reader costs no more than a fast one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.meta import Json
from clusterwright.dashboard.feed import ALIVE, Feed
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual

START = datetime(2026, 1, 1, tzinfo=UTC)


def merged(values: Json, difference: Json) -> Json:
    """What a page knows after a difference."""
    kept = {} if difference.get("reset") else {k: v for k, v in values.items() if k not in difference.get("gone", [])}
    return {**kept, **difference.get("set", {})}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2)), st.booleans()), max_size=20))
def test_every_reader_ends_with_the_present_values(steps: list[tuple[str, int | None, bool]]) -> None:
    async def main() -> None:
        feed = Feed()
        known: Json = {}
        async with aclosing(feed.read(0.0)) as reading:
            known = merged(known, await anext(reading))
            pending = False
            for key, number, look in steps:
                value = None if number is None else {"n": number}
                pending |= feed.values.get(key) != value
                feed.put(key, value)
                if look and pending:
                    known, pending = merged(known, await anext(reading)), False
            if pending:
                known = merged(known, await anext(reading))

        assert known == feed.values
        assert not feed.is_read

    run_virtual(main())


def test_many_changes_between_reads_are_one_difference() -> None:
    async def main() -> None:
        feed = Feed()
        feed.put("a", {"n": 0})
        async with aclosing(feed.read(1.0)) as reading:
            assert await anext(reading) == {"reset": True, "set": {"a": {"n": 0}}, "gone": []}
            for n in range(1000):
                feed.put("a", {"n": n})
            feed.put("b", {"n": 1})
            feed.put("b", None)

            assert await anext(reading) == {"set": {"a": {"n": 999}}, "gone": ["b"]}

    run_virtual(main())


def test_differences_keep_their_distance_and_silence_is_broken() -> None:
    async def main() -> None:
        clock, feed = LoopClock(START), Feed()
        async with aclosing(feed.read(1.0)) as reading:
            await anext(reading)
            feed.put("a", {"n": 1})
            await anext(reading)
            before = clock.monotonic()
            feed.put("a", {"n": 2})
            assert (await anext(reading))["set"] == {"a": {"n": 2}}
            assert clock.monotonic() - before == 1.0

            assert await anext(reading) == {}
            assert clock.monotonic() - before == 2.0 + ALIVE

    run_virtual(main())


def test_equal_values_cause_no_difference() -> None:
    async def main() -> None:
        feed = Feed()
        feed.put("a", {"n": 1})
        async with aclosing(feed.read(0.0)) as reading:
            await anext(reading)
            feed.replace({"a": {"n": 1}})
            waiting = asyncio.ensure_future(anext(reading))
            await asyncio.sleep(1)
            assert not waiting.done()

            feed.replace({})

            assert await waiting == {"set": {}, "gone": ["a"]}

    run_virtual(main())
