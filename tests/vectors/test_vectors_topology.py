"""One pass of each controller of ClusterClass and topology agrees with every recorded pass, and they reach every row."""

from __future__ import annotations

import pytest

from clusterwright.controllers.topology.conditions import TOPOLOGY_RECONCILED
from support.vectors import Played, play

SETS = {"clusterclass": 166, "topology": 654, "topology-machineset": 33, "topology-machinedeployment": 25}


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    return {name: play(name) for name in SETS}


@pytest.mark.parametrize("recorded", SETS)
def test_every_recorded_pass_agrees(recorded: str, played: dict[str, Played]) -> None:
    assert played[recorded].count >= SETS[recorded]
    assert played[recorded].differing == {}


@pytest.mark.parametrize("recorded", SETS)
def test_no_recorded_pass_contradicts_a_table(recorded: str, played: dict[str, Played]) -> None:
    assert played[recorded].contradictions == set()


def test_recorded_passes_reach_every_row(played: dict[str, Played]) -> None:
    """A row that no recorded pass ends in would be one that nothing checks."""
    assert played["topology"].missed(TOPOLOGY_RECONCILED) == set()
