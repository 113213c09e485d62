"""One pass of the MachineHealthCheck controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machinehealthcheck.conditions import MACHINE_TABLES, TABLES
from support.vectors import Played, play

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machinehealthcheck.
UNRECORDED = {
    "ExternallyRemediated": {"request-refused"},
    "ExternalRemediationRequestAvailable (v1beta1)": {"refused"},
}


@pytest.fixture(scope="module")
def played() -> Played:
    return play("machinehealthcheck")


def test_every_recorded_pass_of_the_machinehealthcheck_controller_agrees(played: Played) -> None:
    assert played.count >= 682
    assert played.differing == {}


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()


@pytest.mark.parametrize("table", [*TABLES, *MACHINE_TABLES], ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: Played) -> None:
    assert played.missed(table) == UNRECORDED.get(table.name, set())
