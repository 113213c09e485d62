"""One journal for several stores: a process with a thousand simulated clusters has one file, one writer and few commits.

Each store has a share, whose name is put before the names of its tables. Revisions are numbered across all shares, in the order in
which writes are appended, so that one revision tells for every share which writes are durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from clusterwright.apiserver.storage.sqlite import SqliteJournal
from clusterwright.apiserver.storage.store import Entry, Event, NotDurable, Revisions, Table

Kept = list[tuple[str, Entry]]
"""The table names and entries of a share when the journal was opened."""


class SharedJournal:
    """A journal in one file, and the shares that write to it."""

    def __init__(self, path: Path, broke: Callable[[BaseException], None]) -> None:
        """Open or create the file, read all of it and start writing; raises StoreBroken. `broke` is called when writing fails."""
        self._journal = SqliteJournal(path)
        self._kept: dict[str, Kept] = {}
        try:
            for name, entry in self._journal.entries():
                share, _, table = name.rpartition(" ")
                self._kept.setdefault(share, []).append((table, entry))
        except BaseException:
            self._journal.close()
            raise
        self._shares: dict[Share, None] = {}
        self._written: deque[tuple[int, Share]] = deque()
        """Writes that are not durable yet, and their shares."""
        self._journal.on_durable(self._settle)
        self._journal.on_failure(self._fail)
        self._journal.on_failure(broke)
        self._journal.start()

    def share(self, name: str) -> Share:
        """Return the share of this name, with its earlier content."""
        share = Share(self, self._journal, name, self._kept.pop(name, []))
        self._shares[share] = None
        return share

    def drop(self, share: Share) -> None:
        """Forget a share, which no longer writes."""
        self._shares.pop(share, None)

    def append(self, share: Share, table: str, event: Event) -> None:
        """Queue a change of a share."""
        self._written.append((event.entry.rv, share))
        self._journal.append(f"{share.name} {table}", event)

    def close(self) -> None:
        """Write the queue, then close."""
        self._journal.close()

    def _settle(self, rv: int) -> None:
        """Notify only the shares whose writes have become durable."""
        touched: dict[Share, None] = {}
        while self._written and self._written[0][0] <= rv:
            touched[self._written.popleft()[1]] = None
        for share in touched:
            share.settle(rv)

    def _fail(self, error: BaseException) -> None:
        for share in list(self._shares):
            share.fail(error)


class Share:
    """A `store.Journal` for one of the stores."""

    def __init__(self, shared: SharedJournal, journal: SqliteJournal, name: str, kept: Kept) -> None:
        self.name = name
        self._shared = shared
        self._journal = journal
        self._kept = kept
        self._on_durable: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._is_dropped = False

    @property
    def revisions(self) -> Revisions:
        """The numbers of all shares."""
        return self._journal.revisions

    @property
    def revision(self) -> int:
        """The revision of the last write before the journal was opened, of any share."""
        return self._journal.revision

    @property
    def durable_rv(self) -> int:
        """The revision up to which everything is durable."""
        return self._journal.durable_rv

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield the content of the share when the journal was opened; only once."""
        kept, self._kept = self._kept, []
        yield from kept

    def append(self, table: str, event: Event) -> None:
        """Queue a change; a dropped share writes nothing."""
        if not self._is_dropped:
            self._shared.append(self, table, event)

    async def drop(self, tables: Mapping[str, Table]) -> None:
        """Delete the content of the share: in these tables, or since the journal was opened. Raises NotDurable."""
        present = [(name, entry) for name, table in tables.items() for entry in table.objects.values()]
        last = 0
        for name, entry in [*self._kept, *present]:
            last = self.revisions.next()
            self.append(name, Event("DELETED", Entry(entry.key, entry.namespace, entry.name, entry.uid, last, b""), entry))
        self._kept = []
        self._is_dropped = True
        if last > self.durable_rv:
            done = asyncio.get_running_loop().create_future()
            self.on_durable(lambda rv: done.set_result(None) if rv >= last and not done.done() else None)
            self.on_failure(lambda error: done.set_exception(NotDurable(str(error))) if not done.done() else None)
            await done
        self._shared.drop(self)

    def on_durable(self, callback: Callable[[int], None]) -> None:
        """Register a function to call in the event loop after each commit with a write of this share."""
        self._on_durable.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Register a function to call in the event loop when writing fails; nothing is durable from then on."""
        self._on_failure.append(callback)

    def settle(self, rv: int) -> None:
        """Report the durable revision to the store."""
        for callback in self._on_durable:
            callback(rv)

    def fail(self, error: BaseException) -> None:
        """Report to the store that nothing is durable from now on."""
        for callback in self._on_failure:
            callback(error)
