"""Patches beyond the recorded calls: what they may make of an object, and what not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterwright.golang import jsonpatch
from clusterwright.topology.extensions import Turn
from clusterwright.topology.patches import PatchError, apply_patches
from vectors import ops_patches, replay

RECORDED = next(v["inputs"] for v in replay.vectors("patches") if v["id"] == "patches-jsonpatch-17")
"""A world in which one patch replaces the spec of the infrastructure cluster."""


def patched(path: str, value: Any, **selector: Any) -> dict[str, Any]:
    inputs = copy.deepcopy(RECORDED)
    definition = inputs["clusterClass"]["spec"]["patches"][0]["definitions"][0]
    definition["jsonPatches"] = [{"op": "add", "path": path, "value": value}]
    definition["selector"].update(selector)
    return ops_patches.patched(inputs)


MACHINES = {"kind": "DevMachineTemplate", "matchResources": {"machineDeploymentClass": {"names": ["*"]}}}
CONTROL_PLANE = {
    "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
    "kind": "KubeadmControlPlaneTemplate",
    "matchResources": {"controlPlane": True},
}


@pytest.mark.parametrize("value", [True, "x", 1, []])
def test_the_spec_of_an_object_cannot_become_something_else(value: Any) -> None:
    assert patched("/spec/template/spec", value) == {"error": True}
    assert patched("/spec/template/spec/machineTemplate", value, **CONTROL_PLANE) == {"error": True}
    assert patched("/kind", {"x": value}) == {"error": True}


def test_the_spec_inside_a_template_is_for_the_server_to_judge() -> None:
    found = patched("/spec/template/spec", "x", **MACHINES)

    assert {w["infrastructure"]["template"]["spec"] for w in found["specs"]["machineDeployments"].values()} == {"x"}


def test_a_template_without_a_spec_leaves_the_object_as_it_was() -> None:
    assert patched("/spec/template", {"metadata": {}})["specs"] == patched("/metadata/labels", {})["specs"]


def test_copies_of_copies_do_not_grow_without_end() -> None:
    """Extensions answer patches of any operations."""
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60

    with pytest.raises(jsonpatch.PatchFailed, match="copies of the patch add up"):
        jsonpatch.apply({"a": ["x"]}, doubling)


def test_json_patches_move_and_copy() -> None:
    document = {"a": {"x": [1]}, "b": {}}

    moved = jsonpatch.apply(document, [{"op": "move", "from": "/a/x", "path": "/b/y"}, {"op": "copy", "from": "/b/y", "path": "/a/z"}])
    moved["a"]["z"].append(2)

    assert moved == {"a": {"z": [1, 2]}, "b": {"y": [1]}}
    assert document == {"a": {"x": [1]}, "b": {}}


@pytest.mark.parametrize("text", ["[" * 100_000, "{", ""])
def test_invalid_patches_are_refused(text: str) -> None:
    with pytest.raises(jsonpatch.PatchFailed):
        jsonpatch.decoded(text)


def test_all_patches_of_a_cluster_have_one_budget_and_let_others_have_their_turn() -> None:
    inputs = copy.deepcopy(RECORDED)
    template = "{{range until 2000}}{{end}}{{len (until 2000)}}"
    patch = inputs["clusterClass"]["spec"]["patches"][0]
    path = "/spec/template/spec/x"
    operation = {"op": "add", "path": path, "valueFrom": {"template": template}}

    def run(operations: int) -> tuple[int, str]:
        patch["definitions"][0]["jsonPatches"] = [operation] * operations
        desired = ops_patches.desired_of(inputs)
        asking, turns = apply_patches(inputs["cluster"], ops_patches.blueprint_of(inputs), desired, runtime_sdk=True), 0
        try:
            while True:
                assert isinstance(next(asking), Turn)
                turns += 1
        except StopIteration:
            return turns, ""
        except PatchError as error:
            return turns, str(error)

    assert run(1) == (0, "")
    turns, problem = run(40)
    assert not problem
    assert turns >= 5
    turns, problem = run(2000)
    assert "too many steps" in problem
    assert turns <= 500
