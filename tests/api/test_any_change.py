"""Any change of any object of any of our kinds: the patch leads exactly to it, and unknown fields stay.

Objects are drawn from the schemas, so that every list and every depth comes up.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.codec import convert, decode, encode, to_json
from clusterwright.api.crds import crd
from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.overlay import merge_patch
from clusterwright.api.scheme import CUSTOM, ModelledResource

WORDS = ("a", "b", "c", "")
TIMES = ("2020-01-01T00:00:00Z", "2021-12-31T23:59:59Z")
UNKNOWN = "x-from-the-future"


def draw(node: Mapping[str, Any], random: Random, depth: int, unknown: bool) -> Any:
    """A value of the node's type; `unknown`: objects may get a field that no model knows."""
    if node.get("x-kubernetes-int-or-string"):
        return random.choice((0, 3, "25%"))
    match node.get("type"):
        case None:
            return random.choice((1, "text", {"k": [1]}, [1, 2]))
        case "object" if "additionalProperties" in node:
            return {
                key: draw(node["additionalProperties"], random, depth + 1, False) for key in random.sample(WORDS[:3], random.randint(0, 2))
            }
        case "object":
            chance = 0.9 if depth < 2 else 0.35
            found = {
                name: draw(child, random, depth + 1, unknown)
                for name, child in node.get("properties", {}).items()
                if random.random() < chance
            }
            if unknown and random.random() < 0.5:
                found[UNKNOWN] = random.choice((1, {"deep": [{}]}, "text"))
            return found
        case "array":
            items = [draw(node["items"], random, depth + 1, unknown) for _ in range(random.randint(0, 3))]
            keys = node.get("x-kubernetes-list-map-keys")
            if keys:
                items = list({str([item.get(key) for key in keys]): item for item in items}.values())
            return items
        case "boolean":
            return random.random() < 0.5
        case "integer":
            return random.choice((0, 1, 7))
        case "string" if node.get("format") == "date-time":
            return random.choice(TIMES)
        case "string" if node.get("format") == "byte":
            return random.choice(("", "YQ=="))
        case "string":
            return random.choice(node.get("enum") or WORDS)
    raise AssertionError(node)


def drawn(resource: ModelledResource, random: Random, unknown: bool) -> dict[str, Any]:
    schema = crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = {name: node for name, node in schema["properties"].items() if name in ("spec", "status")}
    found: dict[str, Any] = draw({"type": "object", "properties": properties}, random, 0, unknown)
    return {"apiVersion": resource.gvk.api_version, "kind": resource.kind, "metadata": {"name": "n"}, **found}


def future(value: Any) -> int:
    """How many unknown fields there are."""
    if isinstance(value, dict):
        return sum(1 if key == UNKNOWN else future(child) for key, child in value.items())
    return sum(map(future, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("resource", CUSTOM, ids=lambda resource: resource.kind)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_patch_leads_from_any_object_to_any_other(resource: ModelledResource, seed: int) -> None:
    random = Random(seed)
    raw = drawn(resource, random, unknown=True)
    before = convert(raw, resource.model)
    after = convert(drawn(resource, random, unknown=False), resource.model)
    result = merge_patched(raw, merge_patch(raw, to_json(before), to_json(after)))
    assert to_json(convert(result, resource.model)) == to_json(after)


@pytest.mark.parametrize("resource", CUSTOM, ids=lambda resource: resource.kind)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_round_trip_through_the_model_loses_nothing(resource: ModelledResource, seed: int) -> None:
    raw = drawn(resource, Random(seed), unknown=True)
    known = convert(raw, resource.model)
    assert decode(resource.model, encode(known)) == convert(to_json(known), resource.model)
    assert to_json(decode(resource.model, encode(known))) == to_json(known)
    assert merge_patch(raw, to_json(known), to_json(known)) == {}


@pytest.mark.parametrize("resource", CUSTOM, ids=lambda resource: resource.kind)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_adding_a_label_keeps_every_unknown_field(resource: ModelledResource, seed: int) -> None:
    raw = drawn(resource, Random(seed), unknown=True)
    before = to_json(convert(raw, resource.model))
    after = {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}}}
    result = merge_patched(raw, merge_patch(raw, before, after))
    assert future(result) == future(raw)
    assert {key: value for key, value in result.items() if key != "metadata"} == {
        key: value for key, value in raw.items() if key != "metadata"
    }
