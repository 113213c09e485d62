"""One pass of the MachineHealthCheck controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import clusterwright
from clusterwright.controllers.machinehealthcheck.conditions import MACHINE_TABLES, TABLES

HERE = Path(__file__).resolve().parent

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machinehealthcheck.
UNRECORDED = {
    "ExternallyRemediated": {"request-refused"},
    "ExternalRemediationRequestAvailable (v1beta1)": {"refused"},
}


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_machinehealthcheck", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(v, dict(clusterwright.decide(v["objects"], v["subject"]))) for v in replayer().vectors("machinehealthcheck")]


def test_every_recorded_pass_of_the_machinehealthcheck_controller_agrees(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    replay = replayer()

    differing = {v["id"]: found for v, answer in answers if (found := replay.differences(v, answer))}

    assert len(answers) >= 682
    assert differing == {}


@pytest.mark.parametrize("table", [*TABLES, *MACHINE_TABLES], ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    # the tables of a Machine are traced once for each
    fired = {row for _, answer in answers for name, row in answer["rows"].items() if name.partition(" of ")[0] == table.name}

    assert {row.name for row in table.rows} - fired == UNRECORDED.get(table.name, set())
