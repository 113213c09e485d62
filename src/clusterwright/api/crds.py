"""The CustomResourceDefinitions of our kinds: the stored version generated from the models, the old ones from data."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from clusterwright.api import ippools, providers
from clusterwright.api.columns import COLUMNS
from clusterwright.api.contract import CONTRACT_VERSIONS
from clusterwright.api.meta import Json
from clusterwright.api.schema import schema_of
from clusterwright.api.scheme import CUSTOM, EMBEDDED, ModelledResource
from clusterwright.api.versions import HUB, definitions, plain_schema, spokes
from clusterwright.api.wellknown import CLUSTERCTL_CORE_LABEL, CLUSTERCTL_LABEL, CONTRACT_LABEL_PREFIX, MOVE_HIERARCHY_LABEL, PROVIDER_LABEL

WEBHOOK_SERVICE: Final = ("clusterwright-system", "clusterwright-webhooks")
"""Namespace and name of the Service of our webhooks, inside a cluster."""
CONVERT_PATH: Final = "/convert"

_PROVIDERS = {
    "bootstrap.cluster.x-k8s.io": "bootstrap-kubeadm",
    "controlplane.cluster.x-k8s.io": "control-plane-kubeadm",
    "infrastructure.cluster.x-k8s.io": "infrastructure-in-memory",
}
_EMBEDDED_LABELS = {
    ippools.GROUP: {PROVIDER_LABEL: "ipam-in-cluster", MOVE_HIERARCHY_LABEL: ""},
    providers.GROUP: {CLUSTERCTL_LABEL: "", CLUSTERCTL_CORE_LABEL: "inventory"},
}
_TYPE_META: Json = {
    "apiVersion": {"type": "string", "description": "The API group and version of the object."},
    "kind": {"type": "string", "description": "The kind of the object."},
}


def crd(resource: ModelledResource) -> Json:
    """Return the definition of one resource, which the caller may change."""
    return msgspec.json.decode(_encoded(resource), type=dict)


def crds() -> list[Json]:
    """Return the definitions of all our resources, in all their versions, the stored one first."""
    return [*(crd(resource) for resource in CUSTOM), *(msgspec.json.decode(raw, type=dict) for raw in _without_model())]


def embedded_crds() -> list[Json]:
    """Return the definitions of the kinds that only the embedded plane serves, to be changed freely by the caller."""
    made = [crd(resource) for resource in EMBEDDED]
    for one in made:
        one["metadata"]["labels"] |= _EMBEDDED_LABELS[one["spec"]["group"]]
    return made


def webhook_conversion(**client: Any) -> Json:
    """Return `spec.conversion` of a definition with old versions; `client` is the webhook's `clientConfig`, by default a Service."""
    service = {"namespace": WEBHOOK_SERVICE[0], "name": WEBHOOK_SERVICE[1], "path": CONVERT_PATH, "port": 443}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client or {"service": service}, "conversionReviewVersions": ["v1"]}}


@cache
def _encoded(resource: ModelledResource) -> bytes:
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
        "categories": ["cluster-api"],
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    hub: Json = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": [column.json() for column in COLUMNS[resource.kind]],
    }
    name = f"{resource.plural}.{resource.group}"
    old = definitions().get(name, {}).get("versions", {})
    versions = [hub, *(_from_data(version, old[version]) for version in spokes(name))]
    return _definition(name, resource.group, names, "Namespaced" if resource.namespaced else "Cluster", versions)


@cache
def _without_model() -> tuple[bytes, ...]:
    """Return the kinds without a model, which are only data: they are served because users need them."""
    modelled = {f"{resource.plural}.{resource.group}" for resource in CUSTOM}
    return tuple(
        _definition(
            name,
            one["group"],
            one["names"],
            one["scope"],
            [_from_data(version, one["versions"][version]) for version in (HUB, *spokes(name))],
        )
        for name, one in sorted(definitions().items())
        if name not in modelled
    )


def _from_data(name: str, version: Json) -> Json:
    found = {key: value for key, value in version.items() if key != "schema" and value not in ([], False)}
    return {"name": name, "storage": False, **found, "schema": {"openAPIV3Schema": plain_schema(version["schema"])}}


def _definition(name: str, group: str, names: Json, scope: str, versions: list[Json]) -> bytes:
    served = {version["name"] for version in versions}  # the versions of these kinds are named after the contracts
    contracts = [contract for contract in CONTRACT_VERSIONS if contract in served] if group in _PROVIDERS else []
    labels = {f"{CONTRACT_LABEL_PREFIX}{contract}": contract for contract in contracts}
    return msgspec.json.encode(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "labels": {CLUSTERCTL_LABEL: "", PROVIDER_LABEL: _PROVIDERS.get(group, "cluster-api"), **labels}},
            "spec": {
                "group": group,
                "names": names,
                "scope": scope,
                "versions": versions,
                "conversion": webhook_conversion() if len(versions) > 1 else {"strategy": "None"},
            },
        }
    )
