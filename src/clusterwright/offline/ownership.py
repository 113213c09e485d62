"""Find the objects of a namespace that belong to a cluster: those with its label or name, and those that they own or name, transitively.

A namespace also holds other clusters and unrelated objects. Their trouble does not explain that of this cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from clusterwright.api.meta import LabelSelector, Unstructured
from clusterwright.api.selectors import InvalidSelector, matches
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.offline.complaints import Reference, references, secret_sources

SHARED_KINDS: Final = frozenset({"ResourceQuota", "LimitRange"})
"""Kinds that affect everything in their namespace."""
PURPOSES: Final = ("ca", "etcd", "proxy", "sa", "kubeconfig", "apiserver-etcd-client")
"""The purposes in the names of the Cluster's Secrets: `<cluster>-<purpose>`."""


def name_of(kind: str, namespace: str, name: str) -> str:
    """Return the name of an object in explanations."""
    return f"{kind}/{namespace}/{name}" if namespace else f"{kind}/{name}"


def resources(obj: Unstructured) -> Iterator[Reference]:
    """Yield the ConfigMaps and Secrets that a ClusterResourceSet applies."""
    listed = obj.at("spec", "resources") if obj.kind == "ClusterResourceSet" else None
    for n, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, Mapping) and item.get("kind") in {"ConfigMap", "Secret"} and isinstance(item.get("name"), str):
            yield Reference("", str(item["kind"]), item["name"], f"spec.resources[{n}]")


def class_of(cluster: Unstructured) -> list[Reference]:
    """Return the ClusterClass of a Cluster with a topology."""
    reference, name = cluster.at("spec", "topology", "classRef"), cluster.at("spec", "topology", "class")
    path, namespace = "spec.topology.class", cluster.at("spec", "topology", "classNamespace")
    if isinstance(reference, Mapping):
        path, name, namespace = "spec.topology.classRef", reference.get("name"), reference.get("namespace")
    if not isinstance(name, str) or not name:
        return []
    elsewhere = namespace if isinstance(namespace, str) and namespace != cluster.key.namespace else ""
    return [Reference("cluster.x-k8s.io", "ClusterClass", name, path, namespace=elsewhere)]


class Ownership:
    """An index of objects by owner, reference and cluster, so that questions about many clusters read the objects once."""

    def __init__(self, objects: Iterable[Unstructured]) -> None:
        self.objects = {name_of(o.kind, *o.key): o for o in objects}
        self._owned: dict[str, list[str]] = {}
        self._named: dict[tuple[str, str], list[str]] = {}
        """By namespace and name of a Cluster: the objects with its label or name."""
        self._shared: list[str] = []
        self._resource_sets: list[str] = []
        for name, obj in self.objects.items():
            metadata, namespace = obj.metadata, obj.key.namespace
            for reference in metadata.owner_references:
                self._owned.setdefault(name_of(reference.kind, namespace, reference.name), []).append(name)
            if consumer := consumer_of(obj):
                self._owned.setdefault(consumer, []).append(name)
            if obj.kind in SHARED_KINDS:
                self._shared.append(name)
            elif obj.kind == "ClusterResourceSet":
                self._resource_sets.append(name)
            if obj.kind != "Cluster":
                named = (metadata.labels.get(CLUSTER_NAME_LABEL), obj.at("spec", "clusterName"))
                for cluster in {text for text in named if isinstance(text, str)}:
                    self._named.setdefault((namespace, cluster), []).append(name)

    def of(self, cluster: Unstructured, *roots: str) -> set[str]:
        """Return the names of all objects that belong to the Cluster or to one of the roots."""
        namespace, cluster_name = cluster.key
        queue = [name_of(cluster.kind, *cluster.key), *roots, *self._shared, *self._named.get((namespace, cluster_name), ())]
        queue += [name_of("Secret", namespace, f"{cluster_name}-{purpose}") for purpose in PURPOSES]
        queue.append(name_of("ConfigMap", namespace, f"{cluster_name}-lock"))
        queue += [n for n in self._resource_sets if self._is_for(self.objects[n], cluster)]
        found: set[str] = set()
        while queue:
            name = queue.pop()
            if name in found or name not in self.objects:
                continue
            found.add(name)
            queue += self._owned.get(name, [])
            queue += mentioned(self.objects[name])
        return found

    @staticmethod
    def _is_for(resource_set: Unstructured, cluster: Unstructured) -> bool:
        return resource_set.key.namespace == cluster.key.namespace and selects(resource_set.at("spec", "clusterSelector"), cluster)


def related(objects: Iterable[Unstructured], cluster: Unstructured, *roots: str) -> set[str]:
    """Return the names of all objects that belong to the Cluster or to one of the roots."""
    return Ownership(objects).of(cluster, *roots)


def selects(selector: Any, obj: Unstructured) -> bool:
    """Return whether a selector of a spec selects the object. An empty one selects none."""
    if not selector:
        return False
    try:
        return matches(msgspec.convert(selector, LabelSelector), obj.metadata.labels)
    except (msgspec.ValidationError, InvalidSelector):
        return False


def mentioned(obj: Unstructured) -> Iterator[str]:
    """Yield the objects that the object's spec names, whether they exist or not."""
    namespace, spec = obj.key.namespace, obj.at("spec")
    for reference in (*references(spec, home=namespace), *secret_sources(spec), *resources(obj), *class_of(obj)):
        yield name_of(reference.kind, reference.namespace or namespace, reference.name)
    secret = obj.at("spec", "bootstrap", "dataSecretName")
    if isinstance(secret, str):
        yield name_of("Secret", namespace, secret)
    for name in _sets(obj):
        yield name_of("ClusterResourceSet", namespace, name)


def consumer_of(obj: Unstructured) -> str:
    """Return the object that uses this one, which may exist for longer, such as a host; empty if none does."""
    reference = obj.at("spec", "consumerRef")
    if not isinstance(reference, Mapping) or not reference.get("kind") or not reference.get("name"):
        return ""
    return name_of(str(reference["kind"]), str(reference.get("namespace") or obj.key.namespace), str(reference["name"]))


def _sets(binding: Unstructured) -> Iterator[str]:
    listed = binding.at("spec", "bindings") if binding.kind == "ClusterResourceSetBinding" else None
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping):
            yield str(item.get("clusterResourceSetName"))
