"""Durability: a SQLite database in WAL mode, written by one thread that commits whatever has piled up since its last commit.

A write is answered after its commit; `synchronous=FULL` makes the commit survive a crash of the machine, not only of the process.
Every row carries a checksum, and the state holds how many rows there are and the sum of their checksums: a row that a disk
damaged or lost is noticed when it is read, and named. One process at a time writes (a lock on the file says which); others
may read meanwhile, which is how backups are taken (`upkeep`).
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from clusterwright.apiserver.storage.store import Entry, Event

log = logging.getLogger(__name__)
_BATCH: Final = 2000
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, key TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
    rv INTEGER NOT NULL, raw BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (
    id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL, format INTEGER NOT NULL,
    count INTEGER NOT NULL, total INTEGER NOT NULL, sum INTEGER NOT NULL
);
"""
FORMAT: Final = 2
_MASK: Final = (1 << 62) - 1
_ADVICE: Final = "`clusterwright store check` tells more, `store repair` puts aside what is damaged, `store restore` brings back a backup"
COLUMNS: Final = "kind, key, namespace, name, uid, rv, raw, sum"


class StoreBroken(Exception):
    """The database cannot be opened, is damaged, or can no longer be written."""


def checksum(kind: str, key: str, namespace: str, name: str, uid: str, rv: int, raw: bytes) -> int:
    """Of one row: everything that it says."""
    return zlib.crc32(raw, zlib.crc32(f"{kind}\0{key}\0{namespace}\0{name}\0{uid}\0{rv}\0".encode("utf-8", "surrogateescape")))


def _of(table: str, entry: Entry) -> int:
    return checksum(table, entry.key, entry.namespace, entry.name, entry.uid, entry.rv, entry.raw)


def state_row(revision: int, count: int, total: int) -> tuple[int, ...]:
    """Revision, format, how many rows there are, their checksums added up, and the checksum of these four."""
    return revision, FORMAT, count, total, zlib.crc32(f"{revision}\0{FORMAT}\0{count}\0{total}".encode())


def is_intact(row: tuple[Any, ...]) -> bool:
    """Whether a row of `COLUMNS` is as it was written."""
    *said, found = row
    try:
        kind, key, namespace, name, uid, rv, raw = said
        return bool(checksum(kind, key, namespace, name, uid, rv, bytes(raw)) == found)
    except (TypeError, ValueError, UnicodeError):
        return False


def row_name(row: tuple[Any, ...]) -> str:
    """How a person names a row, even a damaged one."""
    return f"{row[0]!s} {row[1]!s}".encode("ascii", "backslashreplace").decode()


class Lock:
    """Says that this process writes a database. Given back when the process ends, however it does."""

    def __init__(self, path: Path) -> None:
        """Take it; raises StoreBroken where somebody else has it."""
        # SQLite locks ranges of the file and forgets them when it is closed anywhere in the process: this stays open the longest
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StoreBroken(f"{path}: in use by another process") from None

    def release(self) -> None:
        """Give it back."""
        os.close(self._file)


