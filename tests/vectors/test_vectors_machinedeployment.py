"""One pass of the MachineDeployment controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machinedeployment import conditions, conditions_v1beta1, plan, status
from support.vectors import Played, play

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machinedeployment.
UNRECORDED = {"Delete": {"wait"}}

TABLES = (
    *conditions.TABLES,
    *conditions_v1beta1.V1BETA1_TABLES,
    plan.STEPS,
    plan.DELETE,
    status.PHASE,
)


@pytest.fixture(scope="module")
def played() -> Played:
    return play("machinedeployment")


def test_every_recorded_pass_of_the_machinedeployment_controller_agrees(played: Played) -> None:
    assert played.count >= 1025
    assert played.differing == {}


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: Played) -> None:
    assert played.missed(table) == UNRECORDED.get(table.name, set())
