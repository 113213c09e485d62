"""Garbage collection: it begins within the request that causes it and continues in steps, without timers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Final, NamedTuple

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Entry, Event, Table
from clusterwright.apiserver.system import loading

_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"
_COMPONENT: Final = "garbage-collector-controller"
_MANY: Final = 1000
"""The number of owners from which an object is examined in a step of its own."""
_EVENTS: Final = 25
"""The most Events about owners of one object, as in client-go."""


class _Reference(msgspec.Struct, rename="camel", gc=False, frozen=True):
    uid: str = ""
    block_owner_deletion: bool | None = None


class OwnedMeta(msgspec.Struct, rename="camel", gc=False):
    """Owners, finalizers, and whether the object is being deleted."""

    owner_references: tuple[_Reference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class _Owned(msgspec.Struct, gc=False):
    metadata: OwnedMeta = msgspec.field(default_factory=OwnedMeta)


class _NamedOwner(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class _NamedMeta(msgspec.Struct, rename="camel", gc=False):
    owner_references: tuple[_NamedOwner, ...] | None = None


class _Dependent(msgspec.Struct, gc=False):
    metadata: _NamedMeta = msgspec.field(default_factory=_NamedMeta)


_owned = msgspec.json.Decoder(_Owned, strict=False).decode
_dependent = msgspec.json.Decoder(_Dependent, strict=False).decode
Place = tuple[str, str]
"""Table name and key."""


def owned_meta(entry: Entry) -> OwnedMeta:
    """Read the metadata that decides about an object's life; return empty metadata if it is malformed."""
    try:
        return _owned(entry.raw).metadata
    except msgspec.DecodeError:
        return OwnedMeta()


def _named_owners(entry: Entry) -> tuple[_NamedOwner, ...]:
    """Read the owner references of an object with all fields that identify owners."""
    try:
        return _dependent(entry.raw).metadata.owner_references or ()
    except msgspec.DecodeError:
        return ()


class _Reach(NamedTuple):
    """Dependents of an owner in one namespace; None: in all of them."""

    uid: str
    namespace: str | None


