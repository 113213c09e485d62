"""The other half of the gallery of `test_situations.py`."""

from __future__ import annotations

import pytest

from clusterwright.simulation.plane import Plane
from offline.situations.gallery import demand_the_truth, params
from offline.situations.truth import Situation
from support.moments import Moment


@pytest.mark.parametrize("situation", params(slice(1, None, 2)))
def test_the_verdict_is_the_truth(situation: Situation, settled: Moment[Plane], three: Moment[Plane]) -> None:
    demand_the_truth(situation, settled, three)
