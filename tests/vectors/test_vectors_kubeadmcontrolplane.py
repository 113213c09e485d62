"""One pass of the KubeadmControlPlane controller agrees with every recorded pass; and they reach nearly every row."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import clusterwright
from clusterwright.controllers.kubeadmcontrolplane import conditions

HERE = Path(__file__).resolve().parent
SETS = {"kubeadmcontrolplane": 986, "kubeadmcontrolplane-health": 360}

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/kubeadmcontrolplane.
UNRECORDED: dict[str, set[str]] = {}

Answers = dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_kubeadmcontrolplane", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def answers() -> Answers:
    replay = replayer()
    return {name: [(v, dict(clusterwright.decide(v["objects"], v["subject"]))) for v in replay.vectors(name)] for name in SETS}


@pytest.mark.parametrize("name", SETS)
def test_every_recorded_pass_of_the_control_plane_controller_agrees(name: str, answers: Answers) -> None:
    replay = replayer()

    differing = {v["id"]: found for v, answer in answers[name] if (found := replay.differences(v, answer))}

    assert len(answers[name]) >= SETS[name]
    assert differing == {}


@pytest.mark.parametrize("table", conditions.TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, answers: Answers) -> None:
    fired = {answer["rows"].get(table.name) for found in answers.values() for _, answer in found}

    missed = {row.name for row in table.rows} - fired

    assert missed == UNRECORDED.get(table.name, set())
