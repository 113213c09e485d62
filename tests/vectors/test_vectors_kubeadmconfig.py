"""Every recorded pass over a KubeadmConfig is decided as recorded, bootstrap data included."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def _replay() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recorded_pass_over_a_kubeadmconfig_agrees() -> None:
    replay = _replay()
    vectors = list(replay.vectors("kubeadmconfig"))

    differing = {identity: found for identity, found in map(replay.judge, vectors) if found}

    assert len(vectors) >= 1466
    assert differing == {}
