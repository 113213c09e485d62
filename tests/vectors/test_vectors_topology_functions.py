"""The functions of variables and patches agree with every recorded call."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"vectors_{name}_topology", HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("recorded", "number"), [("variables", 550), ("patches", 331)])
def test_every_recorded_call_agrees(recorded: str, number: int) -> None:
    replay, evaluate = load("replay"), load("adapter").evaluate
    vectors = list(replay.vectors(recorded))

    differing = {v["id"]: found for v in vectors if (found := replay.topology_function(v["expect"], evaluate(v)))}

    assert len(vectors) >= number
    assert differing == {}
