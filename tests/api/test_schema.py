"""Schemas of built-in kinds, which the API server prunes and merges by. Facts of the v1 API, spot by spot."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest

from clusterwright.api import kubernetes as k8s
from clusterwright.api.constraints import PRESERVE, REQUIRED, Each, Int32, Items, Len, Props, Range
from clusterwright.api.meta import Struct
from clusterwright.api.schema import schema_of
from clusterwright.api.scheme import BUILT_IN


def at(model: type[Any], path: str, *, always: bool = False) -> dict[str, Any]:
    node = schema_of(model, always=always)
    for step in path.split("."):
        node = node["properties"][step.removesuffix("[]")]
        node = node["items"] if step.endswith("[]") else node
    return node


@pytest.mark.parametrize(
    ("model", "path", "merge_key", "map_keys"),
    [
        (k8s.Pod, "spec.containers", "name", ["name"]),
        (k8s.Pod, "spec.initContainers", "name", ["name"]),
        (k8s.Pod, "spec.volumes", "name", ["name"]),
        (k8s.Pod, "spec.imagePullSecrets", "name", ["name"]),
        (k8s.Pod, "spec.containers[].ports", "containerPort", ["containerPort", "protocol"]),
        (k8s.Pod, "spec.containers[].env", "name", ["name"]),
        (k8s.Pod, "spec.containers[].volumeMounts", "mountPath", ["mountPath"]),
        (k8s.Pod, "status.conditions", "type", ["type"]),
        (k8s.Node, "status.conditions", "type", ["type"]),
        (k8s.Node, "status.addresses", "type", ["type"]),
        (k8s.Service, "spec.ports", "port", ["port", "protocol"]),
        (k8s.Deployment, "status.conditions", "type", ["type"]),
        (k8s.Deployment, "spec.template.spec.containers", "name", ["name"]),
        (k8s.ServiceAccount, "secrets", "name", ["name"]),
    ],
)
def test_lists_of_built_ins_merge_by_key(model: type[Any], path: str, merge_key: str, map_keys: list[str]) -> None:
    node = at(model, path)
    assert node["x-kubernetes-patch-merge-key"] == merge_key
    assert "merge" in node["x-kubernetes-patch-strategy"].split(",")
    assert node["x-kubernetes-list-type"] == "map"
    assert node["x-kubernetes-list-map-keys"] == map_keys


def test_strategies_without_a_key() -> None:
    assert at(k8s.Deployment, "spec.strategy")["x-kubernetes-patch-strategy"] == "retainKeys"
    assert at(k8s.Pod, "spec.volumes")["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert at(k8s.Deployment, "spec.template.metadata.finalizers")["x-kubernetes-patch-strategy"] == "merge"
    assert "x-kubernetes-patch-strategy" not in at(k8s.Pod, "spec.tolerations")
    assert at(k8s.Pod, "spec.tolerations")["x-kubernetes-list-type"] == "atomic"
    assert at(k8s.Node, "spec.taints")["x-kubernetes-list-type"] == "atomic"
    assert at(k8s.Node, "spec.podCIDRs") == {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    }


def test_selectors_and_references_are_atomic() -> None:
    assert at(k8s.Deployment, "spec.selector")["x-kubernetes-map-type"] == "atomic"
    assert at(k8s.PodDisruptionBudget, "spec.selector")["x-kubernetes-map-type"] == "atomic"
    assert at(k8s.Event, "involvedObject")["x-kubernetes-map-type"] == "atomic"
    assert at(k8s.Service, "spec.selector")["x-kubernetes-map-type"] == "atomic"


def test_metadata_of_templates_is_spelled_out_and_that_of_kinds_is_open() -> None:
    assert schema_of(k8s.Pod)["properties"]["metadata"] == {"type": "object"}
    assert {"labels", "annotations", "managedFields", "ownerReferences"} <= at(k8s.Deployment, "spec.template.metadata")[
        "properties"
    ].keys()


def test_what_is_always_written_says_so() -> None:
    assert at(k8s.Pod, "spec.containers[].resources", always=True)["x-clusterwright-always"] == {}
    assert at(k8s.Pod, "status", always=True)["x-clusterwright-always"] == {}
    assert at(k8s.Event, "firstTimestamp", always=True)["x-clusterwright-always"] is None
    assert at(k8s.Event, "reportingComponent", always=True)["x-clusterwright-always"] == ""
    assert at(k8s.Service, "status.loadBalancer", always=True)["x-clusterwright-always"] == {}
    assert "x-clusterwright-always" not in at(k8s.Pod, "spec.nodeName", always=True)
    assert "x-clusterwright-always" not in str(schema_of(k8s.Pod))


def test_quantities_and_ports_take_numbers_and_strings() -> None:
    limits = at(k8s.Pod, "spec.containers[].resources.limits")["additionalProperties"]
    assert limits["x-kubernetes-int-or-string"] is True
    assert limits["pattern"].startswith(r"^(\+|-)?")
    assert at(k8s.Service, "spec.ports[].targetPort")["x-kubernetes-int-or-string"] is True


def test_schemas_of_crds_inside_crds_are_plain_json() -> None:
    node = at(k8s.CustomResourceDefinition, "spec.versions[].schema.openAPIV3Schema")
    assert node["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.parametrize("resource", BUILT_IN, ids=lambda resource: f"{resource.kind}.{resource.group}")
def test_every_list_map_has_its_keys(resource: Any) -> None:
    def check(node: Any, where: str) -> None:
        if node.get("x-kubernetes-list-type") == "map":
            keys = node["x-kubernetes-list-map-keys"]
            assert keys, where
            assert set(keys) <= node["items"]["properties"].keys(), where
        for name, child in node.get("properties", {}).items():
            check(child, f"{where}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), dict):
                check(node[key], f"{where}[]")

    check(schema_of(resource.model), resource.kind)


class _Part(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1, 2),)

    number: Annotated[Int32 | None, Range(0, 9)] = None
    words: Annotated[tuple[tuple[str, ...], ...], Items(1), Each(Items(2), Each(Len(3, 4)))] = ()
    anything: Annotated[Any, REQUIRED, PRESERVE] = None
    again: tuple[_Part, ...] = ()


def test_constraints_become_keywords() -> None:
    assert schema_of(_Part) == {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 2,
        "required": ["anything"],
        "properties": {
            "again": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "anything": {"x-kubernetes-preserve-unknown-fields": True},
            "number": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9},
            "words": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 3, "maxLength": 4}},
            },
        },
    }
