"""Durability: a SQLite database in WAL mode, written by one thread that commits all writes since its last commit together.

A write is acknowledged after its commit; `synchronous=FULL` makes the commit survive a crash of the machine, not only of the process.
One process at a time writes (a lock on the file says which); others may read meanwhile, which is how backups are taken (`upkeep`).

What counts as damage: every acknowledged write is either served, or the start is refused and the file is named. Each row carries a
checksum, the state row holds the number of rows and the sum of their checksums, and the mark repeats the state in a second file.
Whatever becomes of pages or log, what is read must add up to the state row, and the state must not be older than the mark. `examine`
looks at all this before the database is opened for writing, because SQLite discards a damaged log when it closes it. A write that was
never acknowledged may be missing or half written; such an end of the log is dropped without a word (`wal` has the rule).
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
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from clusterwright.apiserver.storage import mark, wal
from clusterwright.apiserver.storage.mark import Mark
from clusterwright.apiserver.storage.store import Entry, Event, Revisions

log = logging.getLogger(__name__)
_BATCH: Final = 2000
_IDLE: Final = 0.5
"""Seconds without a write after which the mark is synced, too."""
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
_SCHEMA: Final = {
    statement.split()[5]: " ".join(statement.replace("IF NOT EXISTS ", "").split()) for statement in _TABLES.split(";") if statement.strip()
}
FORMAT: Final = 2
_MASK: Final = (1 << 62) - 1
ADVICE: Final = "`clusterwright store check` tells more, `store repair` puts aside what is damaged, `store restore` brings back a backup"
COLUMNS: Final = "kind, key, namespace, name, uid, rv, raw, sum"


class StoreBroken(Exception):
    """The database cannot be opened, is damaged, or can no longer be written."""


def checksum(kind: str, key: str, namespace: str, name: str, uid: str, rv: int, raw: bytes) -> int:
    """Return the checksum of one row, over all its columns."""
    return zlib.crc32(raw, zlib.crc32(f"{kind}\0{key}\0{namespace}\0{name}\0{uid}\0{rv}\0".encode("utf-8", "surrogateescape")))


def _of(table: str, entry: Entry) -> int:
    return checksum(table, entry.key, entry.namespace, entry.name, entry.uid, entry.rv, entry.raw)


def state_row(revision: int, count: int, total: int) -> tuple[int, ...]:
    """Return the state row: revision, format, number of rows, sum of their checksums, and the checksum of these four."""
    return revision, FORMAT, count, total, zlib.crc32(f"{revision}\0{FORMAT}\0{count}\0{total}".encode())


def is_intact(row: tuple[Any, ...]) -> bool:
    """Return whether a row of `COLUMNS` is unchanged since it was written."""
    *said, found = row
    try:
        kind, key, namespace, name, uid, rv, raw = said
        return bool(checksum(kind, key, namespace, name, uid, rv, bytes(raw)) == found)
    except (TypeError, ValueError, UnicodeError):
        return False


def row_name(row: tuple[Any, ...]) -> str:
    """Return a readable name of a row, even a damaged one."""
    return f"{row[0]!s} {row[1]!s}".encode("ascii", "backslashreplace").decode()


class Lock:
    """Marks that this process writes a database. The operating system releases it at the end of the process."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Take the lock; raises StoreBroken if another process has it. `shared`: for readers, together with other readers."""
        # SQLite locks ranges of the file and forgets them when it is closed anywhere in the process: this stays open the longest
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StoreBroken(f"{path}: in use by another process") from None

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection for the writer; raises sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    # readers that take long, such as a backup, let the log grow; journal_size_limit gives its room back afterwards
    return _prepared(connection, "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000", "journal_size_limit=67108864")


