"""The managers of an object's fields: what a write takes from whom, and what applying a configuration makes of an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import KindHandler
from clusterwright.apiserver.managedfields.merging import SchemaMismatch, check, compare, field_set, merge, remove, show_element
from clusterwright.apiserver.managedfields.sets import (
    Set,
    contains,
    difference,
    dump,
    intersection,
    load,
    paths,
    union,
    with_named_fields,
    without,
)
from clusterwright.apiserver.managedfields.types import MergeType
from clusterwright.apiserver.status import StatusError, apply_conflict, bad_request, failure
from clusterwright.golang.quoting import quote

_MAXIMUM_UPDATERS: Final = 10
_STRIPPED: Final[Set] = {
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
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_encode = msgspec.json.Encoder(order="sorted").encode

Identity = tuple[str, str, str, str]
"""manager, operation, apiVersion (empty for Apply), subresource: what tells entries apart."""


@dataclass(slots=True)
class _Entry:
    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str | None
    fields: Set
    raw: Json | None = None
    """The entry as it was read, while its fields are those."""

    @property
    def identity(self) -> Identity:
        return (self.manager, self.operation, "" if self.operation == "Apply" else self.api_version, self.subresource)

    def dump(self) -> Json:
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
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


Managers = dict[Identity, _Entry]


@lru_cache(maxsize=4096)
def _load_fields(fields: bytes) -> Set:
    return load(msgspec.json.decode(fields))


def _decode(entries: Any) -> Managers | None:
    """The managers of a list of entries; None if one of them is malformed."""
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
            decoded = _load_fields(_encode(fields if fields is not None else {}))
        except (ValueError, RecursionError):
            return None
        made = _Entry(
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


def _dump(managers: Managers) -> list[Json]:
    entries = sorted(managers.values(), key=lambda e: (e.operation, e.time or "", e.manager, e.api_version, e.subresource))
    return [e.dump() for e in entries]


def _type_of(handler: KindHandler) -> MergeType:
    kind: MergeType = handler.schema.merge_type
    return kind


def _versioned(obj: Json, api_version: str, handlers: Mapping[str, KindHandler]) -> Json | None:
    """The object as another version shows it; None if there is no such version."""
    handler = handlers.get(api_version)
    if handler is None:
        return None
    if obj.get("apiVersion") == api_version:
        return obj
    source = handlers.get(str(obj.get("apiVersion")))
    copied: Json = msgspec.json.decode(msgspec.json.encode(obj))
    return (source or handler).convert(copied, api_version)


def _bare(obj: Json) -> Json:
    meta = obj.get("metadata")
    if type(meta) is dict and "managedFields" in meta:
        return {**obj, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}
    return obj


class _Comparisons:
    """What a write changes, as each version sees it."""

    def __init__(self, old: Json, new: Json, handlers: Mapping[str, KindHandler], subresource: str) -> None:
        self.old, self.new, self.handlers, self.subresource = old, new, handlers, subresource
        self._made: dict[str, tuple[Set, Set] | None] = {}

    def of(self, api_version: str) -> tuple[Set, Set] | None:
        """What is removed, and what is modified or added; None for a version that is not served."""
        if api_version not in self._made:
            self._made[api_version] = self._compare(api_version)
        return self._made[api_version]

    def _compare(self, api_version: str) -> tuple[Set, Set] | None:
        handler = self.handlers.get(api_version)
        old = _versioned(self.old, api_version, self.handlers)
        new = _versioned(self.new, api_version, self.handlers)
        if handler is None or old is None or new is None:
            return None
        removed, modified, added = compare(old, new, _type_of(handler))
        reset = list(handler.reset_fields(self.subresource))
        return without(removed, reset), without(union(modified, added), reset)


def _take(managers: Managers, comparisons: _Comparisons, actor: Identity | None, *, force: bool) -> Managers:
    """The managers after a change: what was changed or removed belongs to nobody but `actor`. Raises _Conflicts unless forced."""
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
            left[identity] = _Entry(entry.manager, entry.operation, entry.api_version, entry.subresource, entry.time, fields)
    if conflicts and not force:
        raise _Conflicts({i: (managers[i], lost) for i, lost in conflicts.items()})
    return left


class _Conflicts(Exception):
    def __init__(self, found: dict[Identity, tuple[_Entry, Set]]) -> None:
        super().__init__()
        self.found = found

    def status(self) -> StatusError:
        flat = [(e, "".join(show_element(s) for s in path)) for e, fields in self.found.values() for path in paths(fields)]
        causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {e.shown()}", "field": path} for e, path in flat]
        if len(flat) == 1:
            entry, path = flat[0]
            return apply_conflict(causes, f"Apply failed with 1 conflict: conflict with {entry.shown()}: {path}")
        lines = []
        for entry, fields in sorted(self.found.values(), key=lambda f: _encode({"manager": f[0].manager, "operation": f[0].operation})):
            lines.append(f"conflicts with {entry.shown()}:")
            lines.extend("- " + "".join(show_element(s) for s in path) for path in paths(fields))
        return apply_conflict(causes, f"Apply failed with {len(flat)} conflicts: " + "\n".join(lines))


# ---------------------------------------------------------------- update


def update(old: Json | None, new: Json, *, manager: str, subresource: str, time: str, handlers: Mapping[str, KindHandler]) -> None:
    """Set `new.metadata.managedFields` after a write that is not an apply, in place."""
    meta = new["metadata"]
    sent = meta.pop("managedFields", None)
    kept = old["metadata"].get("managedFields") if old is not None else None
    managers = _sent_or_kept(sent, kept, subresource)
    if not managers and old is not None:
        return  # nobody tracked it so far: tracking begins with the first apply
    api_version = str(new.get("apiVersion") or "")
    handler = handlers.get(api_version)
    if handler is None:
        if kept:
            meta["managedFields"] = kept
        return
    live = _bare(_versioned(old, api_version, handlers) or {}) if old is not None else _empty(handler)
    comparisons = _Comparisons(live, new, handlers, subresource)
    try:
        compared = comparisons.of(api_version)
    except SchemaMismatch:
        # lists whose items cannot be told apart: ownership stays as it was
        if kept:
            meta["managedFields"] = kept
        return
    assert compared is not None
    removed, changed = compared
    if not removed and not changed and kept is not None and (sent is None or sent == kept):
        meta["managedFields"] = kept
        return
    identity: Identity = (manager or "unknown", "Update", api_version, subresource)
    previous = managers.pop(identity, None)
    managers = _take(managers, comparisons, None, force=True)
    own = difference(changed, _STRIPPED) if "f:metadata" in changed or "f:kind" in changed or "f:apiVersion" in changed else changed
    _join(managers, identity, previous, own, removed, time)
    managers = _cap(managers)
    if managers:
        meta["managedFields"] = _settle(_dump(managers), kept)


def _join(managers: Managers, identity: Identity, previous: _Entry | None, own: Set, removed: Set, time: str) -> None:
    """Add what a write changed to the writer's entry."""
    name, operation, api_version, subresource = identity
    if previous is None:
        if own:
            managers[identity] = _Entry(name, operation, api_version, subresource, time, own)
        return
    left = difference(previous.fields, removed) if removed else previous.fields
    if left == previous.fields and contains(left, own):
        managers[identity] = previous
        if own:
            previous.time = time
        return
    fields = union(left, own)
    if fields:
        managers[identity] = _Entry(name, operation, api_version, subresource, time if own else previous.time, fields)


