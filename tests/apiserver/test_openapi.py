"""OpenAPI v3 documents: what kubectl looks for in them is there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from apiserver.apiserver_testing import CRDS, Api, widget_crds
from clusterwright.api.crds import crds
from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.discovery import openapi, openapiv2
from clusterwright.apiserver.system.definitions import resources_of
from clusterwright.streams.protobuf import fields

GROUPS = sorted({(r.group, r.version) for r in RESOURCES})


def custom(definitions: list[Any]) -> list[Any]:
    return [r for d in definitions for r in resources_of(d)]


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_built_in_has_a_schema_without_loose_ends(group: str, version: str):
    served = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
    document = openapi.document(group, version, served)
    schemas = document["components"]["schemas"]
    references = set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(document)))
    assert references <= set(schemas)
    assert all(len(s) > 1 for s in schemas.values())  # a cycle that was broken and never mended would have nothing
    kinds = {k["kind"] for s in schemas.values() for k in s.get("x-kubernetes-group-version-kind", ())}
    assert {r.kind for r in served} <= kinds


def test_patch_operations_know_kind_and_field_validation():
    document = openapi.document("widgets.example.com", "v1", [r for r in custom(widget_crds()) if r.version == "v1"])
    patch = document["paths"]["/apis/widgets.example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "widgets.example.com", "version": "v1", "kind": "Widget"}
    assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= {p["name"] for p in patch["parameters"]}
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_descriptions_of_our_kinds_reach_explain():
    document = openapi.document(
        "cluster.x-k8s.io", "v1beta2", [r for r in custom(crds()) if (r.group, r.version) == ("cluster.x-k8s.io", "v1beta2")]
    )
    cluster = document["components"]["schemas"]["io.x-k8s.cluster.v1beta2.Cluster"]
    assert cluster["x-kubernetes-group-version-kind"] == [{"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": "Cluster"}]
    assert cluster["properties"]["spec"]["properties"]["paused"]["type"] == "boolean"
    assert cluster["properties"]["metadata"]["allOf"][0]["$ref"].endswith("ObjectMeta")


async def test_the_old_document_has_all_kinds_without_loose_ends(api: Api):
    answer = await api.get("/openapi/v2")

    made = answer.json
    assert (answer.status, made["swagger"]) == (200, "2.0")
    kinds = {(g["group"], g["kind"]) for d in made["definitions"].values() for g in d.get("x-kubernetes-group-version-kind", ())}
    assert {("", "Pod"), ("apps", "Deployment"), ("batch", "Job"), ("widgets.example.com", "Widget")} <= kinds
    text = answer.raw.decode()
    assert set(re.findall(r'"\$ref":"#/definitions/([^"]+)"', text)) <= made["definitions"].keys()
    assert "#/components" not in text
    for word in ("oneOf", "anyOf", "nullable", "allOf"):
        assert f'"{word}":' not in text
    operation = made["paths"]["/apis/widgets.example.com/v1/namespaces/{namespace}/widgets"]["post"]
    assert operation["parameters"][-1] == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/com.example.widgets.v1.Widget"},
    }


async def test_the_old_document_follows_what_is_served(api: Api):
    before = (await api.get("/openapi/v2")).json["definitions"]
    assert "com.example.widgets.v1.Widget" in before
    await api.delete(f"{CRDS}/widgets.widgets.example.com")

    assert "com.example.widgets.v1.Widget" not in (await api.get("/openapi/v2")).json["definitions"]


KIND: Json = {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ({"type": "string", "nullable": True}, {}),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]}, {"type": "string", "format": "int-or-string"}),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True, **KIND},
            {"type": "object", **KIND},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}}},
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
        (
            {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/x"}], "default": {}}},
            {"type": "array", "items": {"$ref": "#/definitions/x"}},
        ),
        ({"type": "object", "not": {"required": ["a"]}, "required": ["b"]}, {"type": "object", "required": ["b"]}),
    ],
)
def test_parts_that_the_old_form_lacks_are_left_out(source: dict[str, Any], made: dict[str, Any]):
    assert openapiv2.schema(source) == made


async def test_the_old_document_in_protobuf(api: Api):
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = await api.do("GET", "/openapi/v2", headers={"accept": accept})

    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    document: dict[int, Any] = dict(fields(answer.raw))
    items: list[Any] = [item for _, item in fields(document[9])]
    names = [dict[int, Any](fields(item))[1].decode() for item in items]
    assert names == sorted(names)
    assert {"com.example.widgets.v1.Widget", "io.k8s.api.core.v1.Pod"} <= set(names)


@pytest.mark.parametrize("group", ["api/v1", "apis/apiextensions.k8s.io/v1", "apis/widgets.example.com/v1"])
async def test_nothing_empty_is_published(api: Api, group: str):
    """Go's types leave empty lists and maps out: a document with them is another one when it was read and written, and clients compare."""

    def empty(value: Any, path: str) -> list[str]:
        if isinstance(value, dict):
            found = [f"{path}.{k}" for k, v in value.items() if v in ({}, []) and k not in {"default", "items", "additionalProperties"}]
            return found + [place for k, v in value.items() if k != "default" for place in empty(v, f"{path}.{k}")]
        return [place for item in value for place in empty(item, f"{path}[]")] if isinstance(value, list) else []

    assert empty((await api.get(f"/openapi/v3/{group}")).json, "") == []


OPERATIONS = [
    ("/api/v1/configmaps", "get", "listCoreV1ConfigMapForAllNamespaces"),
    ("/api/v1/namespaces/{namespace}/configmaps", "delete", "deleteCoreV1CollectionNamespacedConfigMap"),
    ("/api/v1/namespaces/{namespace}/pods/{name}/eviction", "post", "createCoreV1NamespacedPodEviction"),
    ("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", "post", "createCoreV1NamespacedServiceAccountToken"),
    ("/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize"),
    ("/api/v1/", "get", "getCoreV1APIResources"),
    ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "patch", "patchAppsV1NamespacedDeploymentScale"),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles", "post", "createRbacAuthorizationV1NamespacedRole"),
    (
        "/apis/widgets.example.com/v1/namespaces/{namespace}/widgets/{name}/status",
        "put",
        "replaceWidgetsExampleComV1NamespacedWidgetStatus",
    ),
    ("/apis/widgets.example.com/v1/gadgets", "get", "listWidgetsExampleComV1Gadget"),
]


@pytest.mark.parametrize(("path", "method", "name"), OPERATIONS)
def test_operations_have_the_names_of_generated_clients(path: str, method: str, name: str):
    group, version = ("", "v1") if path.startswith("/api/") else tuple(path.split("/")[2:4])
    served = [r for r in (*RESOURCES, *custom(widget_crds())) if (r.group, r.version) == (group, version)]
    operation = openapi.document(group, version, served)["paths"][path][method]
    assert operation["operationId"] == name


def test_no_two_operations_have_one_name():
    everything = [*RESOURCES, *custom(widget_crds()), *custom(crds())]
    paths = openapiv2.document("v1", everything)["paths"]
    names = [operation["operationId"] for item in paths.values() for method, operation in item.items() if method != "parameters"]
    assert len(names) == len(set(names)) > 1000
