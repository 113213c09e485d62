"""The functions of variables and patches agree with every recorded call."""

from __future__ import annotations

import pytest

from vectors import adapter, replay


@pytest.mark.parametrize(("recorded", "number"), [("variables", 550), ("patches", 331)])
def test_every_recorded_call_agrees(recorded: str, number: int) -> None:
    vectors = list(replay.vectors(recorded))

    differing = {v["id"]: found for v in vectors if (found := replay.topology_function(v["expect"], adapter.evaluate(v)))}

    assert len(vectors) >= number
    assert differing == {}
