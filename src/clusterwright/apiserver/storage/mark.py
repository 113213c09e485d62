"""The mark: a small file next to a database with the last durable revision.

The journal writes the mark after each commit and before the write is acknowledged. It syncs the mark only when idle, so that a commit still
costs one sync. The mark is therefore never ahead of what is durable, exact after a process was killed, and at most a second behind after a
machine lost power. A database that holds less than its mark has lost something that was answered.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import Final, NamedTuple

SUFFIX: Final = "-mark"
_FORM: Final = re.compile(rb"(\d{20}) (\d{20}) (\d{20}) ([0-9a-f]{8})\n")


class Mark(NamedTuple):
    """The state of a database after a commit: its revision, the number of its rows, and the sum of their checksums."""

    revision: int
    rows: int
    total: int


class BadMark(Exception):
    """A mark differs from what was written."""


def place(path: Path) -> Path:
    """Return the path of the mark of the database `path`."""
    return path.with_name(path.name + SUFFIX)


def read(path: Path) -> Mark | None:
    """Return the mark of the database `path`, or None if there is none yet; raises BadMark."""
    try:
        content = place(path).read_bytes()
    except FileNotFoundError:
        return None
    if not content:  # the process ended between making the file and writing it
        return None
    found = _FORM.fullmatch(content)
    if found is None or encode(mark := Mark(*map(int, found.groups()[:3]))) != content:
        raise BadMark(f"{place(path)}: is damaged")
    return mark


def encode(mark: Mark) -> bytes:
    """Return a mark in its stored form: always of the same length, so that writing it takes no room on a full disk."""
    text = b"%020d %020d %020d" % mark
    return b"%s %08x\n" % (text, zlib.crc32(text))


class Writer:
    """Keeps the mark of one database up to date."""

    def __init__(self, path: Path, mark: Mark) -> None:
        """Write and sync the first mark."""
        self._file = os.open(place(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.is_synced = False
        try:
            self.write(mark)
            self.sync()
        except BaseException:
            self.close()
            raise

    def write(self, mark: Mark) -> None:
        """Overwrite the mark in place."""
        os.pwrite(self._file, encode(mark), 0)
        self.is_synced = False

    def sync(self) -> None:
        """Make the mark durable."""
        if not self.is_synced:
            os.fdatasync(self._file)
            self.is_synced = True

    def close(self) -> None:
        """Close the file; the written data stay."""
        os.close(self._file)
