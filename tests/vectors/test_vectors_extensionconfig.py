"""One pass of the ExtensionConfig controller agrees with every recorded pass; and they reach nearly every row."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import clusterwright
from clusterwright.controllers.extensionconfig.conditions import DISCOVERED

HERE = Path(__file__).resolve().parent


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_extensionconfig", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(v, dict(clusterwright.decide(v["objects"], v["subject"]))) for v in replayer().vectors("extensionconfig")]


def test_every_recorded_pass_agrees(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    replay = replayer()

    differing = {v["id"]: found for v, answer in answers if (found := replay.differences(v, answer))}

    assert len(answers) >= 121
    assert differing == {}


@pytest.mark.parametrize("table", [DISCOVERED], ids=lambda t: t.name)
def test_recorded_passes_reach_every_row(table: Any, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    fired = {answer["rows"].get(table.name) for _, answer in answers}

    assert {row.name for row in table.rows} - fired == set()
