"""Contract labels for bundles that hold no CustomResourceDefinition.

`kubectl get -o yaml` of a namespace has no cluster-scoped objects, so it does not show which contract a provider's objects
follow. A bundle whose recorder knew nothing of its installation (no CRD, no feature gates, no workload clusters) is therefore
completed: each provider kind that it holds or refers to gets a CRD, whose contract is told by what the objects look like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clusterwright.api.contract import crd_name
from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wellknown import CONTRACT_LABEL_PREFIX, CORE_GROUP
from clusterwright.offline.bundle import Bundle

_REFERENCES = ("infrastructureRef", "controlPlaneRef", "configRef", "templateRef")


def complete(bundle: Bundle) -> Bundle:
    """Return the bundle with the CRDs that its recorder could not see. A bundle with CRDs stays unchanged."""
    observation = bundle.observation
    if observation.features or observation.workload_clusters or any(o["kind"] == "CustomResourceDefinition" for o in bundle.objects):
        return bundle
    known: dict[tuple[str, str], Json] = {}
    for obj in map(Unstructured, bundle.objects):
        if _is_provider_group(obj.gvk.group):
            _learn(known, obj.gvk, _contract(obj))
    for group, kind in _referenced(bundle):
        version = next((v for (g, _), v in known.items() if g == group), None)
        contract = version["contract"] if version else "v1beta2"
        known.setdefault((group, kind), {"version": version["version"] if version else contract, "contract": contract})
    definitions = (_crd(g, k, **said) for (g, k), said in known.items())
    return replace(bundle, objects=(*bundle.objects, *definitions, *_classes_elsewhere(bundle)))


def _classes_elsewhere(bundle: Bundle) -> Iterator[Json]:
    """Yield an empty ClusterClass for each reference into another namespace: the recorder did not read that namespace."""
    seen = {o["metadata"].get("namespace") for o in bundle.objects}
    for obj in map(Unstructured, bundle.objects):
        namespace, name = obj.at("spec", "topology", "classRef", "namespace"), obj.at("spec", "topology", "classRef", "name")
        if obj.kind == "Cluster" and isinstance(namespace, str) and namespace and name and namespace not in seen:
            metadata = {"namespace": namespace, "name": name}
            yield {"apiVersion": obj.gvk.api_version, "kind": "ClusterClass", "metadata": metadata, "spec": {}}


def _is_provider_group(group: str) -> bool:
    if group.endswith(".cluster.x-k8s.io"):
        return True
    return "." in group and group != CORE_GROUP and not group.endswith(".k8s.io")


def _learn(known: dict[tuple[str, str], Json], gvk: GroupVersionKind, contract: str) -> None:
    said = known.setdefault((gvk.group, gvk.kind), {"version": gvk.version, "contract": ""})
    said["contract"] = said["contract"] or contract or ("v1beta1" if gvk.version in {"v1beta1", "v1alpha4"} else "v1beta2")


def _contract(obj: Unstructured) -> str:
    """Return the contract version that the object's status has the form of; empty if it shows none."""
    status = obj.at("status")
    if not isinstance(status, Mapping):
        return ""
    if isinstance(status.get("initialization"), Mapping) or obj.at("status", "deprecated") is not None:
        return "v1beta2"
    if isinstance(status.get("ready"), bool) or isinstance(status.get("initialized"), bool):
        return "v1beta1"
    return ""


def _referenced(bundle: Bundle) -> Iterator[tuple[str, str]]:
    for obj in bundle.objects:
        yield from _references(obj.get("spec"))


def _references(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in _REFERENCES and isinstance(inner, Mapping):
                group, kind = inner.get("apiGroup"), inner.get("kind")
                if isinstance(group, str) and isinstance(kind, str) and group and kind:
                    yield group, kind
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _crd(group: str, kind: str, *, version: str, contract: str) -> Json:
    name = crd_name(group, kind)
    labels = {f"{CONTRACT_LABEL_PREFIX}{contract}": version}
    names = {"kind": kind, "plural": name.partition(".")[0]}
    served = {"name": version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": labels},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }
