"""The gallery of situations: each is judged live and from the recorded file, by object, field, actor and next step.

Every second one; `test_more_situations.py` has the others, so that two workers share them.
"""

from __future__ import annotations

import pytest

from clusterwright.simulation.plane import Plane
from offline.situations.gallery import SITUATIONS, demand_the_truth, params
from offline.situations.truth import DONE, Situation
from support.moments import Moment


def test_every_situation_has_a_name_of_its_own() -> None:
    assert len({s.name for s in SITUATIONS}) == len(SITUATIONS)


def test_every_fault_states_object_field_person_and_next_step() -> None:
    faults = [s for s in SITUATIONS if not s.states & DONE]

    assert not {s.name: lacking for s in faults if (lacking := [f for f in ("object", "field", "who", "next") if not getattr(s, f)])}
    assert len(faults) > 250


@pytest.mark.parametrize("situation", params(slice(0, None, 2)))
def test_the_verdict_is_the_truth(situation: Situation, settled: Moment[Plane], three: Moment[Plane]) -> None:
    demand_the_truth(situation, settled, three)
