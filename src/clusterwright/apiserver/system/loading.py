"""Store objects without admission: those of offline bundles as they are, and system objects."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.encoding.ordering import ordered
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.schema.permissive import permissive_resource
from clusterwright.apiserver.storage.store import Entry, object_key

_encode = msgspec.json.Encoder().encode


def ensure(server: Core, objects: Iterable[Json], *, update: bool) -> None:
    """Create missing objects and, with `update`, replace those that differ; without admission and managedFields."""
    for item in objects:
        gvk = GroupVersionKind.of(item["apiVersion"], item["kind"])
        resource = server.registry.by_kind(gvk.group, gvk.version, gvk.kind)
        assert resource is not None, gvk
        obj: Json = msgspec.json.decode(_encode(item))
        meta = obj["metadata"]
        key = object_key(meta.get("namespace") or "", meta["name"])
        table = server.store.table(resource.storage_key)
        existing = table.objects.get(key)
        resource.handler.default(obj)
        if existing is None:
            status = obj.get("status")
            resource.handler.prepare_for_create(obj)
            if status is not None:  # system objects keep their status
                obj["status"] = status
            meta.update(uid=server.new_uid(), creationTimestamp=server.timestamp())
            if resource.generation:
                meta["generation"] = 1
            made = Entry(key, meta.get("namespace") or "", meta["name"], meta["uid"], 0, b"")
            server.put_system(table, made, obj)
        elif update:
            current = msgspec.json.decode(existing.raw)
            wanted = {**current, **{k: v for k, v in obj.items() if k not in {"metadata", "status"}}}
            for field in ("labels", "annotations"):
                if meta.get(field):
                    wanted["metadata"][field] = {**(current["metadata"].get(field) or {}), **meta[field]}
            if wanted.get("spec") != current.get("spec") and resource.generation:
                wanted["metadata"]["generation"] = (current["metadata"].get("generation") or 0) + 1
            if _encode(wanted) != existing.raw and wanted != msgspec.json.decode(existing.raw):
                server.put_system(table, existing, wanted)


def load(server: Core, objects: Iterable[Mapping[str, Any]]) -> None:
    """Store objects as they are, CRDs first, so that their kinds are known."""
    items = [o for o in objects if isinstance(o, Mapping)]
    for crd in items:
        if crd.get("kind") == "CustomResourceDefinition":
            _serve(server, crd)
    for item in items:
        _put(server, item)
    server.store.seeded()


class _Version(msgspec.Struct, frozen=True):
    name: str
    served: bool = False
    storage: bool = False


class _Names(msgspec.Struct, frozen=True):
    kind: str
    plural: str


class _Spec(msgspec.Struct, frozen=True):
    group: str
    names: _Names
    versions: tuple[_Version, ...]
    scope: str = ""


class _Definition(msgspec.Struct, frozen=True):
    """Serve a CRD by its names and versions; loaded objects need no schemas."""

    spec: _Spec


def _serve(server: Core, crd: Mapping[str, Any]) -> None:
    try:
        spec = msgspec.convert(crd, _Definition).spec
    except msgspec.ValidationError:
        return  # a malformed CRD is stored, but not served
    stored = [v.name for v in spec.versions if v.storage] or [v.name for v in spec.versions]
    server.registry.add(
        permissive_resource(
            GroupVersionKind(spec.group, version.name, spec.names.kind),
            plural=spec.names.plural,
            namespaced=spec.scope == "Namespaced",
            storage=f"{spec.group}/{stored[0]}",
            status=True,
        )
        for version in spec.versions
        if version.served
    )


def _put(server: Core, item: Mapping[str, Any]) -> None:
    gvk = GroupVersionKind.of(str(item.get("apiVersion") or ""), str(item.get("kind") or ""))
    meta = item.get("metadata")
    if not gvk.kind or not isinstance(meta, Mapping) or not meta.get("name"):
        return
    namespace, name = str(meta.get("namespace") or ""), str(meta["name"])
    resource = resource_for(server, gvk, namespaced=bool(namespace))
    key = object_key(namespace if resource.namespaced else "", name)
    version = str(meta.get("resourceVersion") or "")
    rv = int(version) if re.fullmatch("[1-9][0-9]{0,17}", version) else server.store.next_revision()
    obj: Json = msgspec.json.decode(_encode(item))
    obj["metadata"]["resourceVersion"] = str(rv)
    for field in ("labels", "annotations"):
        if isinstance(obj["metadata"].get(field), dict):  # empty values in hand-written YAML are null
            obj["metadata"][field] = {name: "" if value is None else value for name, value in obj["metadata"][field].items()}
    uid = str(meta.get("uid") or "") or _stable_uid(resource, key)
    obj["metadata"]["uid"] = uid
    storage = resource.storage or resource.api_version
    if obj["apiVersion"] != storage:
        obj = server.registry.versions(resource).convert(obj, storage)
    entry = Entry(key, namespace, name, uid, rv, _encode(ordered(obj, custom=resource.custom)))
    server.store.seed(server.store.table(resource.storage_key), entry)


def _stable_uid(resource: Resource, key: str) -> str:
    digest = hashlib.sha256(f"{resource.group}/{resource.kind}/{key}".encode()).digest()[:16]
    return str(uuid.UUID(bytes=digest, version=4))


def resource_for(server: Core, gvk: GroupVersionKind, *, namespaced: bool) -> Resource:
    """Return the resource of a kind; serve a generic one from now on if there is none."""
    found = server.registry.by_kind(gvk.group, gvk.version, gvk.kind)
    if found is not None:
        return found
    sibling = next((r for r in server.registry if r.group == gvk.group and r.kind == gvk.kind), None)
    if sibling is not None:
        made = permissive_resource(
            gvk, plural=sibling.plural, namespaced=sibling.namespaced, storage=sibling.storage or sibling.api_version
        )
    else:
        made = permissive_resource(gvk, namespaced=namespaced)
    server.registry.add([made])
    return made
