"""One pass of each controller of ClusterClass and topology agrees with every recorded pass."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import clusterwright

HERE = Path(__file__).resolve().parent


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_topology_passes", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("recorded", "number"), [("clusterclass", 166)])
def test_every_recorded_pass_agrees(recorded: str, number: int) -> None:
    replay = replayer()
    vectors = list(replay.vectors(recorded))

    differing = {
        v["id"]: found
        for v in vectors
        if (found := replay.differences(v, clusterwright.decide(v["objects"], v["subject"], controller=v["controller"])))
    }

    assert len(vectors) >= number
    assert differing == {}
