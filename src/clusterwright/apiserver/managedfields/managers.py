"""The managers of an object's fields: decoding, encoding, and which fields a write takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.interfaces import KindHandler
from clusterwright.apiserver.managedfields.merging import SchemaMismatch, check, compare, show_element
from clusterwright.apiserver.managedfields.sets import (
    Set,
    difference,
    dump,
    intersection,
    load,
    paths,
    union,
    without,
)
from clusterwright.apiserver.schema.mergetypes import MergeType
from clusterwright.apiserver.status import StatusError, apply_conflict
from clusterwright.golang.quoting import quote

STRIPPED: Final[Set] = {
    "f:apiVersion": {".": {}},
    "f:kind": {".": {}},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {".": {}}
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}
encode = msgspec.json.Encoder(order="sorted").encode
MAXIMUM_MANAGERS: Final = 1000
"""The most managers of an object. Kubernetes merges the oldest of more than ten that update, and does not limit those that apply."""

Identity = tuple[str, str, str, str]
"""Manager, operation, apiVersion (empty for Apply) and subresource identify an entry."""


@dataclass(slots=True)
class Entry:
    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str | None
    fields: Set
    raw: Json | None = None
    """The entry as read, if its fields did not change."""

    @property
    def identity(self) -> Identity:
        """Return the identity of the entry."""
        return (self.manager, self.operation, "" if self.operation == "Apply" else self.api_version, self.subresource)

    @property
    def sort_key(self) -> bytes:
        """Return the sort key of conflicts: the identity as JSON, so that entries with a subresource come first."""
        manager, operation, api_version, subresource = self.identity
        return msgspec.json.encode(
            {"manager": manager, "operation": operation}
            | ({"apiVersion": api_version} if api_version else {})
            | ({"subresource": subresource} if subresource else {})
        )

    def dump(self) -> Json:
        """Return the entry in the form of managedFields."""
        if self.raw is not None:
            return self.raw if self.raw.get("time") == self.time else {**self.raw, "time": self.time}
        out: Json = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time is not None:
            out["time"] = self.time
        out["fieldsType"] = "FieldsV1"
        out["fieldsV1"] = dump(self.fields)
        if self.subresource:
            out["subresource"] = self.subresource
        return out

    def shown(self) -> str:
        """Return the entry's name for messages."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


Managers = dict[Identity, Entry]


@lru_cache(maxsize=4096)
def _load_fields(fields: bytes) -> Set:
    return load(msgspec.json.decode(fields))


def decode(entries: Any) -> Managers | None:
    """Return the managers of a list of entries; None if one of them is malformed."""
    if not entries:
        return {}
    managers: Managers = {}
    for entry in entries:
        if type(entry) is not dict:
            return None
        operation = entry.get("operation") or ""
        fields = entry.get("fieldsV1")
        if operation not in ("Apply", "Update") or entry.get("fieldsType") != "FieldsV1":
            return None
        try:
            decoded = _load_fields(encode(fields if fields is not None else {}))
        except (ValueError, RecursionError):
            return None
        made = Entry(
            entry.get("manager") or "",
            operation,
            entry.get("apiVersion") or "",
            entry.get("subresource") or "",
            entry.get("time"),
            decoded,
            entry,
        )
        managers[made.identity] = made
    return managers


def written(managers: Managers) -> list[Json]:
    """Return the managers as metadata.managedFields has them."""
    entries = list(managers.values())
    if len(entries) > 1:
        entries.sort(key=lambda e: (e.operation, e.time or "", e.manager, e.api_version, e.subresource))
    return [e.dump() for e in entries]


def type_of(handler: KindHandler) -> MergeType:
    """Return the merge type of a kind."""
    kind: MergeType = handler.schema.merge_type
    return kind


def versioned(obj: Json, api_version: str, handlers: Versions) -> Json | None:
    """Return the object in another version, not pruned; None if that version does not exist."""
    handler = handlers.get(api_version)
    if handler is None:
        return None
    if obj.get("apiVersion") == api_version:
        return obj
    return handlers.convert(msgspec.json.decode(msgspec.json.encode(obj)), api_version, pruned=False)


