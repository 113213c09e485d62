"""A Cluster's binding: which resources of which set have been applied to it. Pure, on JSON, so that unknown fields survive."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime

import msgspec

from clusterwright.api.addons import ClusterResourceSet, ClusterResourceSetBinding, ResourceRef
from clusterwright.api.codec import to_json, whole_seconds
from clusterwright.api.meta import Json, ObjectKey, OwnerReference, Unstructured
from clusterwright.controllers.external import refers_to
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference

GROUP = "addons.cluster.x-k8s.io"
KIND = "ClusterResourceSet"


def new_binding(resource_set: ClusterResourceSet, cluster: ObjectKey) -> Json:
    """Return a new binding of a Cluster."""
    return {
        "apiVersion": resource_set.api_version,
        "kind": ClusterResourceSetBinding.__name__,
        "metadata": {
            "name": cluster.name,
            "namespace": cluster.namespace,
            "ownerReferences": [to_json(owner_reference(resource_set, controller=False))],
        },
        "spec": {"clusterName": cluster.name},
    }


class Binding:
    """A binding under change. `patch` is the change to send."""

    def __init__(self, json: Json, resource_set: ClusterResourceSet) -> None:
        self._before = Unstructured(json)
        self._set = resource_set
        self._entries: list[Json] = deepcopy(list(self._before.at("spec", "bindings") or []))

    def ensure_entry(self) -> None:
        """Add an entry for the set, unless it has one."""
        if self._entry() is None:
            self._entries.append({"clusterResourceSetName": self._set.metadata.name})

    def resource(self, reference: ResourceRef) -> Json:
        """Return the record of a resource of the set; empty if there is none."""
        found = (r for r in (self._entry() or {}).get("resources") or [] if _names(r, reference))
        return next(found, {})

    def note(self, reference: ResourceRef, *, applied: bool, digest: str, now: datetime) -> None:
        """Record whether a resource was applied now."""
        entry = self._entry()
        assert entry is not None, "ensure_entry comes first"
        noted: Json = {"kind": reference.kind, "name": reference.name, "applied": applied}
        if digest:
            noted["hash"] = digest
        noted["lastAppliedTime"] = whole_seconds(str(msgspec.to_builtins(now)))
        resources = list(entry.get("resources") or [])
        place = next((n for n, r in enumerate(resources) if _names(r, reference)), len(resources))
        resources[place : place + 1] = [noted]
        entry["resources"] = resources

    def patch(self) -> Json | None:
        """Return a merge patch, locked to what was read; None if nothing changed."""
        changes = owned_metadata(self._before, owner_reference(self._set, controller=False), {})
        if self._entries == (self._before.at("spec", "bindings") or []):
            return changes
        metadata = (changes or {}).get("metadata") or {"resourceVersion": self._before.metadata.resource_version}
        return {"metadata": metadata, "spec": {"bindings": self._entries}}

    def _entry(self) -> Json | None:
        return next((e for e in self._entries if e.get("clusterResourceSetName") == self._set.metadata.name), None)


def concerns(binding: Unstructured, resource_set: ClusterResourceSet) -> bool:
    """Return whether the binding has an entry of the set, or its reference."""
    name = resource_set.metadata.name
    entries = binding.at("spec", "bindings") or []
    return any(e.get("clusterResourceSetName") == name for e in entries) or any(_is_of(r, name) for r in binding.metadata.owner_references)


def without(binding: Unstructured, resource_set: ClusterResourceSet) -> Json | None:
    """Return a merge patch that removes the set from the binding; None if no entry would be left: then delete it."""
    name = resource_set.metadata.name
    kept = [e for e in binding.at("spec", "bindings") or [] if e.get("clusterResourceSetName") != name]
    if not kept:
        return None
    metadata = binding.metadata
    owners = [to_json(r) for r in metadata.owner_references if not _is_of(r, name)]
    return {
        "metadata": {"resourceVersion": metadata.resource_version, "ownerReferences": owners},
        "spec": {"bindings": kept},
    }


def _is_of(reference: OwnerReference, name: str) -> bool:
    return refers_to(reference, GROUP, KIND, name)


def _names(resource: Json, reference: ResourceRef) -> bool:
    return (resource.get("kind"), resource.get("name")) == (reference.kind, reference.name)
