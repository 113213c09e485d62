"""Which objects of a namespace belong to a cluster: what carries its name, and what these own or name, transitively.

A namespace holds other clusters, and things that belong to none. Their trouble explains nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from clusterwright.api.meta import LabelSelector, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.offline.complaints import Reference, references, secret_sources
from clusterwright.runtime.selectors import InvalidSelector, matches

SHARED_KINDS: Final = frozenset({"ResourceQuota", "LimitRange"})
"""They concern everything in their namespace."""
PURPOSES: Final = ("ca", "etcd", "proxy", "sa", "kubeconfig", "apiserver-etcd-client")
"""Of the Secrets that are named after the Cluster."""


def name_of(kind: str, namespace: str, name: str) -> str:
    """The name of an object in explanations."""
    return f"{kind}/{namespace}/{name}" if namespace else f"{kind}/{name}"


def resources(obj: Unstructured) -> Iterator[Reference]:
    """The ConfigMaps and Secrets that a ClusterResourceSet applies."""
    listed = obj.at("spec", "resources") if obj.kind == "ClusterResourceSet" else None
    for n, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, Mapping) and item.get("kind") in {"ConfigMap", "Secret"} and isinstance(item.get("name"), str):
            yield Reference("", str(item["kind"]), item["name"], f"spec.resources[{n}]")


def class_of(cluster: Unstructured) -> list[Reference]:
    """The ClusterClass of a Cluster with a topology, if it lives in the same namespace."""
    reference, name = cluster.at("spec", "topology", "classRef"), cluster.at("spec", "topology", "class")
    path, namespace = "spec.topology.class", cluster.at("spec", "topology", "classNamespace")
    if isinstance(reference, Mapping):
        path, name, namespace = "spec.topology.classRef", reference.get("name"), reference.get("namespace")
    if not isinstance(name, str) or not name or namespace not in (None, "", cluster.key.namespace):
        return []
    return [Reference("cluster.x-k8s.io", "ClusterClass", name, path)]


def related(objects: Iterable[Unstructured], cluster: Unstructured, *roots: str) -> set[str]:
    """The names of whatever belongs to the Cluster or to one of the roots."""
    known = {name_of(o.kind, *o.key): o for o in objects}
    owned: dict[str, list[str]] = {}
    for name, obj in known.items():
        for reference in obj.metadata.owner_references:
            owned.setdefault(name_of(reference.kind, obj.key.namespace, reference.name), []).append(name)
    found: set[str] = set()
    queue = [name_of(cluster.kind, *cluster.key), *roots, *(n for n, o in known.items() if _carries_name(o, cluster))]
    while queue:
        name = queue.pop()
        if name in found or name not in known:
            continue
        found.add(name)
        queue += owned.get(name, [])
        queue += mentioned(known[name])
    return found


def _carries_name(obj: Unstructured, cluster: Unstructured) -> bool:
    if obj.kind in SHARED_KINDS:
        return True
    if obj.key.namespace != cluster.key.namespace or obj.kind == cluster.kind:
        return False
    if cluster.key.name in (obj.metadata.labels.get(CLUSTER_NAME_LABEL), obj.at("spec", "clusterName")):
        return True
    if obj.kind == "ClusterResourceSet":
        return _selects(obj, cluster)
    return obj.kind == "Secret" and obj.key.name in {f"{cluster.key.name}-{purpose}" for purpose in PURPOSES}


def _selects(resource_set: Unstructured, cluster: Unstructured) -> bool:
    """Whether a ClusterResourceSet is meant for the Cluster; an empty selector is meant for none."""
    selector = resource_set.at("spec", "clusterSelector")
    if not selector:
        return False
    try:
        return matches(msgspec.convert(selector, LabelSelector), cluster.metadata.labels)
    except (msgspec.ValidationError, InvalidSelector):
        return False


def mentioned(obj: Unstructured) -> Iterator[str]:
    """What the object's spec names, whether it is there or not."""
    namespace, spec = obj.key.namespace, obj.at("spec")
    for reference in (*references(spec, home=namespace), *secret_sources(spec), *resources(obj), *class_of(obj)):
        yield name_of(reference.kind, namespace, reference.name)
    secret = obj.at("spec", "bootstrap", "dataSecretName")
    if isinstance(secret, str):
        yield name_of("Secret", namespace, secret)
    elsewhere = obj.at("spec", "topology", "classRef", "namespace")
    if isinstance(elsewhere, str):
        yield name_of("ClusterClass", elsewhere, str(obj.at("spec", "topology", "classRef", "name")))
    for name in _sets(obj):
        yield name_of("ClusterResourceSet", namespace, name)


def _sets(binding: Unstructured) -> Iterator[str]:
    listed = binding.at("spec", "bindings") if binding.kind == "ClusterResourceSetBinding" else None
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping):
            yield str(item.get("clusterResourceSetName"))
