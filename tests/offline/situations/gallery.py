"""All situations, and what it means that a verdict is the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from clusterwright.simulation.plane import Plane
from offline.situations import addons, bootstrap, control_planes, healthy, infrastructure, references, workers
from offline.situations.steps import tables
from offline.situations.truth import Situation, faults_of, played
from support.moments import Moment

_COMPLETED: Final[dict[str, dict[str, str]]] = {
    row.pop("name"): row for row in yaml.safe_load((Path(__file__).parent / "completed.yaml").read_text())
}
_WRITTEN = [
    situation
    for module in (references, bootstrap, infrastructure, control_planes, workers, addons, healthy)
    for situation in module.SITUATIONS
] + list(tables())
SITUATIONS = [replace(s, **_COMPLETED.get(s.name, {})) for s in _WRITTEN]


def params(every: slice) -> list[Any]:
    """Return a part of the situations as parameters of a test; the long ones are for soak."""
    return [pytest.param(s, id=s.name, marks=[pytest.mark.soak] if s.is_long else []) for s in SITUATIONS[every]]


def demand_the_truth(situation: Situation, settled: Moment[Plane], three: Moment[Plane]) -> None:
    """Play a situation and compare the verdicts, live and from the recorded file, with its truth."""
    live, saved = played(situation, settled, three)
    wrong = {"live": faults_of(situation, live), "saved": faults_of(situation, saved)}

    assert not wrong["live"], f"{live.headline}\n  {wrong['live']}"
    assert not wrong["saved"], f"from the file: {saved.headline}\n  {wrong['saved']}"
