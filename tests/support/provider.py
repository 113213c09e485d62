"""A provider of somebody else: definitions of its kinds, which may hold anything."""

from __future__ import annotations

from clusterwright.api.meta import Json

GROUP = "infrastructure.example.com"
V1BETA2 = {"cluster.x-k8s.io/v1beta2": "v1"}
"""The label of those who keep the contract."""


def definition(kind: str, labels: dict[str, str] | None = None, plural: str = "") -> Json:
    """The CRD of a kind of GROUP, version v1; without `labels` it keeps contract v1beta2."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    named = plural or f"{kind.lower()}s"
    spec = {"group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": named}, "versions": [version]}
    metadata = {"name": f"{named}.{GROUP}", "labels": dict(V1BETA2 if labels is None else labels)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}
