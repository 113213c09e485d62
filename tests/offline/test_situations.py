"""The gallery of situations: each is judged live and from the recorded file, by object, field, actor and next step."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.simulation.plane import Plane
from offline.situations import addons, bootstrap, control_planes, healthy, infrastructure, references, workers
from offline.situations.steps import tables
from offline.situations.still_wrong import STILL_WRONG
from offline.situations.truth import Situation, faults_of, played
from support.moments import Moment

SITUATIONS = [
    situation
    for module in (references, bootstrap, infrastructure, control_planes, workers, addons, healthy)
    for situation in module.SITUATIONS
] + list(tables())


def test_every_situation_has_a_name_of_its_own() -> None:
    assert len({s.name for s in SITUATIONS}) == len(SITUATIONS)


def test_only_situations_of_the_gallery_are_listed_as_wrong() -> None:
    assert {s.name for s in SITUATIONS} >= STILL_WRONG


def marked(situation: Situation) -> Any:
    wrong = pytest.mark.xfail(strict=True, raises=AssertionError, reason="the verdict is not the truth yet")
    return pytest.param(situation, marks=[wrong] if situation.name in STILL_WRONG else [], id=situation.name)


@pytest.mark.parametrize("situation", [marked(s) for s in SITUATIONS])
def test_the_verdict_is_the_truth(situation: Situation, settled: Moment[Plane], three: Moment[Plane]) -> None:
    live, saved = played(situation, settled, three)
    wrong = {"live": faults_of(situation, live), "saved": faults_of(situation, saved)}

    assert not wrong["live"], f"{live.headline}\n  {wrong['live']}"
    assert not wrong["saved"], f"from the file: {saved.headline}\n  {wrong['saved']}"
