"""The bugs can be planted in the code as it is: whether they are noticed is `run.py`'s question, and takes half an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations.planted import BUGS, Bug

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_bug_has_its_place_and_its_tests(bug: Bug) -> None:
    text = (ROOT / "src" / bug.file).read_text()

    assert text.count(bug.before) == 1
    assert not bug.also[0] or text.count(bug.also[0]) == 1
    assert [test for test in bug.tests if not (ROOT / test).exists()] == []


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len({bug.name for bug in BUGS}) >= 30
