"""The topology writes its Cluster by merge patches (cluster-api #13760), and takes over Clusters that were applied before."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.controllers.topology.object_writing import cluster_patch
from controllers.topology.passes import CORE, KEY, Passes

STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
APPLIED = {
    "f:metadata": {"f:annotations": {f"f:{STEP}": {}}, "f:labels": {"f:topology.cluster.x-k8s.io/owned": {}}},
    "f:spec": {"f:infrastructureRef": {"f:name": {}}, "f:controlPlaneRef": {"f:name": {}}},
}
LABELS = {"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""}


def entry(manager: str, operation: str, fields: Json) -> Json:
    return {"manager": manager, "operation": operation, "apiVersion": CORE, "fieldsType": "FieldsV1", "fieldsV1": fields}


OURS = entry("capi-topology", "Apply", APPLIED)
FIRST = entry("before-first-apply", "Update", APPLIED)
USER = entry("kubectl", "Update", {"f:spec": {"f:topology": {}}})


async def _managers(p: Passes) -> list[tuple[str, str]]:
    found = (await p.client.live.get(GroupVersionKind.of(CORE, "Cluster"), KEY)).at("metadata", "managedFields") or []
    return [(e["manager"], e["operation"]) for e in found if not e.get("subresource")]


async def _taken_over(entries: list[Json]) -> Passes:
    """A Cluster that somebody left with these entries, and with an emptied annotation; one pass of ours in a new process."""
    p = await Passes(workers={"a": 1}).run(2)
    await p.patch({"metadata": {"annotations": {STEP: "", "users": "own"}}})
    change = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
    await p.client.patch(GroupVersionKind.of(CORE, "Cluster"), KEY, change, type="json")
    await p.clock.sleep(601)
    return await p.run()


@pytest.mark.parametrize(
    ("entries", "left", "ends"),
    [
        ([OURS, USER], ("kubectl", "Update"), False),  # v1.13, or ours before
        ([USER], ("kubectl", "Update"), False),  # v1.14
        ([FIRST, OURS, USER], ("kubectl", "Update"), True),
        ([OURS], ("manager", "Update"), False),
        ([FIRST], ("manager", "Update"), True),
    ],
)
async def test_a_cluster_is_taken_over_from_any_manager(entries: list[Json], left: tuple[str, str], ends: bool) -> None:
    p = await _taken_over(entries)

    managers = await _managers(p)
    assert left in managers
    assert not {m for m, _ in managers} & {"capi-topology", "before-first-apply"}
    assert (p.requeue == 1.0) is ends
    await p.run()
    annotations = (await p.cluster())["metadata"]["annotations"]
    assert STEP not in annotations
    assert annotations["users"] == "own"
    assert p.actions == []


async def test_a_cluster_at_rest_is_not_written() -> None:
    p = await Passes(workers={"a": 1}).run(3)
    before = (await p.cluster())["metadata"]["resourceVersion"]

    await p.run(3)

    assert (await p.cluster())["metadata"]["resourceVersion"] == before
    assert ("capi-topology", "Apply") not in await _managers(p)


def cluster(**change: Any) -> Json:
    metadata = {"name": "c", "namespace": "default", "uid": "u", "labels": LABELS, "annotations": {"a": "b"}}
    return {
        "apiVersion": CORE,
        "kind": "Cluster",
        "metadata": {**metadata, **change.pop("metadata", {})},
        "spec": {"paused": False, **change},
    }


def test_a_patch_has_only_the_differing_fields_of_the_topology() -> None:
    reference = {"apiGroup": "g", "kind": "K", "name": "n"}
    desired = cluster(metadata={"annotations": {"a": "b", STEP: "v1"}}, infrastructureRef=reference)

    assert cluster_patch(cluster(), cluster()) is None
    assert cluster_patch(cluster(), cluster(paused=True, metadata={"annotations": {"other": "x"}, "labels": {**LABELS, "x": "y"}})) is None
    assert cluster_patch(cluster(), desired) == {
        "metadata": {"uid": "u", "annotations": {STEP: "v1"}},
        "spec": {"infrastructureRef": reference},
    }
    assert cluster_patch(desired, cluster(infrastructureRef=reference)) == {"metadata": {"uid": "u", "annotations": {STEP: None}}}
    assert cluster_patch(cluster(metadata={"labels": {}}), cluster()) == {"metadata": {"uid": "u", "labels": LABELS}}