def bare(obj: Json) -> Json:
    """Return the object without its managedFields."""
    meta = obj.get("metadata")
    if type(meta) is dict and "managedFields" in meta:
        return {**obj, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}
    return obj


class Comparisons:
    """The changes of a write in each version, computed on first use."""

    def __init__(self, old: Json, new: Json, handlers: Versions, subresource: str) -> None:
        self.old, self.new, self.handlers, self.subresource = old, new, handlers, subresource
        self._made: dict[str, tuple[Set, Set] | None] = {}

    def of(self, api_version: str) -> tuple[Set, Set] | None:
        """Return the removed fields, and the modified or added ones; None for a version that is not served."""
        if api_version not in self._made:
            self._made[api_version] = self._compare(api_version)
        return self._made[api_version]

    def _compare(self, api_version: str) -> tuple[Set, Set] | None:
        handler = self.handlers.get(api_version)
        if handler is None and self.handlers.converter is not None:
            raise NotInVersion(f"failed to convert old object: request to convert CR to an invalid group/version: {api_version}")
        old = versioned(self.old, api_version, self.handlers)
        new = versioned(self.new, api_version, self.handlers)
        if handler is None or old is None or new is None:
            return None
        kind = type_of(handler)
        for name, was, now in (("old", self.old, old), ("new", self.new, new)):
            if now is not was:
                _require(now, kind, name)
        removed, modified, added = compare(old, new, kind)
        reset = list(handler.reset_fields(self.subresource))
        return without(removed, reset), without(union(modified, added), reset)


class NotInVersion(Exception):
    """An object does not fit the schema of a version in which a manager owns fields."""


def _require(obj: Json, kind: MergeType, name: str) -> None:
    try:
        check(obj, kind, duplicates=True)
    except SchemaMismatch as e:
        raise NotInVersion(f"failed to convert {name} object: {e}") from None


def take(managers: Managers, comparisons: Comparisons, actor: Identity | None, *, force: bool) -> Managers:
    """Return the managers after a change: only `actor` keeps fields that changed or were removed. Raises Conflicts unless forced."""
    conflicts: dict[Identity, Set] = {}
    left: Managers = {}
    for identity, entry in managers.items():
        if identity == actor:
            left[identity] = entry
            continue
        compared = comparisons.of(entry.api_version)
        if compared is None:
            continue
        removed, changed = compared
        fields = entry.fields
        if changed:
            lost = intersection(fields, changed)
            if lost:
                conflicts[identity] = lost
                fields = difference(fields, lost)
        if removed:
            fields = difference(fields, removed)
        if fields is entry.fields:
            left[identity] = entry
        elif fields:
            left[identity] = Entry(entry.manager, entry.operation, entry.api_version, entry.subresource, entry.time, fields)
    if conflicts and not force:
        raise Conflicts({i: (managers[i], lost) for i, lost in conflicts.items()})
    return left


class Conflicts(Exception):
    def __init__(self, found: dict[Identity, tuple[Entry, Set]]) -> None:
        super().__init__()
        self.found = found

    def status(self) -> StatusError:
        """Return the error (409) that names every field and its manager."""
        flat = [(e, "".join(show_element(s) for s in path)) for e, fields in self.found.values() for path in paths(fields)]
        causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {e.shown()}", "field": path} for e, path in flat]
        if len(flat) == 1:
            entry, path = flat[0]
            return apply_conflict(causes, f"Apply failed with 1 conflict: conflict with {entry.shown()}: {path}")
        lines = []
        for entry, fields in sorted(self.found.values(), key=lambda f: f[0].sort_key):
            lines.append(f"conflicts with {entry.shown()}:")
            lines.extend("- " + "".join(show_element(s) for s in path) for path in paths(fields))
        return apply_conflict(causes, f"Apply failed with {len(flat)} conflicts: " + "\n".join(lines))


def zero_object(handler: KindHandler) -> Json:
    """Return the zero object of a kind, with which a create is compared."""
    zero: Json = handler.schema.zero()
    return {"apiVersion": handler.gvk.api_version, "kind": handler.gvk.kind, **zero}
