"""What tables declare of all worlds (exactly one of these, never both of those) holds in every recorded pass.

The checks for gaps, overlaps and dead rows leave out the worlds that a table declares impossible: they are worth what the
declarations are. Sets whose own tests look at this on the way are not played again here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import clusterwright
from clusterwright.tables import Table, contradictions, observing

HERE = Path(__file__).resolve().parent


def recorded(name: str) -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("vectors_replay_declarations", HERE / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.vectors(name))


@pytest.mark.parametrize("name", ["cluster", "machine", "kubeadmconfig", "kubeadmcontrolplane", "kubeadmcontrolplane-health"])
def test_no_recorded_pass_contradicts_a_table(name: str) -> None:
    decided: set[str] = set()
    found: set[tuple[str, str]] = set()

    def observe(table: Table[Any], snapshot: Any) -> None:
        decided.add(table.name)
        found.update((table.name, text) for text in contradictions(table, snapshot))

    with observing(observe):
        for vector in recorded(name):
            clusterwright.decide(vector["objects"], vector["subject"])

    assert decided
    assert found == set()
