"""What kube-controller-manager does for the API itself: garbage collection, emptying namespaces, aggregating roles.

Optional. Each reacts within the request that caused it, so that nothing waits for a timer.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.registry import storage_key
from clusterwright.apiserver.selectors import object_selector
from clusterwright.apiserver.storage.store import Entry, Event, Table

if TYPE_CHECKING:
    from clusterwright.apiserver.interfaces import Resource
    from clusterwright.apiserver.server import ApiServer

_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
_EVENTS: Final = "events"
_EVENT_TTL: Final = timedelta(hours=1)
_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"


class _Reference(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    block_owner_deletion: bool | None = None


class _OwnedMeta(msgspec.Struct, rename="camel", gc=False):
    owner_references: tuple[_Reference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class _Owned(msgspec.Struct, gc=False):
    metadata: _OwnedMeta = msgspec.field(default_factory=_OwnedMeta)


_owned = msgspec.json.Decoder(_Owned, strict=False).decode
Place = tuple[str, str]
"""Table name and key."""


def _meta(entry: Entry) -> _OwnedMeta:
    try:
        return _owned(entry.raw).metadata
    except msgspec.DecodeError:
        return _OwnedMeta()


class Collector:
    """Deletes what has lost all its owners; finishes foreground and orphan deletions."""

    def __init__(self, server: ApiServer) -> None:
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

    def _index(self, table: Table, entry: Entry) -> _OwnedMeta:
        place = (table.name, entry.key)
        meta = _meta(entry)
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
            for uid in {r.uid for r in _meta(entry).owner_references or ()} | set(waiting):
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
        before = _meta(event.old).owner_references if event.old is not None else None
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
        meta = _meta(entry)
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
        meta = _meta(found[1])
        return bool(meta.deletion_timestamp) and _FOREGROUND in (meta.finalizers or ())

    def _delete(self, table: Table, entry: Entry) -> None:
        resource = self.server.resource_of(table.name)
        if resource is not None and not _meta(entry).deletion_timestamp:
            self.server.delete_system(table, entry, resource)

    def _progress(self, uid: str) -> None:
        """Go on with the foreground or orphan deletion of an owner."""
        place = self._objects.get(uid)
        found = self._entry(place) if place is not None else None
        if found is None:
            return
        table, entry = found
        meta = _meta(entry)
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
            references = [r for r in _meta(dependent).owner_references or () if r.uid == uid]
            others = [
                r.uid
                for r in _meta(dependent).owner_references or ()
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


class NamespaceController:
    """Empties namespaces that are being deleted, then lets them go."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        server.store.listeners.append(self.offer)
        for name in list(server.store.table("namespaces").objects):
            server.later(lambda name=name: self.empty(name))  # type: ignore[misc]

    def offer(self, table: Table, event: Event) -> None:
        """Begin when a namespace is marked; go on whenever something in it vanishes."""
        if table.name == "namespaces":
            if event.type != "DELETED" and _meta(event.entry).deletion_timestamp:
                self.server.later(lambda: self.empty(event.entry.name))
        elif event.type == "DELETED" and event.entry.namespace:
            namespace = self.server.store.table("namespaces").objects.get(event.entry.namespace)
            if namespace is not None and _meta(namespace).deletion_timestamp:
                self.server.later(lambda: self.empty(event.entry.namespace))

    def empty(self, name: str) -> None:
        """Delete all that is in a namespace; finish when nothing is left."""
        table = self.server.store.table("namespaces")
        entry = table.objects.get(name)
        if entry is None or not _meta(entry).deletion_timestamp:
            return
        left = 0
        for other in list(self.server.store.tables.values()):
            resource = self.server.resource_of(other.name)
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


class RoleAggregator:
    """Fills ClusterRoles that aggregate others with the others' rules."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        server.store.listeners.append(self.offer)
        server.later(self.aggregate)

    def offer(self, table: Table, event: Event) -> None:
        """Any change of a ClusterRole may concern the aggregating ones."""
        del event
        if table.name == _ROLES:
            self.server.later(self.aggregate)

    def aggregate(self) -> None:
        """Bring all aggregating roles up to date."""
        table = self.server.store.table(_ROLES)
        for entry in list(table.objects.values()):
            if b'"aggregationRule"' not in entry.raw:
                continue
            obj = msgspec.json.decode(entry.raw)
            matchers = [object_selector(s) for s in (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()]
            if not matchers:
                continue
            rules: list[Json] = []
            for other in table.range():
                if other.name != entry.name and any(m(other.labels) for m in matchers):
                    rules.extend(r for r in msgspec.json.decode(other.raw).get("rules") or () if r not in rules)
            if rules != (obj.get("rules") or []):
                obj["rules"] = rules
                self.server.put_system(table, entry, obj)


class EventExpiry:
    """Forgets Events an hour after they were last written, as kube-apiserver does; whoever writes one makes room."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._written: deque[tuple[datetime, str, int]] = deque()
        now = server.now()
        for entry in server.store.table(_EVENTS).range():
            self._written.append((now, entry.key, entry.rv))
        server.store.listeners.append(self.offer)

    def offer(self, table: Table, event: Event) -> None:
        """Note the time of a write, and forget what is too old."""
        if table.name != _EVENTS or event.type == "DELETED":
            return
        self._written.append((self.server.now(), event.entry.key, event.entry.rv))
        self.server.later(self.expire)

    def expire(self) -> None:
        """Take out Events that nobody has written for an hour."""
        table = self.server.store.table(_EVENTS)
        oldest = self.server.now() - _EVENT_TTL
        while self._written and self._written[0][0] <= oldest:
            _, key, rv = self._written.popleft()
            entry = table.objects.get(key)
            if entry is not None and entry.rv == rv:
                self.server.remove_system(table, entry)


def start_controllers(server: ApiServer) -> None:
    """Have a server collect garbage, empty namespaces, aggregate roles and forget old Events from now on."""
    Collector(server)
    NamespaceController(server)
    RoleAggregator(server)
    EventExpiry(server)
    server.drain()


def resource_index(server: ApiServer) -> dict[str, Resource]:
    """The resource that stores each table's objects."""
    found: dict[str, Resource] = {}
    for resource in server.registry:
        key = storage_key(resource)
        if key not in found or resource.api_version == (resource.storage or resource.api_version):
            found[key] = resource
    return found
