"""Recorded passes of which two are one of ours: how many there are, and that the replay of them can fail."""

from __future__ import annotations

import copy

import pytest

from support.vectors import FIRST_HALVES, decide, differences, is_first_half
from vectors import replay

SETS = sorted(path.name.removesuffix(".jsonl.gz") for path in replay.HERE.glob("*.jsonl.gz"))


def test_every_set_has_as_many_first_halves_as_are_listed() -> None:
    found = {name: sum(is_first_half(v) for v in replay.vectors(name) if "op" not in v) for name in SETS}

    assert {name: count for name, count in found.items() if count} == FIRST_HALVES


@pytest.mark.parametrize("name", ["cluster", "machine", "machineset"])
def test_a_pass_that_ends_where_the_recorded_one_ends_differs(name: str) -> None:
    vector = next(v for v in replay.vectors(name) if is_first_half(v) and len(differences(v, stopped(v))) > 0)

    assert differences(vector, decide(vector)) == []
    assert "after both: object" in [where for where, _, _ in differences(vector, stopped(vector))]


def stopped(vector: replay.Any) -> replay.Any:
    """Our answer, had the pass written nothing but Paused."""
    answer = copy.deepcopy(decide(vector))
    status = (answer["object"] or {}).get("status", {})
    status["conditions"] = [c for c in status.get("conditions", []) if c["type"] == "Paused"]
    return answer


def test_a_generation_that_nobody_made_differs() -> None:
    vector = next(v for v in replay.vectors("machine") if v["id"] == "machine-h-boot-copy-01")
    answer = decide(vector)
    assert differences(vector, answer) == []

    answer["object"]["status"]["observedGeneration"] += 1

    assert [where for where, _, _ in differences(vector, answer)] == ["status.observedGeneration"]
