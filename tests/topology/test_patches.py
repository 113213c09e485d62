"""Patches beyond the recorded calls: what they may make of an object, and what not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

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
