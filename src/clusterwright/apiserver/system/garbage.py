"""Garbage collection: within the request that made the garbage, so that nothing waits for a timer."""

from __future__ import annotations

from typing import Final

import msgspec

from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Entry, Event, Table

_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"


class _Reference(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    block_owner_deletion: bool | None = None


class OwnedMeta(msgspec.Struct, rename="camel", gc=False):
    """Owners, finalizers, and whether the object is being deleted."""

    owner_references: tuple[_Reference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class _Owned(msgspec.Struct, gc=False):
    metadata: OwnedMeta = msgspec.field(default_factory=OwnedMeta)


_owned = msgspec.json.Decoder(_Owned, strict=False).decode
Place = tuple[str, str]
"""Table name and key."""


def owned_meta(entry: Entry) -> OwnedMeta:
    """What of an entry's metadata decides about its life; nothing of one of any other shape."""
    try:
        return _owned(entry.raw).metadata
    except msgspec.DecodeError:
        return OwnedMeta()


class Collector:
    """Deletes what has lost all its owners; finishes foreground and orphan deletions."""

    def __init__(self, server: Core) -> None:
        self.server = server
        self._objects: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        self._owners: dict[Place, tuple[str, ...]] = {}
        for table in server.store.tables.values():
            for entry in table.objects.values():
                self._index(table, entry)
        server.store.listeners.append(self.offer)
        for place in list(self._owners):
            server.later(lambda place=place: self._examine(place))  # type: ignore[misc]

    def _index(self, table: Table, entry: Entry) -> OwnedMeta:
        place = (table.name, entry.key)
        meta = owned_meta(entry)
        uids = tuple(r.uid for r in meta.owner_references or ())
        for gone in set(self._owners.get(place, ())) - set(uids):
            self._forget(gone, place)
        if uids:
            self._owners[place] = uids
            for uid in uids:
                self._dependents.setdefault(uid, {})[place] = None
        else:
            self._owners.pop(place, None)
        self._objects[entry.uid] = place
        return meta

    def _forget(self, uid: str, place: Place) -> None:
        dependents = self._dependents.get(uid)
        if dependents is not None:
            dependents.pop(place, None)
            if not dependents:
                del self._dependents[uid]

    def offer(self, table: Table, event: Event) -> None:
        """Take note of a change and decide what follows from it."""
        entry, place = event.entry, (table.name, event.entry.key)
        if event.type == "DELETED":
            waiting = [u for u in self._owners.pop(place, ()) if u in self._objects]
            for uid in {r.uid for r in owned_meta(entry).owner_references or ()} | set(waiting):
                self._forget(uid, place)
            if self._objects.get(entry.uid) == place:
                del self._objects[entry.uid]
            for dependent in list(self._dependents.get(entry.uid, ())):
                self.server.later(lambda p=dependent: self._examine(p))  # type: ignore[misc]
            for uid in waiting:
                self.server.later(lambda u=uid: self._progress(u))  # type: ignore[misc]
            return
        meta = self._index(table, entry)
        if meta.deletion_timestamp and {_FOREGROUND, _ORPHAN} & set(meta.finalizers or ()):
            self.server.later(lambda: self._progress(entry.uid))
        before = owned_meta(event.old).owner_references if event.old is not None else None
        if before == meta.owner_references:
            return
        if meta.owner_references:
            self.server.later(lambda: self._examine(place))
        for uid in {r.uid for r in (*(before or ()), *(meta.owner_references or ()))}:  # it may have been what an owner waited for
            self.server.later(lambda u=uid: self._progress(u))  # type: ignore[misc]

    def _entry(self, place: Place) -> tuple[Table, Entry] | None:
        table = self.server.store.tables.get(place[0])
        entry = table.objects.get(place[1]) if table is not None else None
        return None if table is None or entry is None else (table, entry)

    def _owner_exists(self, uid: str, dependent: Entry) -> bool:
        place = self._objects.get(uid)
        found = self._entry(place) if place is not None else None
        return found is not None and found[1].namespace in {"", dependent.namespace}

    def _examine(self, place: Place) -> None:
        """Delete a dependent none of whose owners exists; drop references to owners that do not while others do."""
        found = self._entry(place)
        if found is None:
            return
        table, entry = found
        meta = owned_meta(entry)
        references = meta.owner_references or ()
        if not references or meta.deletion_timestamp:
            return
        absent = {r.uid for r in references if not self._owner_exists(r.uid, entry)}
        if not absent:
            return
        if len(absent) == len({r.uid for r in references}):
            self._delete(table, entry)
            return
        solid = [u for u in {r.uid for r in references} - absent if not self._is_foreground(u)]
        if not solid and absent:
            self._delete(table, entry)
            return
        obj = msgspec.json.decode(entry.raw)
        obj["metadata"]["ownerReferences"] = [r for r in obj["metadata"]["ownerReferences"] if r.get("uid") not in absent]
        self.server.put_system(table, entry, obj)

    def _is_foreground(self, uid: str) -> bool:
        place = self._objects.get(uid)
        found = self._entry(place) if place is not None else None
        if found is None:
            return False
        meta = owned_meta(found[1])
        return bool(meta.deletion_timestamp) and _FOREGROUND in (meta.finalizers or ())

    def _delete(self, table: Table, entry: Entry) -> None:
        resource = self.server.registry.of_table(table.name)
        if resource is not None and not owned_meta(entry).deletion_timestamp:
            self.server.delete_system(table, entry, resource)

    def _progress(self, uid: str) -> None:
        """Go on with the foreground or orphan deletion of an owner."""
        place = self._objects.get(uid)
        found = self._entry(place) if place is not None else None
        if found is None:
            return
        table, entry = found
        meta = owned_meta(entry)
        finalizers = meta.finalizers or ()
        if not meta.deletion_timestamp:
            return
        dependents = [d for d in (self._entry(p) for p in list(self._dependents.get(uid, ()))) if d is not None]
        if _ORPHAN in finalizers:
            for dependent_table, dependent in dependents:
                obj = msgspec.json.decode(dependent.raw)
                kept = [r for r in obj["metadata"].get("ownerReferences") or () if r.get("uid") != uid]
                if kept:
                    obj["metadata"]["ownerReferences"] = kept
                else:
                    obj["metadata"].pop("ownerReferences", None)
                self.server.put_system(dependent_table, dependent, obj)
            self._release(table, entry, _ORPHAN)
            return
        if _FOREGROUND not in finalizers:
            return
        blocking = False
        for dependent_table, dependent in dependents:
            references = [r for r in owned_meta(dependent).owner_references or () if r.uid == uid]
            others = [
                r.uid
                for r in owned_meta(dependent).owner_references or ()
                if r.uid != uid and self._owner_exists(r.uid, dependent) and not self._is_foreground(r.uid)
            ]
            if others:
                obj = msgspec.json.decode(dependent.raw)
                obj["metadata"]["ownerReferences"] = [r for r in obj["metadata"]["ownerReferences"] if r.get("uid") != uid]
                self.server.put_system(dependent_table, dependent, obj)
                continue
            self._delete(dependent_table, dependent)
            remains = dependent_table.objects.get(dependent.key)
            if remains is not None and remains.uid == dependent.uid and any(r.block_owner_deletion for r in references):
                blocking = True
        if not blocking:
            self._release(table, entry, _FOREGROUND)

    def _release(self, table: Table, entry: Entry, finalizer: str) -> None:
        current = table.objects.get(entry.key)
        if current is None or current.uid != entry.uid:
            return
        obj = msgspec.json.decode(current.raw)
        self.server.drop_finalizer(table, current, obj, finalizer)
