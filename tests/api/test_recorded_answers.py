"""Recorded creates of the scenarios that only schemas answer, against our CRDs as the API server compiles them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from clusterwright.api.crds import crds
from clusterwright.apiserver.schema.customresource import compile_crd
from conformance import replay

CONFORMANCE = Path(__file__).parents[1] / "conformance"
BY_ADMISSION = {("machine-schema-top", 3), ("machineset-schema-top", 3)}
"""The webhook copied a name of 64 characters into a label, which then was refused as well."""


def test_our_schemas_refuse_what_live_schemas_did() -> None:
    expand = replay.expand
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
