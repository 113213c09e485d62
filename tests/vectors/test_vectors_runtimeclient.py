"""Calls of runtime extensions agree with every recorded call."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"vectors_{name}_runtimeclient", HERE / f"{name}.py")
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(("op", "count"), [("runtime-call", 77), ("runtime-list", 2), ("runtime-openapi", 1)])
def test_every_recorded_call_agrees(op: str, count: int) -> None:
    evaluate = module("adapter").evaluate
    vectors = [v for v in module("replay").vectors("runtimeclient") if v["op"] == op]

    differing = {v["id"]: found for v in vectors if (found := evaluate(v)) != v["expect"]}

    assert len(vectors) >= count
    assert differing == {}
