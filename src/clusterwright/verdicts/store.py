"""The history of verdicts in a file of its own next to the objects. It is a convenience: an unreadable file is replaced by a new one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from clusterwright.api.meta import ObjectKey
from clusterwright.offline.workings import Past
from clusterwright.runtime.logging import get_logger

FILE: Final = "verdicts.sqlite"
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS verdicts (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, at TEXT NOT NULL, entry BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS of_cluster ON verdicts (namespace, name, at);
"""
_log = get_logger("verdicts")


class Store:
    """Storage of entries in SQLite. No write waits for the disk: entries survive the process, but not a crash of the machine."""

    def __init__(self, folder: Path) -> None:
        """Create the folder and the file, accessible to their owner only."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / FILE
        self._connection: sqlite3.Connection | None = None
        try:
            self._open()
        except sqlite3.Error as error:
            _log.warning("History of verdicts cannot be read and is begun again", file=str(self._path), error=str(error))
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(FILE + suffix).unlink(missing_ok=True)
            with suppress(sqlite3.Error):
                self._open()

    def _open(self) -> None:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_TABLE)
            connection.execute("SELECT count(entry) FROM verdicts").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        self._connection = connection

    def load(self) -> Iterator[tuple[ObjectKey, str, Past]]:
        """Yield cluster, uid and entry, oldest first; entries that cannot be read are left out."""
        if self._connection is None:
            return
        for namespace, name, uid, entry in self._connection.execute("SELECT namespace, name, uid, entry FROM verdicts ORDER BY id"):
            with suppress(msgspec.DecodeError, msgspec.ValidationError):
                yield ObjectKey(namespace, name), uid, msgspec.json.decode(entry, type=Past)

    def add(self, cluster: ObjectKey, uid: str, entry: Past) -> None:
        """Keep one more entry."""
        row = (*cluster, uid, entry.at, msgspec.json.encode(entry))
        self._run("INSERT INTO verdicts (namespace, name, uid, at, entry) VALUES (?, ?, ?, ?, ?)", row)

    def drop(self, cluster: ObjectKey, until: str = "") -> None:
        """Forget a cluster, or its entries from before a moment."""
        if until:
            self._run("DELETE FROM verdicts WHERE namespace = ? AND name = ? AND at < ?", (*cluster, until))
        else:
            self._run("DELETE FROM verdicts WHERE namespace = ? AND name = ?", cluster)

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        if self._connection is None:
            return
        try:
            self._connection.execute(statement, values)
        except sqlite3.Error as error:  # a full disk must not end the plane; the history of this process goes on in memory
            _log.warning("History of verdicts cannot be written", file=str(self._path), error=str(error))
            self.close()

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
