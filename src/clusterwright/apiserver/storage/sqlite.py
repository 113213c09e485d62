"""Durability: a SQLite database in WAL mode, written by one thread that commits whatever has piled up since its last commit.

A write is answered after its commit; `synchronous=FULL` makes the commit survive a crash of the machine, not only of the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from clusterwright.apiserver.storage.store import Entry, Event

log = logging.getLogger(__name__)
_BATCH: Final = 2000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, key TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
    rv INTEGER NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL, format INTEGER NOT NULL);
"""
_FORMAT: Final = 1


class StoreBroken(Exception):
    """The database cannot be opened, or can no longer be written."""


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")
    connection.executescript(_SCHEMA)
    return connection


class SqliteJournal:
    """A `store.Journal` in one file. Open it, read what is there, then start it in the event loop."""

    def __init__(self, path: Path) -> None:
        """Open or create the database; raises StoreBroken, also when another process has it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            self._connection = _open(path)
            row = self._connection.execute("SELECT revision, format FROM state").fetchone()
        except sqlite3.Error as e:
            locked = "locked" in str(e)
            raise StoreBroken(f"{path}: " + ("in use by another process" if locked else str(e))) from e
        if row is not None and row[1] != _FORMAT:
            raise StoreBroken(f"{path}: written in format {row[1]}, this program knows {_FORMAT}")
        self.path = path
        self.revision: int = row[0] if row is not None else 0
        self.durable_rv = self.revision
        self.error: BaseException | None = None
        self._queue: SimpleQueue[tuple[str, Event] | None] = SimpleQueue()
        self._callbacks: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Everything that is stored: table name and entry."""
        rows = self._connection.execute("SELECT kind, key, namespace, name, uid, rv, raw FROM objects ORDER BY kind, key")
        for kind, key, namespace, name, uid, rv, raw in rows:
            yield kind, Entry(key, namespace, name, uid, rv, bytes(raw))

    def start(self) -> None:
        """Begin to write; call in the event loop that serves."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._thread.start()

    def append(self, table: str, event: Event) -> None:
        """Queue a change."""
        self._queue.put((table, event))

    def on_durable(self, callback: Callable[[int], None]) -> None:
        """Have `callback` called in the event loop after each commit."""
        self._callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Have `callback` called in the event loop when writing fails; nothing is durable from then on."""
        self._on_failure.append(callback)

    def close(self) -> None:
        """Write what is queued, then close."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self._connection.close()

    def _write(self) -> None:
        done = False
        while not done:
            batch: list[tuple[str, Event]] = []
            item = self._queue.get()
            while True:
                if item is None:
                    done = True
                    break
                batch.append(item)
                if len(batch) >= _BATCH or self._queue.empty():
                    break
                item = self._queue.get()
            if not batch:
                continue
            try:
                self._commit(batch)
            except BaseException as e:
                self.error = e
                log.critical("the store can no longer be written: %s", e)
                self._tell(self._failed)
                return
            revision = batch[-1][1].entry.rv
            self._tell(partial(self._committed, revision))

    def _commit(self, batch: list[tuple[str, Event]]) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for table, event in batch:
                entry = event.entry
                if event.type == "DELETED":
                    execute("DELETE FROM objects WHERE kind = ? AND key = ?", (table, entry.key))
                else:
                    execute(
                        "INSERT OR REPLACE INTO objects (kind, key, namespace, name, uid, rv, raw) VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (table, entry.key, entry.namespace, entry.name, entry.uid, entry.rv, entry.raw),
                    )
            execute("INSERT OR REPLACE INTO state (id, revision, format) VALUES (1, ?, ?)", (batch[-1][1].entry.rv, _FORMAT))
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _tell(self, callback: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(callback)
            except RuntimeError:  # the loop closed meanwhile: nobody is left to be told
                log.debug("the event loop is gone")

    def _committed(self, rv: int) -> None:
        self.durable_rv = rv
        for callback in self._callbacks:
            callback(rv)

    def _failed(self) -> None:
        assert self.error is not None
        for callback in self._on_failure:
            callback(self.error)