class Collector:
    """Deletes objects that lost all their owners; finishes foreground and orphan deletions.

    A change only needs the changed object and its owners. Only the deletion of an owner needs all its dependents: once, in steps.
    Dependents that block a deletion are counted.
    """

    def __init__(self, server: Core) -> None:
        self.server = server
        self._objects: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        self._owners: dict[Place, tuple[_Reference, ...]] = {}
        self._blocking: Counter[_Reach] = Counter()
        """Dependents with blockOwnerDeletion."""
        self._deleting: dict[str, str] = {}
        """Owners in foreground or orphan deletion, with the finalizer for it."""
        for table in server.store.tables.values():
            for entry in table.objects.values():
                self._index(table, entry)
        server.store.listeners.append(self.offer)
        server.in_steps(self._resume(list(self._objects), list(self._owners)))

    def _resume(self, uids: list[str], places: list[Place]) -> Iterator[int]:
        """Resume deletions that were in progress when the server stopped."""
        for uid in uids:
            found = self._entry(self._objects.get(uid))
            if found is not None and b'"deletionTimestamp":' in found[1].raw:
                self._begin(uid, owned_meta(found[1]))
            yield 0
        for place in places:
            yield self._examine(place)

    def _index(self, table: Table, entry: Entry) -> OwnedMeta:
        place = (table.name, entry.key)
        meta = owned_meta(entry)
        self._objects[entry.uid] = place
        references = meta.owner_references or ()
        before = self._owners.get(place, ())
        if references != before:
            self._count(entry.namespace, before, -1)
            self._count(entry.namespace, references, 1)
            for uid in {r.uid for r in before} - {r.uid for r in references}:
                self._forget(uid, place)
            for reference in references:
                self._dependents.setdefault(reference.uid, {})[place] = None
            if references:
                self._owners[place] = references
            else:
                self._owners.pop(place, None)
        return meta

    def _count(self, namespace: str, references: Iterable[_Reference], by: int) -> None:
        for uid in {r.uid for r in references if r.block_owner_deletion}:
            for reach in (_Reach(uid, namespace), _Reach(uid, None)):
                self._blocking[reach] += by
                if not self._blocking[reach]:
                    del self._blocking[reach]

    def _forget(self, uid: str, place: Place) -> None:
        dependents = self._dependents.get(uid)
        if dependents is not None:
            dependents.pop(place, None)
            if not dependents:
                del self._dependents[uid]

    def offer(self, table: Table, event: Event) -> None:
        """Handle a change."""
        entry, place = event.entry, (table.name, event.entry.key)
        before = self._owners.get(place, ())
        if event.type == "DELETED":
            self._count(entry.namespace, self._owners.pop(place, ()), -1)
            for uid in {r.uid for r in before}:
                self._forget(uid, place)
            if self._objects.get(entry.uid) == place:
                del self._objects[entry.uid]
            self._deleting.pop(entry.uid, None)
            if entry.uid in self._dependents:
                self.server.in_steps(self._examine_dependents(entry.uid))
        else:
            meta = self._index(table, entry)
            self._begin(entry.uid, meta)
            if meta.owner_references and before != meta.owner_references:
                self._look_at(place, {r.uid for r in meta.owner_references} - {r.uid for r in before})
        if before and self._deleting:
            for uid in {r.uid for r in before} & self._deleting.keys():
                if not self._is_blocked(uid):
                    self.server.later(lambda u=uid: self._finish(u))  # type: ignore[misc]

    def _begin(self, uid: str, meta: OwnedMeta) -> None:
        """Start a foreground or orphan deletion when an object first has its finalizer and a deletion timestamp."""
        finalizers = meta.finalizers or () if meta.deletion_timestamp else ()
        wanted = next((f for f in (_ORPHAN, _FOREGROUND) if f in finalizers), "")
        if wanted == self._deleting.get(uid, ""):
            return
        if not wanted:
            del self._deleting[uid]
            return
        self._deleting[uid] = wanted
        self.server.in_steps(self._orphan(uid) if wanted == _ORPHAN else self._delete_dependents(uid))

    def _entry(self, place: Place | None) -> tuple[Table, Entry] | None:
        table = self.server.store.tables.get(place[0]) if place is not None else None
        entry = table.objects.get(place[1]) if table is not None and place is not None else None
        return None if table is None or entry is None else (table, entry)

    def _owner_exists(self, uid: str, dependent: Entry) -> bool:
        """Return whether an owner exists where the dependent may have one: in its namespace or at cluster scope."""
        found = self._entry(self._objects.get(uid))
        return found is not None and found[1].namespace in {"", dependent.namespace}

    def _examine(self, place: Place) -> int:
        """Delete a dependent whose owners are all absent or wait for it; drop references to these if it has other owners.

        A cluster-scoped object that names an owner of a namespaced kind stays as it is, as in Kubernetes. Return the object's size.
        """
        found = self._entry(place)
        if found is None:
            return 0
        self._give_up(place, self._absent(place, found[1]))
        return len(found[1].raw)

    def _absent(self, place: Place, dependent: Entry) -> Set[str]:
        """Return the owners of a dependent that are absent or wait for it."""
        uids = {r.uid for r in self._owners.get(place, ())}
        return {u for u in uids if self._deleting.get(u) == _FOREGROUND or not self._owner_exists(u, dependent)}

    def _give_up(self, place: Place, dropped: Set[str]) -> None:
        found = self._entry(place)
        if found is None:
            return
        table, entry = found
        if dropped and not owned_meta(entry).deletion_timestamp and not self._names_namespaced_owner(entry):
            resource = self.server.registry.of_table(table.name)
            if any(r.uid not in dropped for r in self._owners.get(place, ())):
                self._drop(place, dropped)
            elif resource is not None:
                self.server.delete_system(table, entry, resource)

    def _names_namespaced_owner(self, entry: Entry) -> bool:
        return not entry.namespace and any(self._is_namespaced(owner) for owner in _named_owners(entry))

    def _is_namespaced(self, owner: _NamedOwner) -> bool:
        group, _, version = owner.api_version.rpartition("/")
        resource = self.server.registry.by_kind(group, version, owner.kind)
        return resource is not None and resource.namespaced

    def _look_at(self, place: Place, added: Set[str]) -> None:
        """Examine an object whose owners changed: after the request, or if they are many, in a later step."""
        if len(self._owners[place]) <= _MANY:
            self.server.later(lambda: self._examine_new(place, added))
        else:
            self.server.in_steps(self._examine_large(place, added))

    def _examine_large(self, place: Place, added: Set[str]) -> Iterator[int]:
        found = self._entry(place)
        if found is not None:
            size = len(found[1].raw)
            yield size
            self._report(place, added)
            yield size
            absent = self._absent(place, found[1])
            yield size
            if self._entry(place) == found:
                self._give_up(place, absent)

    def _examine_new(self, place: Place, added: Set[str]) -> None:
        self._report(place, added)
        self._examine(place)

    def _report(self, place: Place, added: Set[str]) -> None:
        """Write an Event for owners that exist in a namespace where the object cannot have owners."""
        found = self._entry(place)
        if found is None or all(self._is_possible(uid, found[1]) for uid in added):
            return
        wrong = [owner for owner in _named_owners(found[1]) if owner.uid in added and not self._is_possible(owner.uid, found[1])]
        loading.ensure(self.server, (self._event(found[1], owner) for owner in wrong[:_EVENTS]), update=False)

    def _is_possible(self, uid: str, dependent: Entry) -> bool:
        return self._entry(self._objects.get(uid)) is None or self._owner_exists(uid, dependent)

    def _event(self, dependent: Entry, owner: _NamedOwner) -> Json:
        now, where = self.server.timestamp(), dependent.namespace
        shown = f"[{owner.api_version}/{owner.kind}, namespace: {where}, name: {owner.name}, uid: {owner.uid}]"
        obj = msgspec.json.decode(dependent.raw)
        about = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "name": dependent.name, "uid": dependent.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{dependent.name}.{self.server.random.getrandbits(64):016x}", "namespace": where or "default"},
            "involvedObject": about | ({"namespace": where} if where else {}),
            "reason": "OwnerRefInvalidNamespace",
            "message": f'ownerRef {shown} does not exist in namespace "{where}"',
            "type": "Warning",
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _drop(self, place: Place, uids: Set[str]) -> int:
        """Remove references to these owners from an object. Return the size of the object."""
        found = self._entry(place)
        if found is None:
            return 0
        table, entry = found
        obj = msgspec.json.decode(entry.raw)
        kept = [r for r in obj["metadata"].get("ownerReferences") or () if r.get("uid") not in uids]
        if kept:
            obj["metadata"]["ownerReferences"] = kept
        else:
            obj["metadata"].pop("ownerReferences", None)
        self.server.put_system(table, entry, obj)
        return len(entry.raw)

    def _examine_dependents(self, uid: str) -> Iterator[int]:
        for place in list(self._dependents.get(uid, ())):
            yield self._examine(place)

    def _delete_dependents(self, uid: str) -> Iterator[int]:
        """Run a foreground deletion: delete the dependents, then the owner unless some of them block it."""
        yield from self._examine_dependents(uid)
        self._finish(uid)

    def _orphan(self, uid: str) -> Iterator[int]:
        """Run an orphan deletion: remove the owner from the dependents, including new ones, then delete the owner."""
        done: set[Place] = set()
        while todo := [place for place in self._dependents.get(uid, ()) if place not in done]:
            for place in todo:
                done.add(place)
                yield self._drop(place, {uid})
        self._release(uid, _ORPHAN)

    def _is_blocked(self, uid: str) -> bool:
        """Return whether a dependent blocks the deletion of its owner; one in another namespace does not."""
        found = self._entry(self._objects.get(uid))
        return found is not None and _Reach(uid, found[1].namespace or None) in self._blocking

    def _finish(self, uid: str) -> None:
        """Finish the foreground deletion of an owner if nothing blocks it."""
        if self._deleting.get(uid) == _FOREGROUND and not self._is_blocked(uid):
            self._release(uid, _FOREGROUND)

    def _release(self, uid: str, finalizer: str) -> None:
        found = self._entry(self._objects.get(uid))
        if found is not None:
            self.server.drop_finalizer(*found, msgspec.json.decode(found[1].raw), finalizer)
