"""Objects as bytes, their order, their history: the counterpart of etcd and watch cache in kube-apiserver.

One revision counts all writes of a server. A table holds the objects of one kind and its latest events, from which watches resume and lists
of the past are answered; older revisions are answered with 410. Nothing here awaits: a write is a plain call, so that everything between
two awaits of a request is atomic. With a journal, events reach watchers only when they are durable, and `durable` is what an answer waits
for.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Meta(msgspec.Struct, gc=False):
    metadata: _Labels = msgspec.field(default_factory=_Labels)


_decode_labels = msgspec.json.Decoder(_Meta, strict=False).decode


class Entry(msgspec.Struct, gc=False):
    """One version of one object; immutable. `raw` is its JSON in the storage version, with resourceVersion."""

    key: str
    namespace: str
    name: str
    uid: str
    rv: int
    raw: bytes
    _labels: dict[str, str] | None = None
    _converter: object = None
    _converted: dict[str, bytes] | None = None

    def converted(self, converter: object, api_version: str) -> bytes | None:
        """Return the cached conversion of the object by this converter, if any."""
        return self._converted.get(api_version) if self._converted is not None and self._converter is converter else None

    def keep_converted(self, converter: object, api_version: str, raw: bytes) -> None:
        """Cache a conversion of the object."""
        if self._converted is None or self._converter is not converter:
            self._converter, self._converted = converter, {}
        self._converted[api_version] = raw

    def at(self, rv: int) -> Entry:
        """Return the object with a later revision."""
        made = Entry(self.key, self.namespace, self.name, self.uid, rv, _stamped(self.raw, rv))
        for version, raw in (self._converted or {}).items():
            made.keep_converted(self._converter, version, _stamped(raw, rv))
        return made

    @property
    def labels(self) -> dict[str, str]:
        """The metadata.labels, decoded on first use."""
        if self._labels is None:
            try:
                self._labels = _decode_labels(self.raw).metadata.labels or {}
            except msgspec.ValidationError:  # objects loaded as they are may have any shape
                self._labels = {}
        return self._labels


def _stamped(raw: bytes, rv: int) -> bytes:
    obj = msgspec.json.decode(raw)
    obj["metadata"]["resourceVersion"] = str(rv)
    return msgspec.json.encode(obj)


class Event(msgspec.Struct, gc=False):
    """A change: `ADDED` (no `old`), `MODIFIED` or `DELETED` (`entry` is the last state, with the revision of the deletion)."""

    type: str
    entry: Entry
    old: Entry | None
    lines: dict[object, bytes] | None = None
    """The renderings for watchers, each made once; only while the event is published: the history keeps objects, not renderings."""


class Observer(Protocol):
    """Receives the events of a table, in order."""

    def offer(self, event: Event) -> None:
        """Handle an event; must not raise or block."""


class Revisions:
    """Numbers the writes. Stores that share a journal share its numbers, so that one number gives the durable state of all of them."""

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def next(self) -> int:
        """Return the number of the next write."""
        self.last += 1
        return self.last

    def reach(self, revision: int) -> None:
        """Never return this number or a lower one again."""
        self.last = max(self.last, revision)


class Journal(Protocol):
    """Makes writes durable."""

    @property
    def revisions(self) -> Revisions:
        """The numbers of all stores that write to it."""

    @property
    def durable_rv(self) -> int:
        """The revision up to which everything is durable."""

    def append(self, table: str, event: Event) -> None:
        """Queue a change for writing."""

    def on_durable(self, callback: Callable[[int], None]) -> None:
        """Register a function to call (in the event loop) with the highest durable revision."""

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Register a function to call (in the event loop) when no write can become durable any more."""


class NotDurable(Exception):
    """A write could not be made durable: whether it survives a restart is unknown."""


class Gone(Exception):
    """A revision is older than the history."""


