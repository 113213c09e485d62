"""Every recorded conversion agrees."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"vectors_{name}", HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recorded_conversion_agrees() -> None:
    evaluate = load("adapter").evaluate
    with gzip.open(HERE / "conversion.jsonl.gz", "rt", encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]

    differing = [(v["id"], v["note"]) for v in vectors if evaluate(v) != v["expect"]]

    assert len(vectors) >= 1299
    assert differing == []
