"""Calls of runtime extensions agree with every recorded call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vectors import adapter, replay

HERE = Path(__file__).resolve().parent


NEW = ("sigs.k8s.io.cluster-api.api.core.v1beta2.StatusVersion", "sigs.k8s.io.cluster-api.api.core.v1beta2.UpgradePlanVersion")
"""Types that v1.14 added to the objects in requests; the recording is of v1.13."""


def with_new_components(expected: Any) -> Any:
    if not isinstance(expected, dict) or "components" not in expected:
        return expected
    return {**expected, "components": sorted([*expected["components"], *NEW])}


@pytest.mark.parametrize(("op", "count"), [("runtime-call", 77), ("runtime-list", 2), ("runtime-openapi", 1)])
def test_every_recorded_call_agrees(op: str, count: int) -> None:
    vectors = [v for v in replay.vectors("runtimeclient") if v["op"] == op]

    differing = {v["id"]: found for v in vectors if (found := adapter.evaluate(v)) != with_new_components(v["expect"])}

    assert len(vectors) >= count
    assert differing == {}