def _sent_or_kept(sent: Any, kept: Any, subresource: str) -> Managers:
    if not subresource and sent is not None:
        if sent in ([], [{}]):
            return {}
        if sent is not kept and sent != kept:
            decoded = _decode(sent)
            if decoded:
                return decoded
    return _decode(kept) or {}


def _settle(entries: list[Json], kept: Any) -> list[Json]:
    """The old entries where nothing but times differ, so that a write that changes nothing is seen to change nothing."""
    if type(kept) is list and len(kept) == len(entries):
        plain = [{k: v for k, v in e.items() if k != "time"} for e in entries]
        if all(p in plain for p in ({k: v for k, v in e.items() if k != "time"} for e in kept)):
            by_entry = {_encode({k: v for k, v in e.items() if k != "time"}): e for e in kept}
            times = [by_entry[_encode(p)].get("time") for p in plain if _encode(p) in by_entry]
            if len(times) == len(entries) and times == [e.get("time") for e in entries]:
                return kept
    return entries


def _empty(handler: KindHandler) -> Json:
    """What a create is compared with: the kind's zero object."""
    zero: Json = handler.schema.zero()
    return {"apiVersion": handler.gvk.api_version, "kind": handler.gvk.kind, **zero}


def _cap(managers: Managers) -> Managers:
    """At most ten updaters: the oldest are put together."""
    updaters = [i for i, e in managers.items() if e.operation == "Update"]
    if len(updaters) <= _MAXIMUM_UPDATERS:
        return managers
    updaters.sort(key=lambda i: (managers[i].time or "", i))
    out = dict(managers)
    count = len(updaters)
    first: dict[str, Identity] = {}
    for identity in updaters:
        if count <= _MAXIMUM_UPDATERS:
            break
        entry = out[identity]
        bucket: Identity = ("ancient-changes", "Update", entry.api_version, "")
        if entry.api_version not in first:
            first[entry.api_version] = identity
            continue
        if bucket not in out:
            start = out.pop(first[entry.api_version])
            out[bucket] = _Entry("ancient-changes", "Update", entry.api_version, "", start.time, start.fields)
        out[bucket] = _Entry("ancient-changes", "Update", entry.api_version, "", entry.time, union(entry.fields, out[bucket].fields))
        del out[identity]
        count -= 1
    return out


