"""Calls of runtime extensions agree with every recorded call."""

from __future__ import annotations

from pathlib import Path

import pytest

from vectors import adapter, replay

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(("op", "count"), [("runtime-call", 77), ("runtime-list", 2), ("runtime-openapi", 1)])
def test_every_recorded_call_agrees(op: str, count: int) -> None:
    vectors = [v for v in replay.vectors("runtimeclient") if v["op"] == op]

    differing = {v["id"]: found for v in vectors if (found := adapter.evaluate(v)) != v["expect"]}

    assert len(vectors) >= count
    assert differing == {}
