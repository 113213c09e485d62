"""Recorded creates of the scenarios that only schemas answer, against our CRDs as the API server compiles them."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from clusterwright.api.crds import crds
from clusterwright.apiserver.schema.customresource import compile_crd

CONFORMANCE = Path(__file__).parents[1] / "conformance"
BY_ADMISSION = {("machine-schema-top", 3), ("machineset-schema-top", 3)}
"""The webhook copied a name of 64 characters into a label, which then was refused as well."""


def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_replay", CONFORMANCE / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_our_schemas_refuse_what_live_schemas_did() -> None:
    expand = replayer().expand
    handlers = {(crd["spec"]["group"], crd["spec"]["names"]["plural"]): compile_crd(crd, "v1beta2") for crd in crds()}
    different, refused = [], 0
    for line in (CONFORMANCE / "admission.jsonl").read_text().splitlines():
        scenario: dict[str, Any] = json.loads(line)
        name = scenario["name"]
        if not re.search(r"-(schema|types)", name) or "variable" in name:
            continue
        for number, step in enumerate(scenario["steps"]):
            request, response = step["request"], step["response"]
            collection = re.fullmatch(r"/apis/([^/]+)/v1beta2/(?:namespaces/[^/]+/)?(\w+)", request["path"])
            if request["method"] != "POST" or collection is None or response["status"] != 422 or (name, number) in BY_ADMISSION:
                continue
            obj = expand(request["body"], {**scenario.get("objects", {}), "ns": "ns"})
            handler = handlers[collection[1], collection[2]]
            handler.decode(obj)
            handler.default(obj)
            handler.prepare_for_create(obj)
            found = sorted(str(error).split(": ")[0] for error in handler.validate_create(obj))
            expected = sorted(cause["field"] for cause in response["body"]["details"].get("causes", ()))
            refused += 1
            if found != expected:
                different.append(f"{name} step {number + 1}: expected {expected}, found {found}")
    assert not different, "\n".join(different)
    assert refused > 600
