"""One pass of the MachineDeployment controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import clusterwright
from clusterwright.controllers.machinedeployment import conditions, conditions_v1beta1, plan, status
from clusterwright.tables import Table, contradictions, observing

HERE = Path(__file__).resolve().parent

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machinedeployment.
UNRECORDED = {"Delete": {"wait"}}

TABLES = (
    *conditions.TABLES,
    *conditions_v1beta1.V1BETA1_TABLES,
    plan.STEPS,
    plan.DELETE,
    status.PHASE,
)

Answers = list[tuple[dict[str, Any], dict[str, Any]]]


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_machinedeployment", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def broken() -> set[tuple[str, str]]:
    """What tables declare of all worlds and a recorded one breaks: filled while the answers are made."""
    return set()


@pytest.fixture(scope="module")
def answers(broken: set[tuple[str, str]]) -> Answers:
    def observe(table: Table[Any], snapshot: Any) -> None:
        broken.update((table.name, text) for text in contradictions(table, snapshot))

    with observing(observe):
        return [(v, dict(clusterwright.decide(v["objects"], v["subject"]))) for v in replayer().vectors("machinedeployment")]


def test_every_recorded_pass_of_the_machinedeployment_controller_agrees(answers: Answers) -> None:
    replay = replayer()

    differing = {v["id"]: found for v, answer in answers if (found := replay.differences(v, answer))}

    assert len(answers) >= 1025
    assert differing == {}


def test_no_recorded_pass_contradicts_a_table(answers: Answers, broken: set[tuple[str, str]]) -> None:
    assert answers
    assert broken == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, answers: Answers) -> None:
    fired = {answer["rows"].get(table.name) for _, answer in answers}

    assert {row.name for row in table.rows} - fired == UNRECORDED.get(table.name, set())
