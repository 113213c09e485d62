"""Read SQLite's write-ahead log without SQLite, to distinguish a damaged log from one whose end was never written.

SQLite silently takes the first frame with a wrong checksum for the end of the log. That is right for a torn end, the rest of an
unacknowledged transaction, and wrong for a flipped bit, after which acknowledged transactions vanish. The two differ in what stands behind
the bad frame. With `synchronous=FULL` a transaction is written only after the one before it was synced, and the journal empties the log
whenever it opens it. So a frame of this log that follows a commit behind the bad frame proves that the bad frame was once durable: the log
is damaged. Frames behind the bad one but of the same transaction prove nothing, because a machine that loses power writes blocks in any
order. Damage in the very last transaction looks like a torn end here; the mark (`mark`) finds it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_HEADER: Final = 32
_FRAME: Final = 24
_MASK: Final = 0xFFFFFFFF
_DEFAULT_PAGE: Final = 4096
_PAGES: Final = frozenset(1 << power for power in range(9, 17))
_Order = Literal["<", ">"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One page of the log. `size`: pages of the database after the commit that this frame ends, or 0."""

    number: int
    page: int
    size: int
    is_ours: bool
    """Whether its salts are those of this log, not of an earlier one whose file is reused."""
    follows: bool
    """Whether its checksum continues that of the frame before it."""


@dataclass(frozen=True, slots=True)
class Log:
    """The content of a write-ahead log."""

    page_size: int = _DEFAULT_PAGE
    frames: tuple[Frame, ...] = ()
    is_header_damaged: bool = False

    @property
    def valid(self) -> int:
        """The number of intact frames from the beginning; SQLite reads no others."""
        if self.is_header_damaged:
            return 0
        return next((f.number for f in self.frames if not (f.is_ours and f.follows and f.page)), len(self.frames))

    @property
    def damage(self) -> str:
        """Return the damage in one sentence; empty for a log that is intact or has a torn end."""
        whole = [f.number for f in self.frames if f.is_ours and f.follows]
        if self.is_header_damaged:
            return f"the header of the log is damaged, {len(whole)} whole frames are behind it" if whole else ""
        first = self.valid
        commit = next((f.number for f in self.frames[first:] if f.is_ours and f.size), None)
        behind = 0 if commit is None else sum(number > commit for number in whole)
        return f"frame {first + 1} of the log is damaged, {behind} whole frames of later commits are behind it" if behind else ""


def read(path: Path) -> Log:
    """Return the content of the log next to the database `path`; an absent log is an empty one."""
    content = _content(path)
    if len(content) < _HEADER + _FRAME:
        return Log()
    stored = struct.unpack_from(">II", content, 24)
    order: _Order = "<" if content[3] & 1 == 0 else ">"
    page_size = int.from_bytes(content[8:12], "big")
    if checksum(content[:24], (0, 0), order) == stored and page_size in _PAGES:
        return Log(page_size, _frames(content, page_size, order, content[16:24], stored))
    return _behind_damaged_header(path, content, stored)


def _behind_damaged_header(path: Path, content: bytes, stored: tuple[int, int]) -> Log:
    """Return the log if its first frame continues the header: then the header was intact when that frame was written."""
    claimed, known = int.from_bytes(content[8:12], "big"), _database_page(path)
    for order in ("<", ">"):
        for page_size in dict.fromkeys((claimed, known, _DEFAULT_PAGE)):
            if page_size not in _PAGES or len(content) < _HEADER + _FRAME + page_size:
                continue
            for seed in (stored, checksum(content[:24], (0, 0), order)):
                frames = _frames(content, page_size, order, content[_HEADER + 8 : _HEADER + 16], seed)
                if frames[0].follows:
                    return Log(page_size, frames, is_header_damaged=True)
    return Log(is_header_damaged=True)


def _frames(content: bytes, page_size: int, order: _Order, salts: bytes, seed: tuple[int, int]) -> tuple[Frame, ...]:
    found: list[Frame] = []
    length, before = _FRAME + page_size, True
    for number, at in enumerate(range(_HEADER, len(content) - length + 1, length)):
        page, size = struct.unpack_from(">II", content, at)
        stored = struct.unpack_from(">II", content, at + 16)
        is_ours = content[at + 8 : at + 16] == salts
        # the checksums of frames of an earlier log are of no use; but a frame whose salt was hit continues ours
        follows = (is_ours or before) and _follows(content[at : at + length], seed, order)
        found.append(Frame(number, page, size, is_ours, follows))
        seed, before = stored, is_ours
    return tuple(found)


def _follows(frame: bytes, seed: tuple[int, int], order: _Order) -> bool:
    return checksum(frame[_FRAME:], checksum(frame[:8], seed, order), order) == struct.unpack_from(">II", frame, 16)


def checksum(data: bytes, seed: tuple[int, int], order: _Order) -> tuple[int, int]:
    """Continue the running checksum of a log over `data`."""
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second


def fold(path: Path, log: Log, *, damaged: bool) -> bytes:
    """Return the database with the pages of the log in it, up to the last commit. `damaged`: frames with wrong checksums as well.

    A page with a flipped bit still has all rows but one, and every row has a checksum of its own.
    """
    database, content = bytearray(path.read_bytes()), _content(path)
    frames = [f for f in log.frames if f.page and (f.follows or (damaged and f.is_ours))]
    commits = [f for f in frames if f.size]
    if not commits:
        return bytes(database)
    last, most = commits[-1], max(len(database) // log.page_size, *(f.size for f in commits if f.follows), 1)
    for frame in frames:
        if frame.number <= last.number and frame.page <= most:
            start, at = (frame.page - 1) * log.page_size, _HEADER + frame.number * (_FRAME + log.page_size) + _FRAME
            database.extend(bytes(max(start - len(database), 0)))
            database[start : start + log.page_size] = content[at : at + log.page_size]
    return bytes(database)


def _content(path: Path) -> bytes:
    try:
        return path.with_name(path.name + "-wal").read_bytes()
    except FileNotFoundError:
        return b""


def _database_page(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(18)[16:18], "big")
