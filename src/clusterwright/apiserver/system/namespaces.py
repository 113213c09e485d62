"""Namespaces: create the initial ones, require them for new objects, and empty those that are being deleted."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.status import forbidden_error, not_found
from clusterwright.apiserver.storage.store import Entry, Event, Table
from clusterwright.apiserver.system.garbage import owned_meta

_encode = msgspec.json.Encoder().encode


def make_namespace(server: Core, name: str) -> None:
    """Create a namespace without admission."""
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
    """Check that the namespace of a new object exists and is not being deleted. Raises StatusError."""
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
    """Empties namespaces that are being deleted, then removes them."""

    def __init__(self, server: Core) -> None:
        self.server = server
        self._terminating: set[str] = set()
        self._due: set[str] = set()
        """Namespaces to check once, however many of their objects were removed."""
        server.store.listeners.append(self.offer)
        for entry in list(server.store.table("namespaces").objects.values()):
            self._begin(entry)

    def offer(self, table: Table, event: Event) -> None:
        """Start when a namespace is being deleted; check whether it is empty when an object in it is removed."""
        entry = event.entry
        if table.name == "namespaces":
            if event.type == "DELETED":
                self._terminating.discard(entry.name)
            else:
                self._begin(entry)
        elif entry.namespace in self._terminating:
            if event.type == "DELETED":
                self._look(entry.namespace)
            elif event.type == "ADDED":  # its request began before the deletion
                self.server.in_steps(self._remove(table, entry.key))

    def _begin(self, entry: Entry) -> None:
        if not owned_meta(entry).deletion_timestamp:
            return
        if entry.name in self._terminating:
            self._look(entry.name)
        else:
            self._terminating.add(entry.name)
            self.server.in_steps(self._empty(entry.name))

    def _empty(self, name: str) -> Iterator[int]:
        """Delete all objects of a namespace, then remove it unless some of them remain."""
        for table in list(self.server.store.tables.values()):
            yield 0
            for key in [item.key for item in table.range(name)]:
                yield self._delete(table, key)
        self._look(name)

    def _remove(self, table: Table, key: str) -> Iterator[int]:
        yield self._delete(table, key)

    def _delete(self, table: Table, key: str) -> int:
        resource, item = self.server.registry.of_table(table.name), table.objects.get(key)
        if resource is None or not resource.namespaced or item is None:
            return 0
        self.server.delete_system(table, item, resource)
        return len(item.raw)

    def _look(self, name: str) -> None:
        if name not in self._due:
            self._due.add(name)
            self.server.later(lambda: self._finish(name))

    def _is_empty(self, name: str) -> bool:
        for table in self.server.store.tables.values():
            resource = self.server.registry.of_table(table.name)
            if resource is not None and resource.namespaced and next(table.range(name), None) is not None:
                return False
        return True

    def _finish(self, name: str) -> None:
        """Remove a namespace if it is being deleted and empty."""
        self._due.discard(name)
        table = self.server.store.table("namespaces")
        entry = table.objects.get(name)
        if entry is None or not owned_meta(entry).deletion_timestamp or not self._is_empty(name):
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