# ---------------------------------------------------------------- apply


def apply(
    live: Json | None,
    applied: Json,
    *,
    manager: str,
    force: bool,
    subresource: str,
    time: str,
    handlers: Mapping[str, KindHandler],
) -> Json:
    """The object that server-side apply makes, with its managedFields; `live` None means create. Raises StatusError."""
    api_version = str(applied.get("apiVersion") or "")
    handler = handlers.get(api_version)
    if handler is None or applied.get("kind") != handler.gvk.kind:
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={applied.get('kind') or ''}")
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    kind = _type_of(handler)
    applied = _without_nulls(applied)
    try:
        check(applied, kind)
    except SchemaMismatch as e:
        meta = applied.get("metadata") or {}
        named = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {_go_gvk(handler)}"
        raise failure(500, "", f"failed to create typed patch object ({named}): {e}") from None
    kept = live["metadata"].get("managedFields") if live is not None else None
    base = _bare(_versioned(live, api_version, handlers) or {}) if live is not None else _empty(handler)
    managers = _decode(kept) or {}
    if not managers and live is not None:
        # what was there before the first apply belongs to somebody, if only by name
        compared = _Comparisons(_empty(handler), base, handlers, subresource).of(api_version)
        before = difference(compared[1], _STRIPPED) if compared is not None else {}
        if before:
            identity: Identity = ("before-first-apply", "Update", api_version, subresource)
            managers[identity] = _Entry(identity[0], "Update", api_version, subresource, time, before)
    try:
        result, managers = _apply(base, applied, kind, api_version, managers, manager, force, subresource, handlers)
    except _Conflicts as conflicts:
        if manager != "kubectl" or not _allowed_by_last_applied(conflicts, base, handler):
            raise conflicts.status() from None
        result, managers = _apply(base, applied, kind, api_version, managers, manager, True, subresource, handlers)
    actor: Identity = (manager, "Apply", "", subresource)
    entry = managers.get(actor)
    if entry is not None:
        # an apply that changes nothing but owners has no time of its own
        entry.time = time if result != base else entry.time
    meta = dict(result.get("metadata") or {})
    entries = _dump(managers)
    meta.pop("managedFields", None)
    if entries:
        meta["managedFields"] = entries
    result["metadata"] = meta
    _refresh_last_applied(result, applied, manager)
    return result


def _without_nulls(applied: Json) -> Json:
    meta = applied.get("metadata")
    if type(meta) is dict and any(v is None for v in meta.values()):
        return {**applied, "metadata": {k: v for k, v in meta.items() if v is not None}}
    return applied


