"""One pass of each controller of ClusterClass and topology agrees with every recorded pass, and they reach every row."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import clusterwright
from clusterwright.controllers.topology.conditions import TOPOLOGY_RECONCILED

HERE = Path(__file__).resolve().parent
SETS = {"clusterclass": 166, "topology": 654, "topology-machineset": 33, "topology-machinedeployment": 25}
PARTS = 4


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vectors_replay_topology_passes", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("recorded", SETS)
def test_every_recorded_pass_agrees(recorded: str, part: int) -> None:
    replay = replayer()
    vectors = list(replay.vectors(recorded))

    differing = {
        v["id"]: found
        for v in vectors[part::PARTS]
        if (found := replay.differences(v, clusterwright.decide(v["objects"], v["subject"], controller=v["controller"])))
    }

    assert len(vectors) >= SETS[recorded]
    assert differing == {}


def test_recorded_conditions_reach_every_row() -> None:
    """By what they say: a row that no recorded pass ends in would be one that nothing checks."""
    vectors = list(replayer().vectors("topology"))
    rows = set()
    for reason in ("Paused", "ReconcileFailed", "Deleting", "ClusterCreating", "ReconcileSucceeded", "ClusterUpgrading"):
        for v in [v for v in vectors if (v["expect"].get("conditions", {}).get("TopologyReconciled") or [None, None])[1] == reason][:40]:
            rows.add(clusterwright.decide(v["objects"], v["subject"], controller=v["controller"])["rows"].get("TopologyReconciled"))
    repaired = next(v for v in vectors if v["id"].startswith("topology-managed-fields"))
    rows.add(
        clusterwright.decide(repaired["objects"], repaired["subject"], controller="topology/cluster")["rows"].get("TopologyReconciled")
    )

    assert set(TOPOLOGY_RECONCILED.row_names) - rows == set()
