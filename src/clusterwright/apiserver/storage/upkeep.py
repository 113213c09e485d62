"""Maintain a data directory: check, repair, back up (also while it is served) and restore.

A data directory holds the store, the keys next to it, and one store for all simulated workload clusters in `workload/`. A backup
is a folder with a consistent copy of each file and a manifest of their digests; each store in it is of one moment, different
stores may be of moments a little apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from clusterwright.apiserver.storage import mark, sqlite, wal
from clusterwright.apiserver.storage.sqlite import COLUMNS, FORMAT, Lock, StoreBroken, reader

MANIFEST: Final = "manifest.json"
KEYS: Final = ("ca.crt", "ca.key", "tokens.key", "tokens.pem")
SKIPPED_REVISIONS: Final = 1_000_000
"""How many revisions a restored store skips, so that revisions which clients have seen since the backup are not reused."""
_COMPANIONS: Final = ("-wal", "-shm", mark.SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of checking one store."""

    path: Path
    objects: int = 0
    revision: int = 0
    damaged: tuple[str, ...] = ()
    """Rows whose checksum is wrong, by kind and key."""
    problems: tuple[str, ...] = ()
    """Other problems."""

    @property
    def is_sound(self) -> bool:
        """Whether everything that was written is intact."""
        return not self.damaged and not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The findings and actions of a repair."""

    found: Report
    kept: Path
    """The damaged file, unchanged; its log and mark are next to it."""
    objects: int
    """The number of objects in the new store."""
    lost: tuple[str, ...]
    """The objects that the new store lacks."""


@dataclass(slots=True)
class _Rows:
    """The part of a store that could be read."""

    intact: list[tuple[Any, ...]] = field(default_factory=list)
    damaged: list[tuple[Any, ...]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    state: tuple[Any, ...] | None = None


def stores(data_dir: Path) -> list[Path]:
    """Return the stores of a data directory: its own, then those of workload clusters; raises StoreBroken if there are none."""
    found = [p for p in (data_dir / "store.sqlite", *sorted((data_dir / "workload").glob("*.sqlite"))) if p.exists()]
    if not found:
        raise StoreBroken(f"{data_dir}: no store is here")
    return found


def check(path: Path) -> Report:
    """Check every page, every row and the log; a serving process is not disturbed."""
    try:
        lock = Lock(path, shared=True)
    except StoreBroken:  # whoever serves has looked at the log, and changes it now
        return _check(path, log=False)
    try:
        return _check(path, log=True)
    finally:
        lock.release()


def _check(path: Path, *, log: bool) -> Report:
    problems = [text.removeprefix(f"{path}: ") for text in sqlite.examine(path, log=log)]
    connection = reader(path)
    try:
        rows = _read(connection)
    finally:
        connection.close()
    return Report(
        path=path,
        objects=len(rows.intact),
        revision=rows.state[0] if rows.state is not None else 0,
        damaged=tuple(map(sqlite.row_name, rows.damaged)),
        problems=tuple(dict.fromkeys([*problems, *rows.problems])),
    )


def repair(path: Path, now: datetime) -> Repair | None:
    """Write the intact data into a new store and keep the damaged files next to it, unchanged. No process may serve it meanwhile.

    Return the findings and actions, or None if nothing needed repair.
    """
    lock = Lock(path)
    try:
        found = _check(path, log=True)
        if found.is_sound:
            return None
        kept = path.with_name(f"{path.name}.damaged-{now:%Y%m%dT%H%M%SZ}")
        if kept.exists():
            raise StoreBroken(f"{kept}: exists already; it is not overwritten")
        rows, acknowledged = _salvaged(path), _acknowledged(path)
        reached = rows.state[0] if rows.state is not None else max((row[5] for row in rows.intact), default=0)
        highest = max(reached, acknowledged, *(row[5] for row in rows.intact), 0)
        repaired = path.with_name(path.name + ".repaired")
        _remove(repaired)
        _write(repaired, rows.intact, highest + SKIPPED_REVISIONS)
        for suffix in ("", *_COMPANIONS):
            if (part := path.with_name(path.name + suffix)).exists():
                os.replace(part, kept.with_name(kept.name + suffix))
        os.replace(repaired, path)
        _sync(path.parent)
        return Repair(found=found, kept=kept, objects=len(rows.intact), lost=tuple(_lost(rows, reached, acknowledged)))
    finally:
        lock.release()


def _acknowledged(path: Path) -> int:
    """Return the last revision that is known to have been acknowledged."""
    try:
        found = mark.read(path)
    except mark.BadMark:
        return 0
    return 0 if found is None else found.revision


def _lost(rows: _Rows, reached: int, acknowledged: int) -> Iterator[str]:
    yield from (f"damaged: {sqlite.row_name(row)}" for row in rows.damaged)
    yield from rows.problems
    if reached < acknowledged:
        yield f"the changes of revisions {reached + 1} to {acknowledged}, whatever they were"


def _salvaged(path: Path) -> _Rows:
    """Return as many rows as can be read: with all pages of the log, with intact ones, or as SQLite reads it."""
    log = wal.read(path)
    with TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        copies = [folder / "all", folder / "whole", folder / "plain"]
        for copy, damaged in zip(copies, (True, False), strict=False):
            copy.write_bytes(wal.fold(path, log, damaged=damaged))
        for suffix in ("", "-wal"):
            if (part := path.with_name(path.name + suffix)).exists():
                shutil.copyfile(part, folder / f"plain{suffix}")
        found = [_rows_of(copy) for copy in copies]
    return max(found, key=lambda rows: (rows.state is not None, rows.state[0] if rows.state is not None else 0, len(rows.intact)))


def _rows_of(path: Path) -> _Rows:
    try:
        connection = reader(path)
    except StoreBroken as error:
        return _Rows(problems=[str(error)])
    try:
        return _read(connection)
    finally:
        connection.close()


def backup(data_dir: Path, to: Path, now: datetime) -> list[Report]:
    """Copy everything into a new folder, also while it is served. Raises StoreBroken if a copy is not sound."""
    if to.exists():
        raise StoreBroken(f"{to}: exists already; a backup goes into a folder of its own")
    reports: list[Report] = []
    found = stores(data_dir)
    for path in found:  # a copy of a damaged store looks sound: SQLite reads its log up to the damage only
        _demand_sound(check(path), path)
    to.mkdir(mode=0o700, parents=True)
    for path in found:
        copy = to / path.relative_to(data_dir)
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        source, target = reader(path), sqlite3.connect(copy)
        try:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            raise StoreBroken(f"{path}: {error}") from error
        finally:
            source.close()
            target.close()
        reports.append(check(copy))
        _demand_sound(reports[-1], path)
    for name in KEYS:
        if (data_dir / name).exists():
            shutil.copy2(data_dir / name, to / name)
    files = {str(f.relative_to(to)): _digest(f) for f in sorted(to.rglob("*")) if f.is_file()}
    manifest = {"format": FORMAT, "taken": f"{now:%Y-%m-%dT%H:%M:%SZ}", "sha256": files}
    (to / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    for file in (*files, MANIFEST):
        _sync(to / file)
    _sync(to)
    return reports


def _demand_sound(report: Report, path: Path) -> None:
    if not report.is_sound:
        raise StoreBroken(f"{path}: damaged, not backed up: {', '.join((*report.damaged, *report.problems)[:10])}")


def restore(source: Path, data_dir: Path) -> list[Report]:
    """Copy a backup into an empty data directory; raises StoreBroken, before writing anything, if the backup is incomplete."""
    if data_dir.exists() and any(data_dir.iterdir()):
        raise StoreBroken(f"{data_dir}: is not empty; a backup is restored into an empty folder")
    try:
        manifest = json.loads((source / MANIFEST).read_text())
        files: dict[str, str] = manifest["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreBroken(f"{source}: no backup, or its {MANIFEST} cannot be read") from error
    for name, expected in files.items():
        path = source / name
        if ".." in Path(name).parts or Path(name).is_absolute() or not path.is_file():
            raise StoreBroken(f"{source}: {name} of its {MANIFEST} is not there")
        if _digest(path) != expected:
            raise StoreBroken(f"{path}: is not as it was when the backup was taken")
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    reports: list[Report] = []
    for name in files:
        target = data_dir / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy2(source / name, target)
        target.chmod(0o600)
        if target.suffix == ".sqlite":
            connection = reader(target)
            rows = _read(connection)
            connection.close()
            _remove(target)
            revision = rows.state[0] if rows.state is not None else 0
            _write(target, rows.intact, revision + SKIPPED_REVISIONS)
            reports.append(check(target))
        _sync(target)
    _sync(data_dir)
    return reports


def _read(connection: sqlite3.Connection) -> _Rows:
    found = _Rows()
    try:
        connection.execute("BEGIN")
        row = connection.execute("SELECT revision, format, count, total, sum FROM state").fetchone()
    except sqlite3.Error as error:
        found.problems.append(f"its state cannot be read: {error}")
        row = None
    if row is not None and tuple(row) != sqlite.state_row(row[0], row[2], row[3]):
        found.problems.append("the row of its state is damaged")
    elif row is not None:
        found.state = tuple(row)
    try:
        for row in _each(connection):
            (found.intact if sqlite.is_intact(row) else found.damaged).append(row)
    except sqlite3.Error as error:
        found.problems.append(str(error))
    count = len(found.intact) + len(found.damaged)
    if found.state is not None and count != found.state[2]:
        found.problems.append(f"holds {count} objects where {found.state[2]} were written")
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    return found


def _each(connection: sqlite3.Connection) -> Iterable[tuple[Any, ...]]:
    """Yield rows one after the other; stop at an unreadable page."""
    cursor = connection.execute(f"SELECT {COLUMNS} FROM objects")  # noqa: S608 - our own column names
    while (row := cursor.fetchone()) is not None:
        yield tuple(row)


def _write(path: Path, rows: Sequence[tuple[Any, ...]], revision: int) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite.connect(path)
    try:
        sqlite.create(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f"INSERT OR REPLACE INTO objects ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608
        sqlite.write_state(connection, revision, len(rows), sum(row[7] for row in rows))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _remove(path: Path) -> None:
    for suffix in ("", *_COMPANIONS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
