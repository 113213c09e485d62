"""One pass of the Cluster controller agrees with every recorded pass, letter for letter."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import clusterwright

HERE = Path(__file__).resolve().parent


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_cluster", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recorded_pass_of_the_cluster_controller_agrees() -> None:
    replay = replayer()
    vectors = list(replay.vectors("cluster"))

    differing = {v["id"]: found for v in vectors if (found := replay.differences(v, clusterwright.decide(v["objects"], v["subject"])))}

    assert len(vectors) >= 1452
    assert differing == {}
