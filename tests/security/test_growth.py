"""No synchronous loop that a request or a pass can reach grows faster than n log n.

Two measures. Lines of Python that are executed are the same in every run: they must grow in proportion. What the interpreter does inside
of one line, such as a search in a list, is not seen by them: CPU time shows that at the largest size, with room for a busy machine.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from security.growth import ROWS, Row, languages
from security.growth_of_objects import objects

LANGUAGES = dict(languages())
ALL = {**LANGUAGES, **ROWS, **dict(objects())}
SMALL, FACTOR = 30, 10
LINES = FACTOR * 2.0
"""By how much the lines may grow from the small size to ten times that: n log n would be 17, and constants differ."""
PER_ELEMENT = 25
"""Lines of each element that no growth is read from: what is small may have a shorter way."""
TIMES = 8 * 3.5
"""By how much the CPU time may grow from an eighth of the largest size to it; what is quadratic grows 64 times."""
NOTHING = 0.03
"""Seconds that no growth is read from."""


def lines(row: Row, n: int) -> int:
    """Count the lines of Python that run."""
    made, count = row.make(n), 0

    def local(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: local)
    try:
        row.run(made)
    finally:
        sys.settrace(before)
    return count


def seconds(row: Row, n: int, tries: int) -> float:
    """CPU time, of a few tries the shortest."""
    found = []
    for _ in range(tries):
        made = row.make(n)
        began = time.thread_time()
        row.run(made)
        found.append(time.thread_time() - began)
    return min(found)


def problem_of(row: Row) -> str:
    row.run(row.make(SMALL - 1))  # what is remembered is of no use to the others
    few, many = lines(row, SMALL), lines(row, SMALL * FACTOR)
    if many > LINES * few + PER_ELEMENT * SMALL * FACTOR:
        return f"{few} lines for {SMALL}, {many} for {SMALL * FACTOR}"
    for tries in (1, 3, 5):
        long = seconds(row, row.largest, tries)
        if long <= NOTHING or long <= TIMES * (short := seconds(row, row.largest // 8, tries + 2)):
            return ""
    return f"{short:.4f} s for {row.largest // 8}, {long:.4f} s for {row.largest}"


@pytest.mark.parametrize("name", ALL)
def test_work_grows_no_faster_than_the_input(name: str) -> None:
    assert not problem_of(ALL[name])


def test_growth_is_seen_in_lines_and_inside_of_one() -> None:
    def pairs(values: list[int]) -> int:
        return sum(1 for a in values for b in values if a < b)

    def searches(values: list[int]) -> int:
        return len([v for v in values if v in values])

    assert "lines" in problem_of(Row(lambda n: list(range(n)), pairs, 100))
    assert "s for" in problem_of(Row(lambda n: list(range(n)), searches, 4_000))
