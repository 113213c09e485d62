"""What a topology may cost: a pass that finds nothing to do, and rest."""

from __future__ import annotations

import pytest

from bench.topology import measure
from clusterwright.simulation.loop import run_virtual


@pytest.mark.soak
def test_a_pass_over_ten_deployments_with_twenty_patches_and_topologies_at_rest() -> None:
    found = run_virtual(measure(deployments=10, number=20, passes=40, idle=100))

    assert found["ratio"] <= 5
    assert found["objects written in half an hour of rest"] == 0
