"""Labels and annotations that patches change (cluster-api #13924): which, of what, and which belong to the topology."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from clusterwright.topology.model import Desired
from clusterwright.topology.patches import PatchError, apply_patches
from vectors import ops_patches, replay

RECORDED = next(v["inputs"] for v in replay.vectors("patches") if v["id"] == "patches-jsonpatch-17")
"""A world with a Cluster c1, a control plane with Machines, and a MachineDeployment md-0."""
INFRASTRUCTURE_CLUSTER = {"fieldPath": "spec.infrastructureRef"}
CONTROL_PLANE = {"fieldPath": "spec.controlPlaneRef"}
CONTROL_PLANE_MACHINE = {"fieldPath": "spec.machineTemplate.spec.infrastructureRef"}
BOOTSTRAP = {"fieldPath": "spec.template.spec.bootstrap.configRef"}
MACHINE = {"fieldPath": "spec.template.spec.infrastructureRef"}
NAME, OWNED = "cluster.x-k8s.io/cluster-name", "topology.cluster.x-k8s.io/owned"
OWN = {NAME: "c1", OWNED: ""}
DEPLOYMENT, POOL = "topology.cluster.x-k8s.io/deployment-name", "topology.cluster.x-k8s.io/pool-name"


def answered(holder: dict[str, str], patch: Any, kind: str = "JSONMergePatch") -> dict[str, Any]:
    """Return a world in which an extension answers one patch."""
    inputs = copy.deepcopy(RECORDED)
    inputs["clusterClass"]["spec"]["patches"] = [{"name": "p", "external": {"generatePatchesExtension": "g"}}]
    inputs["responses"] = {"g": {"items": [{"holder": holder, "patchType": kind, "patch": json.dumps(patch)}]}}
    return inputs


def applied(inputs: dict[str, Any]) -> Desired:
    desired = ops_patches.desired_of(inputs)
    world = apply_patches(inputs["cluster"], ops_patches.blueprint_of(inputs), desired, runtime_sdk=True)
    return ops_patches.run(world, inputs.get("responses") or {})


def inline(*operations: Any, kind: str = "DevMachineTemplate", **matched: Any) -> dict[str, Any]:
    inputs = copy.deepcopy(RECORDED)
    definition = inputs["clusterClass"]["spec"]["patches"][0]["definitions"][0]
    definition["jsonPatches"] = list(operations)
    definition["selector"].update(kind=kind, matchResources=matched)
    return inputs


def test_an_extension_labels_a_template_of_workers() -> None:
    found = applied(answered(MACHINE, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})).machine_deployments["md-0"]

    assert found.infrastructure["metadata"]["labels"] == {**OWN, DEPLOYMENT: "md-0", "a": "b"}
    assert found.infrastructure["metadata"]["annotations"]["c"] == "d"
    assert "a" not in found.bootstrap["metadata"]["labels"]


def test_an_extension_labels_what_a_template_makes() -> None:
    found = applied(answered(BOOTSTRAP, {"spec": {"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}}))

    template = found.machine_deployments["md-0"].bootstrap
    assert template["spec"]["template"]["metadata"] == {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert template["metadata"]["labels"] == {**OWN, DEPLOYMENT: "md-0"}


def test_metadata_inside_a_template_reaches_the_object_that_is_made_of_it() -> None:
    patch = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}

    assert applied(answered(INFRASTRUCTURE_CLUSTER, patch)).infrastructure_cluster["metadata"]["labels"] == {**OWN, "a": "b"}
    assert applied(answered(CONTROL_PLANE, patch)).control_plane["metadata"]["labels"] == {**OWN, "a": "b"}


def test_metadata_at_the_top_of_a_template_does_not_reach_an_object() -> None:
    patch = {"metadata": {"labels": {"a": "b"}}}

    assert applied(answered(INFRASTRUCTURE_CLUSTER, patch)).infrastructure_cluster["metadata"]["labels"] == OWN


def test_an_inline_patch_changes_metadata_inside_the_template() -> None:
    path = "/spec/template/metadata/labels/a"
    cluster = inline({"op": "add", "path": path, "value": "b"}, kind="DevClusterTemplate", infrastructureCluster=True)

    assert applied(cluster).infrastructure_cluster["metadata"]["labels"] == {**OWN, "a": "b"}


def test_an_inline_patch_finds_the_labels_of_the_object() -> None:
    """Without the labels of the topology in the template, the operation would have no parent to add to, or nothing to remove."""
    path = "/spec/template/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"
    found = applied(inline({"op": "remove", "path": path}, kind="DevClusterTemplate", infrastructureCluster=True))

    assert found.infrastructure_cluster["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "ic"


@pytest.mark.parametrize("label", [NAME, OWNED, DEPLOYMENT])
def test_labels_of_the_topology_are_protected(label: str) -> None:
    for value in ("another", None):
        found = applied(answered(MACHINE, {"metadata": {"labels": {label: value}}})).machine_deployments["md-0"]

        assert found.infrastructure["metadata"]["labels"] == {**OWN, DEPLOYMENT: "md-0"}


def test_annotations_of_cloning_are_protected() -> None:
    before = applied(answered(CONTROL_PLANE_MACHINE, {})).control_plane_machine
    patch = {"metadata": {"annotations": {"cluster.x-k8s.io/cloned-from-name": "x", "cluster.x-k8s.io/cloned-from-groupkind": None}}}

    assert applied(answered(CONTROL_PLANE_MACHINE, patch)).control_plane_machine == before


def test_a_protected_label_that_an_object_lacks_may_be_added() -> None:
    found = applied(answered(MACHINE, {"metadata": {"labels": {POOL: "x"}}})).machine_deployments["md-0"]

    assert found.infrastructure["metadata"]["labels"] == {**OWN, DEPLOYMENT: "md-0", POOL: "x"}


def test_a_patch_removes_a_label_of_the_class() -> None:
    inputs = answered(CONTROL_PLANE, [{"op": "remove", "path": "/spec/template/metadata/labels/of-class"}], "JSONPatch")
    inputs["desired"]["controlPlane"]["metadata"]["labels"]["of-class"] = "x"

    assert applied(inputs).control_plane["metadata"]["labels"] == OWN


def test_removing_all_labels_changes_nothing_and_an_empty_map_leaves_the_protected_ones() -> None:
    removed = answered(MACHINE, [{"op": "remove", "path": "/metadata/labels"}], "JSONPatch")
    emptied = answered(MACHINE, [{"op": "replace", "path": "/metadata/labels", "value": {}}], "JSONPatch")
    for inputs in (removed, emptied):
        inputs["desired"]["machineDeployments"]["md-0"]["infrastructure"]["metadata"]["labels"]["of-class"] = "x"

    own = {**OWN, DEPLOYMENT: "md-0"}
    assert applied(removed).machine_deployments["md-0"].infrastructure["metadata"]["labels"] == {**own, "of-class": "x"}
    assert applied(emptied).machine_deployments["md-0"].infrastructure["metadata"]["labels"] == own


@pytest.mark.parametrize("value", ["x", 1, ["a"]])
@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_labels_and_annotations_cannot_become_something_else(part: str, value: Any) -> None:
    with pytest.raises(PatchError, match=rf"metadata\.{part} is not an object"):
        applied(answered(MACHINE, {"metadata": {part: value}}))


def test_an_extension_sees_the_metadata_of_the_objects() -> None:
    inputs = answered(MACHINE, {})
    of_class = inputs["templates"]["machineDeployments"]["worker"]["bootstrap"]["metadata"]
    of_class["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    asking = apply_patches(inputs["cluster"], ops_patches.blueprint_of(inputs), ops_patches.desired_of(inputs), runtime_sdk=True)
    sent = {i["holderReference"]["fieldPath"]: i["object"] for i in next(asking).request["items"]}

    assert sent["spec.infrastructureRef"]["spec"]["template"]["metadata"]["labels"] == OWN
    assert sent["spec.template.spec.bootstrap.configRef"]["metadata"]["labels"] == {**OWN, DEPLOYMENT: "md-0"}
    assert set(sent["spec.template.spec.bootstrap.configRef"]["metadata"]["annotations"]) == {
        "cluster.x-k8s.io/cloned-from-name",
        "cluster.x-k8s.io/cloned-from-groupkind",
    }
    assert "annotations" not in sent["spec.infrastructureRef"]["metadata"]
