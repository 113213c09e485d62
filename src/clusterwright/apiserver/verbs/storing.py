"""The end of every write: convert a valid object to the stored version, compare it with what is stored, and store it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding.ordering import ordered
from clusterwright.apiserver.status import failure
from clusterwright.apiserver.storage.store import Entry, object_key

_encode = msgspec.json.Encoder().encode
_decode_raw = msgspec.json.Decoder().decode
MAXIMUM_OBJECT: Final = 1_572_864
"""The most bytes of a stored object, as in etcd. A request may be twice as long, because not all of it is stored."""


@dataclass(slots=True)
class Written:
    """A valid object in its stored and its answered form: the same object if both have one version."""

    stored: Json
    answered: Json

    @property
    def converted(self) -> bool:
        """Whether the requested version differs from the stored one."""
        return self.stored is not self.answered


async def to_storage(call: Call, obj: Json) -> Written:
    """Convert an object to the stored version and back. Raises StatusError if that fails, before anything is stored."""
    wanted = call.resource.api_version
    if wanted == call.storage_version:
        return Written(obj, obj)
    versions = call.versions
    (stored,) = await versions.convert_all([copy.deepcopy(obj)], call.storage_version)
    storage = versions.get(call.storage_version)
    if storage is not None:
        storage.default(stored)
    (answered,) = await versions.convert_all([copy.deepcopy(stored)], wanted)
    return Written(stored, answered)


async def store_object(call: Call, written: Written, *, dry_run: bool = False) -> tuple[Json, bytes]:
    """Write a valid object. Return it as answered, decoded and as JSON, when it is durable."""
    if dry_run:
        return written.answered, _encode(written.answered)
    entry = put(call, written)
    raw = entry.raw
    if written.converted:
        raw = _encode(written.answered)
        if not call.versions.immediate:
            entry.keep_converted(call.versions.converter, call.resource.api_version, raw)
    await call.server.store.durable(entry.rv)
    return written.answered, raw


def put(call: Call, written: Written) -> Entry:
    """Write an object to the store, effective immediately."""
    server, resource, stored = call.server, call.resource, written.stored
    meta = stored["metadata"]
    rv = server.store.coming_revision
    meta["resourceVersion"] = str(rv)
    if written.converted:
        written.answered["metadata"]["resourceVersion"] = str(rv)
    namespace, name = meta.get("namespace") or "", meta["name"]
    raw = _encode(ordered(stored, custom=resource.custom))
    if len(raw) > MAXIMUM_OBJECT:
        raise failure(500, "", "etcdserver: request is too large")
    entry = Entry(object_key(namespace, name), namespace, name, meta["uid"], server.store.next_revision(), raw)
    server.store.put(call.table, entry)
    return entry


def is_unchanged(call: Call, entry: Entry, written: Written, old: Json) -> bool:
    """Return whether a write changes neither the stored object nor its version."""
    if written.converted:
        return _is_same(written.stored, _decode_raw(entry.raw))
    return _is_same(written.stored, old) and (not call.resource.custom or _decode_raw(entry.raw)["apiVersion"] == call.storage_version)


def _is_same(new: Json, old: Json) -> bool:
    """Return whether objects are the same. Numbers that are written differently differ; the times of managers do not count."""
    if new != old:
        new, old = _timeless(new), _timeless(old)
    return new == old and msgspec.json.encode(new, order="sorted") == msgspec.json.encode(old, order="sorted")


def _timeless(obj: Json) -> Json:
    meta = obj["metadata"]
    owners = [{name: value for name, value in owner.items() if name != "time"} for owner in meta.get("managedFields") or ()]
    return {**obj, "metadata": {**meta, "managedFields": owners}}