def connect(path: Path) -> sqlite3.Connection:
    """A connection for the one that writes."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    # a name or a uid that a disk damaged need not be text any more: it is compared, and found wrong
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    # who reads for long, a backup, lets the log grow; afterwards its room is given back
    connection.execute("PRAGMA journal_size_limit=67108864")
    return connection


def create(connection: sqlite3.Connection) -> None:
    """Make the tables, where there are none."""
    connection.executescript(_TABLES)


def _migrate(connection: sqlite3.Connection) -> None:
    """From format 1, which had no checksums."""
    connection.execute("BEGIN IMMEDIATE")
    rows = connection.execute("SELECT kind, key, namespace, name, uid, rv, raw FROM objects").fetchall()
    [(revision,)] = connection.execute("SELECT revision FROM state").fetchall()
    connection.execute("DROP TABLE objects")
    connection.execute("DROP TABLE state")
    for statement in filter(str.strip, _TABLES.split(";")):
        connection.execute(statement)
    sums = [checksum(kind, key, namespace, name, uid, rv, bytes(raw)) for kind, key, namespace, name, uid, rv, raw in rows]
    connection.executemany(
        f"INSERT INTO objects ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own column names
        [(*row, found) for row, found in zip(rows, sums, strict=True)],
    )
    write_state(connection, revision, len(rows), sum(sums) & _MASK)
    connection.execute("COMMIT")


def write_state(connection: sqlite3.Connection, revision: int, count: int, total: int) -> None:
    """Within a transaction: what the database says of itself."""
    connection.execute(
        "INSERT OR REPLACE INTO state (id, revision, format, count, total, sum) VALUES (1, ?, ?, ?, ?, ?)",
        state_row(revision, count, total & _MASK),
    )


class SqliteJournal:
    """A `store.Journal` in one file. Open it, read what is there, then start it in the event loop."""

    def __init__(self, path: Path) -> None:
        """Open or create the database; raises StoreBroken, also when another process has it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._lock = Lock(path)
        try:
            self._connection = connect(path)
            self.revision, self._count, self._total = self._state()
        except sqlite3.Error as e:
            self._lock.release()
            raise StoreBroken(f"{path}: {e}") from e
        except BaseException:
            self._lock.release()
            raise
        self.durable_rv = self.revision
        self.error: BaseException | None = None
        self._queue: SimpleQueue[tuple[str, Event] | None] = SimpleQueue()
        self._callbacks: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def _state(self) -> tuple[int, int, int]:
        connection = self._connection
        known = connection.execute("SELECT name FROM sqlite_master WHERE name = 'state'").fetchone()
        if known is not None:
            row = connection.execute("SELECT format FROM state").fetchone()
            if row is not None and row[0] == 1:
                _migrate(connection)
            elif row is not None and row[0] != FORMAT:
                raise StoreBroken(f"{self.path}: written in format {row[0]}, this program knows {FORMAT}")
        create(connection)
        row = connection.execute("SELECT revision, format, count, total, sum FROM state").fetchone()
        if row is None:
            return 0, 0, 0
        if tuple(row) != state_row(row[0], row[2], row[3]):
            raise StoreBroken(f"{self.path}: the row of its state is damaged; {_ADVICE}")
        return row[0], row[2], row[3]

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Everything that is stored: table name and entry. Raises StoreBroken with the names of rows that are damaged."""
        damaged: list[str] = []
        count = total = 0
        try:
            for row in self._connection.execute(f"SELECT {COLUMNS} FROM objects ORDER BY kind, key"):  # noqa: S608 - our own column names
                count, total = count + 1, total + int(row[7])
                if is_intact(row):
                    kind, key, namespace, name, uid, rv, raw, _ = row
                    yield kind, Entry(key, namespace, name, uid, rv, bytes(raw))
                else:
                    damaged.append(row_name(row))
        except sqlite3.Error as e:
            raise StoreBroken(f"{self.path}: {e}; {_ADVICE}") from e
        if damaged:
            raise StoreBroken(f"{self.path}: {len(damaged)} damaged: {', '.join(damaged[:10])}; {_ADVICE}")
        if (count, total & _MASK) != (self._count, self._total):
            raise StoreBroken(f"{self.path}: holds {count} objects where {self._count} were written; {_ADVICE}")

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
        self._lock.release()

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
        count, total = self._count, self._total
        execute("BEGIN IMMEDIATE")
        try:
            for table, event in batch:
                entry = event.entry
                if event.old is not None:
                    count, total = count - 1, total - _of(table, event.old)
                if event.type == "DELETED":
                    execute("DELETE FROM objects WHERE kind = ? AND key = ?", (table, entry.key))
                else:
                    found = _of(table, entry)
                    count, total = count + 1, total + found
                    execute(
                        "INSERT OR REPLACE INTO objects (kind, key, namespace, name, uid, rv, raw, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        (table, entry.key, entry.namespace, entry.name, entry.uid, entry.rv, entry.raw, found),
                    )
            write_state(self._connection, batch[-1][1].entry.rv, count, total)
            execute("COMMIT")
            self._count, self._total = count, total & _MASK
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
