"""The objects of one kind, from a watch and from our own writes.

An object is kept as its bytes (without managedFields) and a small head: identity, labels, owners. Bytes are immutable and cost the garbage
collector nothing; a model is decoded on demand, and cached for a while.

Own writes are visible at once. The API server's answer to a write overrides the watched state until the watch has caught up with it: a
reader never sees a state older than this process's own last acknowledged write. Handlers are told of watched changes only, so that each
change is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.selectors import EVERYTHING, Selector, field_requirements
from clusterwright.api.wire import UNREADABLE
from clusterwright.runtime import models
from clusterwright.runtime.entries import Entry, EntryReader, is_covered, is_newer, is_released, lives_on, made_of_status, values_at
from clusterwright.runtime.indexes import Index, of_label
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.runtime.own_writes import Own, OwnWrites

_REMEMBERED = 1024
"""How many decoded objects one informer caches, at least; twice as many at most."""

__all__ = ["Entry", "Handler", "Informer"]

_log = get_logger("informer")


Handler = Callable[[Entry | None, Entry | None, bool], None]
"""Handles a change: (old, new, initial). `initial`: the object existed before the first list. Synchronous; must not fail."""


class Informer:
    """The store of one kind; a `watcher.Sink`."""

    def __init__(self, gvk: GroupVersionKind, *, namespace: str = "", metrics: RuntimeMetrics | None = None) -> None:
        self.gvk = gvk
        self.namespace = namespace
        """The only namespace that is watched; empty: all."""
        self.is_synced = False
        self._objects: dict[ObjectKey, Entry] = {}
        self._own = OwnWrites()
        self._gone: dict[str, None] = {}
        self._long_gone: dict[str, None] = {}
        self._owners = Index[str](lambda entry, _: entry.owners)
        self._labels = Index(of_label)
        self._fields = Index[tuple[str, ...]](lambda entry, path: values_at(entry.raw, path))
        self._handlers: list[Handler] = []
        self._listing: dict[ObjectKey, Entry] | None = None
        self._lists = 0
        self._memo: dict[tuple[ObjectKey, Any], tuple[Entry, Any]] = {}
        self._older_memo: dict[tuple[ObjectKey, Any], tuple[Entry, Any]] = {}
        self._decoded: set[Any] = set()
        """The decoded models."""
        self._told: tuple[Entry | None, ...] = ()
        """The last change, and its decoded models, by entry and kind."""
        self._told_models: dict[tuple[int, Any], Any] = {}
        self._read = EntryReader().read
        self._on_synced: list[Callable[[], None]] = []
        if metrics:
            metrics.objects.set(lambda: len(self._objects), gvk.kind)

    # Subscribing.

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` for every change from now on, after all existing objects."""
        for entry in list(self._objects.values()):
            handler(None, entry, True)
        self._handlers.append(handler)

    def when_synced(self, callback: Callable[[], None]) -> None:
        """Call back once the first list is complete; at once if it is."""
        if self.is_synced:
            callback()
        else:
            self._on_synced.append(callback)

    # Reading.

    def __len__(self) -> int:
        return len(self._objects)

    def entries(self) -> Iterable[Entry]:
        """Return the watched objects."""
        return self._objects.values()

    def find(self, key: ObjectKey) -> Entry | None:
        """Return the object, including our own writes."""
        own = self._own.get(key)
        return self._objects.get(key) if own is None else own.entry

    def owned(self, uid: str) -> list[Entry]:
        """Return the watched objects with an ownerReference of this UID, in no order."""
        return [self._objects[key] for key in self._owners.keys("", uid, self._objects.values())]

    def select(self, *, namespace: str = "", labels: Selector = EVERYTHING, fields: str = "", owner: str = "") -> list[Entry]:
        """Return the matching objects, including our own writes, ordered by namespace and name."""
        field_tests = tuple((tuple(name.split(".")), value, equal) for name, equal, value in field_requirements(fields)) if fields else ()

        def matches(entry: Entry) -> bool:
            return (
                (not namespace or entry.key.namespace == namespace)
                and (not owner or owner in entry.owners)
                and labels.matches(entry.labels)
                and all((value in values_at(entry.raw, path)) == equal for path, value, equal in field_tests)
            )

        found = [entry for entry in self._candidates(labels, field_tests, owner) if entry.key not in self._own and matches(entry)]
        found += filter(matches, self._own.entries(labels))
        found.sort(key=_by_key)
        return found

    def decode(self, kind: Any, entry: Entry) -> Any:
        """Return the model of an entry; the same object for the same entry, as long as it is cached.

        Untyped objects are decoded each time: the caller could change their JSON.
        """
        if isinstance(kind, GroupVersionKind):
            return models.decode(kind, entry.raw)
        self._decoded.add(kind)
        at = (entry.key, kind)
        remembered = self._memo.get(at) or self._older_memo.get(at)
        if remembered is None or remembered[0] is not entry:
            model = models.decode(kind, entry.raw)
            if self.find(entry.key) is not entry:
                return model  # of the past: what is there now stays remembered
            remembered = (entry, model)
        if len(self._memo) >= _REMEMBERED:
            # two generations: what is asked for again moves to the younger one, the rest is forgotten with the older
            self._older_memo, self._memo = self._memo, {}
        self._memo[at] = remembered
        return remembered[1]

    def told(self, kind: Any, entry: Entry) -> Any:
        """Return the model of an entry for handlers: one for all of them, also for untyped objects. They must not change it."""
        if not any(entry is one for one in self._told):
            return self.decode(kind, entry)
        at = (id(entry), kind)
        model = self._told_models.get(at)
        if model is None:
            model = self._told_models[at] = self.decode(kind, entry)
        return model

    # Our own writes.

    @property
    def lists(self) -> int:
        """The number of lists that have begun."""
        return self._lists

    def wrote(self, key: ObjectKey, body: bytes, *, deleted: bool) -> bool:
        """Record the API server's answer `body` to a write of ours: the object, or (for some deletions) a Status.

        The watch may have shown it already, and later changes too: an answer must not restore an older state. Return False if the answer
        leaves the effect open.
        """
        if self.namespace and key.namespace != self.namespace:
            return True
        uid, entry = self._outcome(key, body, deleted=deleted)
        if not uid:
            return False
        current = self._objects.get(key)
        if uid in self._gone or uid in self._long_gone:
            return True  # the watch has told of its end
        earlier = self._own.get(key)
        if entry is None:
            if current is not None and current.uid != uid and (earlier is None or earlier.uid != uid):
                return False  # is what we know its predecessor, or its successor?
            self._own.put(key, Own(uid, "", None, self._lists))
            return True
        if current is not None and is_covered(entry.resource_version, current.resource_version):
            return True  # the watch was faster, or nothing changed
        if (
            earlier is not None
            and earlier.uid == uid
            and (earlier.entry is None or is_covered(entry.resource_version, earlier.resource_version))
        ):
            return True  # answers may overtake each other
        self._own.put(key, Own(uid, entry.resource_version, entry, self._lists))
        return True

    def _outcome(self, key: ObjectKey, body: bytes, *, deleted: bool) -> tuple[str, Entry | None]:
        """Return the object's state after a write: its UID and state, or None if it was deleted; no UID if the answer has none."""
        try:
            entry = self._read(body)
        except UNREADABLE:
            return "", None
        if entry.key != key or not entry.uid:
            name, uid = made_of_status(body)
            return (uid, None) if deleted and name == key.name else ("", None)
        # a patch that takes the last finalizer away is answered with the version before: nothing was stored
        ended = not lives_on(body) and (deleted or is_released(body))
        return entry.uid, None if ended else entry

    # Sink: what the watcher tells.

    def listing(self) -> None:
        """Begin a list."""
        self._listing = {}
        self._lists += 1

    def item(self, raw: bytes | msgspec.Raw) -> None:
        """Add one object of the list."""
        entry = self._readable(raw)
        if entry is None or self._listing is None:
            return
        known = self._objects.get(entry.key)
        if known is not None and known.uid == entry.uid and known.resource_version == entry.resource_version:
            entry = known  # unchanged: drop the copy, tell nobody
        self._listing[entry.key] = entry

    def listed(self) -> None:
        """Complete the list."""
        fresh, self._listing = self._listing or {}, None
        initial = not self.is_synced
        for key in [key for key in self._objects if key not in fresh]:
            self._remove(key, None)
        for entry in fresh.values():
            if self._objects.get(entry.key) is not entry:
                self._put(entry, initial=initial)
        self._own.drop_where(lambda key, own: own.lists < self._lists or self._shows(own, self._objects.get(key)))
        self.is_synced = True
        callbacks, self._on_synced = self._on_synced, []
        for callback in callbacks:
            callback()

    def applied(self, raw: bytes | msgspec.Raw) -> str:
        """Handle an added or changed object."""
        entry = self._readable(raw)
        if entry is None:
            return ""
        known = self._objects.get(entry.key)
        if known is not None and known.uid == entry.uid and is_covered(entry.resource_version, known.resource_version):
            return entry.resource_version  # told before
        own = self._own.get(entry.key)
        if own is not None and self._shows(own, entry):
            self._own.drop(entry.key)
        self._put(entry, initial=False)
        return entry.resource_version

    def deleted(self, raw: bytes | msgspec.Raw) -> str:
        """Handle a deleted object."""
        entry = self._readable(raw)
        if entry is None:
            return ""
        own = self._own.get(entry.key)
        if own is not None and (own.uid == entry.uid or is_newer(entry.resource_version, own.resource_version)):
            self._own.drop(entry.key)
        self._remove(entry.key, entry)
        return entry.resource_version

    # Keeping.

    @staticmethod
    def _shows(own: Own, entry: Entry | None) -> bool:
        """Return whether the watched state `entry` includes our write."""
        if entry is None:
            return False
        if own.entry is None:
            return entry.uid != own.uid
        return entry.resource_version == own.resource_version or is_newer(entry.resource_version, own.resource_version)

    def _readable(self, raw: bytes | msgspec.Raw) -> Entry | None:
        try:
            return self._read(bytes(raw))
        except UNREADABLE as error:
            # one bad object must not stop the others
            _log.warning("Object cannot be decoded; ignored", kind=self.gvk.kind, error=str(error))
            return None

    def _put(self, entry: Entry, *, initial: bool) -> None:
        old = self._objects.get(entry.key)
        if old is not None:
            self._unindex(old)
        if old is not None and old.uid != entry.uid:
            self._bury(old.uid)
            self._tell(old, None, initial=False)
            old = None
        self._objects[entry.key] = entry
        self._index(entry)
        self._tell(old, entry, initial=initial)

    def _remove(self, key: ObjectKey, last: Entry | None) -> None:
        if last is not None:
            self._bury(last.uid)
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._unindex(old)
        for kind in self._decoded:  # what it said, a Secret perhaps, is not kept for longer
            self._memo.pop((key, kind), None)
            self._older_memo.pop((key, kind), None)
        self._bury(old.uid)
        self._tell(last if last is not None and last.uid == old.uid else old, None, initial=False)

    def _bury(self, uid: str) -> None:
        """Remember for a while that the watch has shown an object's deletion: answers to writes may arrive later."""
        if len(self._gone) >= _REMEMBERED:
            self._long_gone, self._gone = self._gone, {}
        self._gone[uid] = None

    def _tell(self, old: Entry | None, new: Entry | None, *, initial: bool) -> None:
        self._told, self._told_models = (old, new), {}
        for handler in self._handlers:
            handler(old, new, initial)
        if new is None:  # as above
            self._told, self._told_models = (), {}

    # Indexes.

    def _candidates(self, labels: Selector, fields: tuple[tuple[tuple[str, ...], str, bool], ...], owner: str) -> Iterator[Entry]:
        every = self._objects.values()
        keys: Mapping[ObjectKey, None]
        if owner:
            keys = self._owners.keys("", owner, every)
        elif labels.equal:
            keys = min((self._labels.keys(name, value, every) for name, value in labels.equal), key=len)
        elif equal := [(path, value) for path, value, is_equal in fields if is_equal]:
            keys = self._fields.keys(*equal[0], every)
        else:
            return iter(every)
        return (self._objects[key] for key in keys)

    def _index(self, entry: Entry) -> None:
        self._owners.add(entry)
        self._labels.add(entry)
        self._fields.add(entry)

    def _unindex(self, entry: Entry) -> None:
        self._owners.remove(entry)
        self._labels.remove(entry)
        self._fields.remove(entry)


def _by_key(entry: Entry) -> ObjectKey:
    return entry.key
