"""OpenAPI v3 documents: what kubectl looks for in them is there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from apiserver_testing import widget_crds

from clusterwright.api.crds import crds
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.serving import openapi
from clusterwright.apiserver.system.definitions import resources_of

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
    assert all(s.get("properties") is not None for s in schemas.values())
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
