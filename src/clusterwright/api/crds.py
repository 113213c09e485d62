"""The CustomResourceDefinitions of our kinds, generated from the models."""

from __future__ import annotations

from functools import cache

import msgspec

from clusterwright.api.columns import COLUMNS
from clusterwright.api.contract import CONTRACT_VERSIONS
from clusterwright.api.meta import Json
from clusterwright.api.schema import schema_of
from clusterwright.api.scheme import CUSTOM, Resource
from clusterwright.api.wellknown import CONTRACT_LABEL_PREFIX, PROVIDER_LABEL

_PROVIDERS = {
    "bootstrap.cluster.x-k8s.io": "bootstrap-kubeadm",
    "controlplane.cluster.x-k8s.io": "control-plane-kubeadm",
    "infrastructure.cluster.x-k8s.io": "infrastructure-in-memory",
}
_TYPE_META: Json = {
    "apiVersion": {"type": "string", "description": "group and version of the object"},
    "kind": {"type": "string", "description": "kind of the object"},
}


def crd(resource: Resource) -> Json:
    """The definition of one resource, to be changed freely by the caller."""
    return msgspec.json.decode(_encoded(resource), type=dict)


def crds() -> list[Json]:
    """The definitions of all our resources."""
    return [crd(resource) for resource in CUSTOM]


@cache
def _encoded(resource: Resource) -> bytes:
    schema = schema_of(resource.model)
    schema["properties"].update(_TYPE_META)
    subresources: Json = {}
    if resource.status:
        subresources["status"] = {}
    if resource.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": resource.scale.spec_replicas,
            "statusReplicasPath": resource.scale.status_replicas,
        }
        if resource.scale.selector:
            subresources["scale"]["labelSelectorPath"] = resource.scale.selector
    names: Json = {
        "categories": list(resource.categories),
        "kind": resource.kind,
        "listKind": resource.list_kind,
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    version: Json = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": [column.json() for column in COLUMNS[resource.kind]],
    }
    return msgspec.json.encode(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{resource.plural}.{resource.group}",
                "labels": {
                    PROVIDER_LABEL: _PROVIDERS.get(resource.group, "cluster-api"),
                    **{f"{CONTRACT_LABEL_PREFIX}{contract}": contract for contract in CONTRACT_VERSIONS},
                },
            },
            "spec": {
                "group": resource.group,
                "names": names,
                "scope": "Namespaced" if resource.namespaced else "Cluster",
                "versions": [version],
                "conversion": {"strategy": "None"},
            },
        }
    )
