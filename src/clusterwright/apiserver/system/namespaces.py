"""Namespaces: made with the cluster, needed by what is created in them, emptied before they go."""

from __future__ import annotations

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.status import forbidden_error, not_found
from clusterwright.apiserver.storage.store import Entry, Event, Table
from clusterwright.apiserver.system.garbage import owned_meta

_encode = msgspec.json.Encoder().encode


def make_namespace(server: Core, name: str) -> None:
    """A namespace that is simply there."""
    rv = server.store.next_revision()
    obj: Json = {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": server.new_uid(),
            "resourceVersion": str(rv),
            "creationTimestamp": server.timestamp(),
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": [
                {
                    "manager": "kube-apiserver",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": server.timestamp(),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
                }
            ],
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    table = server.store.table("namespaces")
    server.store.put(table, Entry(name, "", name, obj["metadata"]["uid"], rv, _encode(obj)))


def check_open(server: Core, resource: Resource, namespace: str, name: str) -> None:
    """A new namespaced object needs a namespace that exists and is not being deleted."""
    if not server.require_namespaces or not resource.namespaced:
        return
    entry = server.store.table("namespaces").objects.get(namespace)
    if entry is None:
        raise not_found("", "namespaces", namespace)
    if b'"deletionTimestamp":' in entry.raw and msgspec.json.decode(entry.raw)["metadata"].get("deletionTimestamp"):
        text = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise forbidden_error(resource.group, resource.plural, name, text, [cause])


class NamespaceController:
    """Empties namespaces that are being deleted, then lets them go."""

    def __init__(self, server: Core) -> None:
        self.server = server
        server.store.listeners.append(self.offer)
        for name in list(server.store.table("namespaces").objects):
            server.later(lambda name=name: self.empty(name))  # type: ignore[misc]

    def offer(self, table: Table, event: Event) -> None:
        """Begin when a namespace is marked; go on whenever something in it vanishes."""
        if table.name == "namespaces":
            if event.type != "DELETED" and owned_meta(event.entry).deletion_timestamp:
                self.server.later(lambda: self.empty(event.entry.name))
        elif event.type == "DELETED" and event.entry.namespace:
            namespace = self.server.store.table("namespaces").objects.get(event.entry.namespace)
            if namespace is not None and owned_meta(namespace).deletion_timestamp:
                self.server.later(lambda: self.empty(event.entry.namespace))

    def empty(self, name: str) -> None:
        """Delete all that is in a namespace; finish when nothing is left."""
        table = self.server.store.table("namespaces")
        entry = table.objects.get(name)
        if entry is None or not owned_meta(entry).deletion_timestamp:
            return
        left = 0
        for other in list(self.server.store.tables.values()):
            resource = self.server.registry.of_table(other.name)
            if resource is None or not resource.namespaced:
                continue
            for item in list(other.range(name)):
                self.server.delete_system(other, item, resource)
                left += other.objects.get(item.key) is not None
        if left:
            return
        obj = msgspec.json.decode(entry.raw)
        spec = obj.setdefault("spec", {})
        remaining = [f for f in spec.get("finalizers") or () if f != "kubernetes"]
        if remaining == (spec.get("finalizers") or []) and remaining:
            return
        if remaining:
            spec["finalizers"] = remaining
        else:
            spec.pop("finalizers", None)
        if remaining or obj["metadata"].get("finalizers"):
            if obj != msgspec.json.decode(entry.raw):
                self.server.put_system(table, entry, obj)
        else:
            self.server.remove_system(table, entry)