def _go_gvk(handler: KindHandler) -> str:
    gvk = handler.gvk
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _apply(
    base: Json,
    applied: Json,
    kind: MergeType,
    api_version: str,
    managers: Managers,
    manager: str,
    force: bool,
    subresource: str,
    handlers: Mapping[str, KindHandler],
) -> tuple[Json, Managers]:
    actor: Identity = (manager, "Apply", "", subresource)
    managers = dict(managers)
    last = managers.get(actor)
    merged: Json = merge(base, applied, kind)
    handler = handlers[api_version]
    fields = without(field_set(applied, kind), list(handler.reset_fields(subresource)))
    managers[actor] = _Entry(manager, "Apply", api_version, subresource, last.time if last is not None else None, fields)
    if last is not None and last.fields:
        merged = _prune(merged, managers, last, api_version, handlers)
    managers = _take(managers, _Comparisons(base, merged, handlers, subresource), actor, force=force)
    own = difference(fields, _STRIPPED)
    if own:
        managers[actor] = _Entry(manager, "Apply", api_version, subresource, last.time if last is not None else None, own)
    else:
        managers.pop(actor, None)
    return merged, managers


def _prune(merged: Json, managers: Managers, last: _Entry, api_version: str, handlers: Mapping[str, KindHandler]) -> Json:
    """Remove what the applier owned, applies no longer, and nobody else owns."""
    version = last.api_version
    handler = handlers.get(version)
    converted = _versioned(merged, version, handlers)
    if handler is None or converted is None:
        return merged
    kind = _type_of(handler)
    owned_before = with_named_fields(last.fields, kind)
    pruned = remove(converted, owned_before, kind)
    by_version: dict[str, Set] = {}
    for entry in managers.values():
        by_version[entry.api_version] = union(by_version.get(entry.api_version, {}), entry.fields)
    ordered = [version, *(v for v in by_version if v != version)]
    whole, current = converted, pruned
    for each in ordered:
        owned = by_version.get(each)
        if owned is None or each not in handlers:
            continue
        whole_there, current_there = _versioned(whole, each, handlers), _versioned(current, each, handlers)
        if whole_there is None or current_there is None:
            continue
        there = _type_of(handlers[each])
        present = with_named_fields(field_set(whole_there, there), there)
        remaining = with_named_fields(field_set(current_there, there), there)
        cut = difference(present, union(remaining, with_named_fields(owned, there)))
        whole, current = whole_there, remove(whole_there, cut, there)
    back = _versioned(current, version, handlers)
    if back is None:
        return merged
    present = with_named_fields(field_set(converted, kind), kind)
    remaining = with_named_fields(field_set(back, kind), kind)
    result = remove(converted, intersection(difference(present, remaining), owned_before), kind)
    final = _versioned(result, api_version, handlers)
    return final if final is not None else result


def _allowed_by_last_applied(conflicts: _Conflicts, base: Json, handler: KindHandler) -> bool:
    """Whether everything in conflict was set by client-side `kubectl apply`, whose successor the applier is."""
    text = ((base.get("metadata") or {}).get("annotations") or {}).get(_LAST_APPLIED)
    if not text:
        return False
    try:
        last = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    if type(last) is not dict:
        return False
    allowed = field_set(last, _type_of(handler))
    allowed = union(allowed, {"f:metadata": {"f:annotations": {f"f:{_LAST_APPLIED}": {".": {}}}}})
    remaining: list[Set] = [difference(fields, allowed) for _, fields in conflicts.found.values()]
    return not any(remaining)


def _refresh_last_applied(result: Json, applied: Json, manager: str) -> None:
    """Kubectl's server-side apply keeps the annotation of its client-side apply in step."""
    annotations = result["metadata"].get("annotations")
    if manager != "kubectl" or type(annotations) is not dict or not annotations.get(_LAST_APPLIED):
        return
    meta = dict(applied.get("metadata") or {})
    if type(meta.get("annotations")) is dict:
        rest = {k: v for k, v in meta["annotations"].items() if k != _LAST_APPLIED}
        meta["annotations"] = rest
        if not rest:
            del meta["annotations"]
    text = _encode({**applied, "metadata": meta}).decode() + "\n"
    result["metadata"]["annotations"] = {**annotations, _LAST_APPLIED: text}