def object_key(namespace: str, name: str) -> str:
    """Return the sort key of an object in its table: etcd's order."""
    return f"{namespace}/{name}" if namespace else name


class Table:
    """The objects of one kind."""

    def __init__(self, name: str, floor: int, history: int) -> None:
        self.name = name
        self.objects: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.history: deque[Event] = deque()
        self.limit = history
        self.floor = floor
        """The history has all events after this revision."""
        self.rv = floor
        self.whole = True
        """Whether the history goes back to the empty table."""
        self.stale_before = 0
        """Entries up to this revision were written under an older schema: they are adapted when read."""
        self.readable: dict[str, set[int]] = {}
        """Revisions of objects that are known to be convertible, by version."""
        self.observers: dict[int, Observer] = {}
        self.hooks: list[Observer] = []
        """The server's own controllers, called immediately after a write, durable or not."""
        self._next_observer = 0

    def range(self, namespace: str = "", after: str = "") -> Iterator[Entry]:
        """Return entries in the order of their keys, of one namespace or of all, with keys greater than `after`."""
        keys, objects = self.keys, self.objects
        prefix = f"{namespace}/" if namespace else ""
        start = bisect_left(keys, after + "\0" if after else prefix)
        for index in range(start, len(keys)):
            key = keys[index]
            if prefix and not key.startswith(prefix):
                return
            yield objects[key]

    def at(self, rv: int, namespace: str = "", after: str = "") -> Iterator[Entry]:
        """Return the same at an earlier revision; raises Gone if it is older than the history."""
        if rv >= self.rv:
            yield from self.range(namespace, after)
            return
        if rv < self.floor:
            if self.whole:
                return  # before the table was, it was empty
            raise Gone
        changed: dict[str, Entry | None] = {}
        for event in reversed(self.history):
            if event.entry.rv <= rv:
                break
            changed[event.entry.key] = event.old
        prefix = f"{namespace}/" if namespace else ""
        keys = {k for k in self.objects if k not in changed} | {k for k, e in changed.items() if e is not None}
        for key in sorted(keys):
            if key.startswith(prefix) and key > after:
                entry = changed[key] if key in changed else self.objects[key]
                if entry is not None:
                    yield entry

    def since(self, rv: int) -> list[Event]:
        """Return events after `rv`, oldest first; raises Gone."""
        if rv < self.floor:
            raise Gone
        found: list[Event] = []
        for event in reversed(self.history):
            if event.entry.rv <= rv:
                break
            found.append(event)
        found.reverse()
        return found

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Pass all further events to an observer; return the function that ends this."""
        number = self._next_observer
        self._next_observer += 1
        self.observers[number] = observer

        def end() -> None:
            self.observers.pop(number, None)

        return end

    def _change(self, event: Event) -> None:
        entry = event.entry
        if event.type == "DELETED":
            del self.objects[entry.key]
            del self.keys[bisect_left(self.keys, entry.key)]
        else:
            if event.old is None:
                insort(self.keys, entry.key)
            self.objects[entry.key] = entry
        self.rv = entry.rv
        self.history.append(event)
        if len(self.history) > self.limit:
            self.floor = self.history.popleft().entry.rv
            self.whole = False

    def publish(self, event: Event) -> None:
        """Pass the event to all observers."""
        event.lines = {}
        for observer in list(self.observers.values()):
            observer.offer(event)
        event.lines = None


class Store:
    """All tables of one server and the revision they share."""

    def __init__(self, revision: int = 1, history: int = 1000, journal: Journal | None = None) -> None:
        self._revisions = Revisions() if journal is None else journal.revisions
        self.revision = 0
        """The last revision of this store; other stores with the same journal may be ahead."""
        self.reach(revision)
        self.history = history
        self.tables: dict[str, Table] = {}
        self.journal = journal
        self.listeners: list[Callable[[Table, Event], None]] = []
        """Controllers that follow all tables, called immediately after a write."""
        self._unpublished: deque[tuple[Table, Event]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        if journal is not None:
            journal.on_durable(self._settle)
            journal.on_failure(self._break)
        self._broken: BaseException | None = None
        self._written = 0
        """The revision of the last write; unused revisions are never waited for."""

    def table(self, name: str) -> Table:
        """Return the table of that name, created on first use."""
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(name, self.revision, self.history)
        return table

    @property
    def visible_revision(self) -> int:
        """The revision up to which everything is durable."""
        return self.revision if self.journal is None else min(self.revision, self.journal.durable_rv)

    @property
    def coming_revision(self) -> int:
        """The revision that `next_revision` returns next."""
        return self._revisions.last + 1

    def next_revision(self) -> int:
        """Return the revision for the next write."""
        self.revision = self._revisions.next()
        return self.revision

    def reach(self, revision: int) -> None:
        """Continue after a revision that was used before."""
        self.revision = max(self.revision, revision)
        self._revisions.reach(revision)

    def put(self, table: Table, entry: Entry) -> Event:
        """Write an entry whose revision was taken from `next_revision`."""
        old = table.objects.get(entry.key)
        event = Event("ADDED" if old is None else "MODIFIED", entry, old)
        self._commit(table, event)
        return event

    def delete(self, table: Table, entry: Entry) -> Event:
        """Remove an object; `entry` is its last state with the revision of the deletion."""
        event = Event("DELETED", entry, table.objects[entry.key])
        self._commit(table, event)
        return event

    def seed(self, table: Table, entry: Entry) -> None:
        """Insert an entry without an event: for recovery and offline worlds."""
        if entry.key not in table.objects:
            insort(table.keys, entry.key)
        table.objects[entry.key] = entry
        self.reach(entry.rv)

    def share(self, other: Store) -> None:
        """Fill an empty store with the entries of another; entries are immutable, so both share them."""
        self.reach(other.revision)
        for name, theirs in other.tables.items():
            table = self.table(name)
            table.objects, table.keys = theirs.objects.copy(), theirs.keys.copy()
        self.seeded()

    def seeded(self) -> None:
        """End the seeding: the history begins now."""
        for table in self.tables.values():
            table.floor = table.rv = self.revision
            table.whole = False
            table.history.clear()

    def _commit(self, table: Table, event: Event) -> None:
        table._change(event)
        self._written = event.entry.rv
        if self.journal is None:
            table.publish(event)
        else:
            self._unpublished.append((table, event))
            self.journal.append(table.name, event)
        for hook in table.hooks:
            hook.offer(event)
        for listener in self.listeners:
            listener(table, event)

    def _settle(self, rv: int) -> None:
        while self._unpublished and self._unpublished[0][1].entry.rv <= rv:
            table, event = self._unpublished.popleft()
            table.publish(event)
        while self._waiting and self._waiting[0][0] <= rv:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(None)

    def _break(self, error: BaseException) -> None:
        self._broken = error
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_exception(NotDurable("the store can no longer be written"))

    @property
    def is_broken(self) -> bool:
        """Whether no write can become durable any more."""
        return self._broken is not None

    async def durable(self, rv: int) -> None:
        """Return when everything up to `rv` is durable; raises NotDurable if it never will be."""
        if self.journal is None or min(rv, self._written) <= self.journal.durable_rv:
            return
        if self._broken is not None:
            raise NotDurable("the store can no longer be written")
        future = asyncio.get_running_loop().create_future()
        rv = min(rv, self._written)
        self._waiting.append((rv, future))
        if len(self._waiting) > 1 and self._waiting[-2][0] > rv:
            self._waiting = deque(sorted(self._waiting, key=lambda w: w[0]))
        await future

    async def settled(self) -> None:
        """Return when everything written so far is durable; raises NotDurable.

        Answers about missing objects or discarded data need this: they must not depend on a write that a crash undoes.
        """
        await self.durable(self._written)
