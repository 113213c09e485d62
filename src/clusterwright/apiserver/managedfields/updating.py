"""Set managedFields after a write other than apply."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.managedfields.managers import (
    MAXIMUM_MANAGERS,
    STRIPPED,
    Comparisons,
    Entry,
    Identity,
    Managers,
    NotInVersion,
    bare,
    decode,
    take,
    versioned,
    written,
    zero_object,
)
from clusterwright.apiserver.managedfields.merging import SchemaMismatch
from clusterwright.apiserver.managedfields.sets import (
    Set,
    contains,
    difference,
    union,
)

_MAXIMUM_UPDATERS: Final = 10


def update(old: Json | None, new: Json, *, manager: str, subresource: str, time: str, handlers: Versions) -> None:
    """Set `new.metadata.managedFields` after a write other than apply, in place."""
    meta = new["metadata"]
    sent = meta.pop("managedFields", None)
    kept = old["metadata"].get("managedFields") if old is not None else None
    managers = _sent_or_kept(sent, kept, subresource)
    if not managers and old is not None:
        return  # the object has no managers: tracking begins with the first apply
    api_version = str(new.get("apiVersion") or "")
    handler = handlers.get(api_version)
    if handler is None:
        if kept:
            meta["managedFields"] = kept
        return
    live = bare(versioned(old, api_version, handlers) or {}) if old is not None else zero_object(handler)
    comparisons = Comparisons(live, new, handlers, subresource)
    try:
        compared = comparisons.of(api_version)
    except SchemaMismatch:
        # items of a list cannot be identified: keep the managers
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
    try:
        managers = take(managers, comparisons, None, force=True)
    except NotInVersion:
        return  # owners are unknown now
    own = difference(changed, STRIPPED) if "f:metadata" in changed or "f:kind" in changed or "f:apiVersion" in changed else changed
    _join(managers, identity, previous, own, removed, time)
    managers = _cap(managers)
    if managers:
        meta["managedFields"] = _settle(written(managers), kept)


def _join(managers: Managers, identity: Identity, previous: Entry | None, own: Set, removed: Set, time: str) -> None:
    """Add the changed fields to the writer's entry."""
    name, operation, api_version, subresource = identity
    if previous is None:
        if own:
            managers[identity] = Entry(name, operation, api_version, subresource, time, own)
        return
    left = difference(previous.fields, removed) if removed else previous.fields
    if left == previous.fields and contains(left, own):
        managers[identity] = previous
        if own:
            previous.time = time
        return
    fields = union(left, own)
    if fields:
        managers[identity] = Entry(name, operation, api_version, subresource, time if own else previous.time, fields)


def _sent_or_kept(sent: Any, kept: Any, subresource: str) -> Managers:
    if not subresource and sent is not None:
        if sent in ([], [{}]):
            return {}
        if sent is not kept and sent != kept and len(sent) <= max(MAXIMUM_MANAGERS, len(kept or ())):
            decoded = decode(sent)
            if decoded:
                return decoded
    return decode(kept) or {}


def _settle(entries: list[Json], kept: Any) -> list[Json]:
    """Return the old entries if only their order differs, so that a write without changes stores nothing."""
    if type(kept) is list and len(kept) == len(entries) and all(entry in kept for entry in entries):
        return kept
    return entries


def _cap(managers: Managers) -> Managers:
    """Merge the oldest managers that update if there are more than ten."""
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
            out[bucket] = Entry("ancient-changes", "Update", entry.api_version, "", start.time, start.fields)
        out[bucket] = Entry("ancient-changes", "Update", entry.api_version, "", entry.time, union(entry.fields, out[bucket].fields))
        del out[identity]
        count -= 1
    return out
