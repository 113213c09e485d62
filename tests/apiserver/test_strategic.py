"""Strategic merge patches of built-ins, with the results a kube-apiserver gives."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.patchtypes import strategic
from clusterwright.apiserver.status import StatusError

SCHEMAS = {r.kind: r.handler.schema for r in RESOURCES}


def patched(kind: str, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic.merge(original, patch, SCHEMAS[kind])


def containers(*items: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(items), **extra}}


def test_lists_are_merged_by_their_key_and_new_items_come_first():
    original = {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}}
    made = patched("ConfigMap", original, {"metadata": {"ownerReferences": [{"uid": "2", "name": "b"}, {"uid": "1", "kind": "K"}]}})
    assert made["metadata"]["ownerReferences"] == [{"uid": "2", "name": "b"}, {"uid": "1", "name": "a", "kind": "K"}]


def test_items_of_items_are_merged_too():
    original = containers({"name": "c", "image": "1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]})
    made = patched("Pod", original, containers({"name": "c", "env": [{"name": "B", "value": "3"}]}))
    assert made["spec"]["containers"] == [{"name": "c", "image": "1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]}]


def test_lists_without_a_strategy_are_replaced():
    original = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    assert patched("Node", original, {"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}) == {
        "spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}
    }


def test_directives_delete_replace_and_order():
    original = containers({"name": "a"}, {"name": "b"}, {"name": "c"})
    assert patched("Pod", original, containers({"name": "b", "$patch": "delete"}))["spec"]["containers"] == [{"name": "a"}, {"name": "c"}]
    assert patched("Pod", original, containers({"$patch": "replace"}, {"name": "z"}))["spec"]["containers"] == [{"name": "z"}]
    ordered = patched("Pod", original, {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}})
    assert [c["name"] for c in ordered["spec"]["containers"]] == ["c", "a", "b"] or [c["name"] for c in ordered["spec"]["containers"]] == [
        "b",
        "c",
        "a",
    ]
    assert patched("ConfigMap", {"data": {"a": "1"}}, {"data": {"$patch": "replace", "b": "2"}}) == {"data": {"b": "2"}}


def test_primitive_lists_lose_items_by_a_parallel_list():
    original = {"metadata": {"finalizers": ["a/1", "b/2"]}}
    made = patched("ConfigMap", original, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"], "finalizers": ["c/3"]}})
    assert made["metadata"]["finalizers"] == ["c/3", "b/2"]


def test_retain_keys_clears_the_rest():
    original = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    made = patched("Deployment", original, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
    assert made == {"spec": {"strategy": {"type": "Recreate"}}}


def test_nulls_delete_and_nulls_in_new_values_vanish():
    assert patched("ConfigMap", {"data": {"a": "1"}}, {"data": {"a": None}, "metadata": {"labels": {"x": None, "y": "z"}}}) == {
        "data": {},
        "metadata": {"labels": {"y": "z"}},
    }


@pytest.mark.parametrize(
    ("patch", "code", "text"),
    [
        (containers({"image": "x"}), 500, "map: map[image:x] does not contain declared merge key: name"),
        (containers({"$patch": "zap", "name": "c"}), 500, "unknown patch type: zap in map: map[$patch:zap name:c]"),
        ({"spec": {"strategy": {"$retainKeys": ["zz"], "type": "Recreate"}}}, 400, "invalid patch format of retainKeys"),
    ],
)
def test_invalid_patches_are_refused_as_such(patch: dict[str, Any], code: int, text: str):
    kind = "Deployment" if "strategy" in patch["spec"] else "Pod"
    original = {"spec": {"strategy": {"type": "Recreate"}, "containers": [{"name": "c"}]}}
    with pytest.raises(StatusError) as caught:
        patched(kind, original, patch)
    assert (caught.value.code, caught.value.status["message"]) == (code, text)


def test_the_original_is_not_touched():
    original = containers({"name": "c", "image": "1"})
    patched("Pod", original, containers({"name": "c", "image": "2"}))
    assert original == containers({"name": "c", "image": "1"})
