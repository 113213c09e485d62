"""Updates in place: one pass agrees with every recorded pass of the kinds that take part."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import clusterwright

HERE = Path(__file__).resolve().parent


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_inplace", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "count"), [("MachineSet", 29), ("MachineDeployment", 42)])
def test_every_recorded_pass_agrees(kind: str, count: int) -> None:
    replay = replayer()
    vectors = [v for v in replay.vectors("inplace") if v["subject"].startswith(f"{kind}/")]

    differing = {v["id"]: found for v in vectors if (found := replay.differences(v, clusterwright.decide(v["objects"], v["subject"])))}

    assert len(vectors) >= count
    assert differing == {}