def reader(path: Path) -> sqlite3.Connection:
    """Return a connection that never writes, and that keeps the log when it is closed; raises StoreBroken."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=5.0)
        return _prepared(connection, "query_only=1")
    except sqlite3.Error as error:
        raise StoreBroken(f"{path}: {error}") from error


def _prepared(connection: sqlite3.Connection, *pragmas: str) -> sqlite3.Connection:
    """Set options of a new connection, and close it if that fails."""
    # a name or a uid that a disk damaged need not be text any more: it is compared, and found wrong
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def examine(path: Path, *, log: bool = True) -> list[str]:
    """Return the problems of a database, except those of rows. `log`: no other process writes, so that its log can be read."""
    found: list[str] = []
    if log and (damage := wal.read(path).damage):
        found.append(f"{path}-wal: {damage}")
    try:
        expected = mark.read(path)
    except mark.BadMark as error:
        expected = None
        found.append(str(error))
    connection = reader(path)
    try:
        connection.execute("BEGIN")
        state = _examine_state(connection)
        if expected is not None and state[0] < expected.revision:
            found.append(f"{path}: holds revision {state[0]} where {expected.revision} was acknowledged: it or its log has lost its end")
        elif expected is not None and state[0] == expected.revision and state != expected:
            found.append(f"{path}: differs from {mark.place(path).name} at the same revision")
        found += [f"{path}: {text}" for (text,) in connection.execute("PRAGMA quick_check(10)") if text != "ok"]
    except (sqlite3.Error, StoreBroken) as error:
        found.append(f"{path}: {error}")
    finally:
        connection.close()
    return found


def _examine_state(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return revision, count and total; raises StoreBroken if the schema or the state row is damaged."""
    schema = {name: " ".join(sql.split()) for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if "state" not in schema:
        return 0, 0, 0
    format_ = connection.execute("SELECT format FROM state").fetchone()
    if format_ is not None and format_[0] == 1:
        return connection.execute("SELECT revision FROM state").fetchone()[0], 0, 0
    if format_ is not None and format_[0] != FORMAT:
        raise StoreBroken(f"written in format {format_[0]}, this program knows {FORMAT}")
    if schema != _SCHEMA:
        raise StoreBroken("the definitions of its tables are damaged")
    row = connection.execute("SELECT revision, format, count, total, sum FROM state").fetchone()
    if row is None:
        return 0, 0, 0
    if tuple(row) != state_row(row[0], row[2], row[3]):
        raise StoreBroken("the row of its state is damaged")
    return row[0], row[2], row[3]


def create(connection: sqlite3.Connection) -> None:
    """Create the tables if they are missing."""
    connection.executescript(_TABLES)


def _has_format_1(connection: sqlite3.Connection) -> bool:
    if connection.execute("SELECT name FROM sqlite_master WHERE name = 'state'").fetchone() is None:
        return False
    return bool(connection.execute("SELECT format FROM state").fetchone() == (1,))


def _migrate(connection: sqlite3.Connection) -> None:
    """Migrate from format 1, which had no checksums."""
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
    """Write the state row, within a transaction."""
    connection.execute(
        "INSERT OR REPLACE INTO state (id, revision, format, count, total, sum) VALUES (1, ?, ?, ?, ?, ?)",
        state_row(revision, count, total & _MASK),
    )


class SqliteJournal:
    """A `store.Journal` in one file. Open it, read its content, then start it in the event loop."""

    def __init__(self, path: Path) -> None:
        """Open or create the database; raises StoreBroken, also if another process has it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._lock = Lock(path)
        try:
            self._connection = self._opened()
        except (sqlite3.Error, OSError) as e:
            self._lock.release()
            raise StoreBroken(f"{path}: {e}") from e
        except BaseException:
            self._lock.release()
            raise
        self.revisions = Revisions(self.revision)
        self.durable_rv = self.revision
        self.error: BaseException | None = None
        self._queue: SimpleQueue[tuple[str, Event] | None] = SimpleQueue()
        self._callbacks: list[Callable[[int], None]] = []
        self._on_failure: list[Callable[[BaseException], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def _opened(self) -> sqlite3.Connection:
        """Examine, open, and write, so that a full or read-only disk is found now, not by the first client."""
        if problems := examine(self.path):
            raise StoreBroken(f"{'; '.join(problems)}; {ADVICE}")
        connection = connect(self.path)
        try:
            if _has_format_1(connection):
                _migrate(connection)
            create(connection)
            # an end of the log that was never acknowledged must not be taken for damage later
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.revision, self._count, self._total = _examine_state(connection)
            connection.execute("BEGIN IMMEDIATE")
            write_state(connection, self.revision, self._count, self._total)
            connection.execute("COMMIT")
            self._mark = mark.Writer(self.path, Mark(self.revision, self._count, self._total))
        except BaseException:
            connection.close()
            raise
        return connection

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield all stored entries with the names of their tables. Raises StoreBroken with the names of damaged rows."""
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
            raise StoreBroken(f"{self.path}: {e}; {ADVICE}") from e
        if damaged:
            raise StoreBroken(f"{self.path}: {len(damaged)} damaged: {', '.join(damaged[:10])}; {ADVICE}")
        if (count, total & _MASK) != (self._count, self._total):
            raise StoreBroken(f"{self.path}: holds {count} objects where {self._count} were written; {ADVICE}")

    def start(self) -> None:
        """Start writing; call this in the serving event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._thread.start()

    def append(self, table: str, event: Event) -> None:
        """Queue a change."""
        self._queue.put((table, event))

    def on_durable(self, callback: Callable[[int], None]) -> None:
        """Register a function to call in the event loop after each commit."""
        self._callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Register a function to call in the event loop when writing fails; nothing is durable from then on."""
        self._on_failure.append(callback)

    def close(self) -> None:
        """Write the queue, then close."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        with suppress(OSError):
            self._mark.sync()
        self._mark.close()
        self._connection.close()
        self._lock.release()

    def _write(self) -> None:
        done = False
        while not done:
            batch: list[tuple[str, Event]] = []
            item = self._next()
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

    def _next(self) -> tuple[str, Event] | None:
        """Return the next item of the queue; sync the mark while it is empty."""
        if not self._mark.is_synced:
            with suppress(Empty):
                return self._queue.get(timeout=_IDLE)
            with suppress(OSError):  # the next commit says what is wrong with the disk
                self._mark.sync()
            self._mark.is_synced = True
        return self._queue.get()

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
            self._mark.write(Mark(batch[-1][1].entry.rv, self._count, self._total))
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
