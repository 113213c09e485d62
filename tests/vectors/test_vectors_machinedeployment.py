"""One pass of the MachineDeployment controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.wellknown import REVISION_ANNOTATION
from clusterwright.controllers.machinedeployment import conditions, conditions_v1beta1, plan, status
from support.vectors import Played, decide, play
from vectors import replay

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


def test_a_paused_deployment_that_no_machine_set_matches_keeps_its_revision() -> None:
    """cluster-api#13827: v1.13.5 panicked here; v1.14 goes on, and empties the revision."""
    [vector] = [v for v in replay.vectors("machinedeployment") if v["id"] == "machinedeployment-h-spec-paused-04"]
    answer = decide(vector)

    assert answer["error"] is None
    assert answer["object"]["metadata"]["annotations"][REVISION_ANNOTATION] == "1"
    assert [a["name"] for a in answer["actions"]] == ["was-md1-old00"], "the old one is scaled"


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: Played) -> None:
    assert played.missed(table) == UNRECORDED.get(table.name, set())
