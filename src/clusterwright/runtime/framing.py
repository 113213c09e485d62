"""Split a stream of bytes into watch events: one JSON value after the other, with any white space.

API servers end every event with a newline and write none within it; but the protocol promises neither: a server may write JSON
that spans lines, or several values without anything between. What decides is the JSON itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from clusterwright.api.wire import UNREADABLE

_WHOLE: Final = msgspec.json.Decoder(msgspec.Raw)
_MARKS: Final = re.compile(rb'[{}\[\]"]|\\.|\\\Z|\n', re.DOTALL)
_SPACE: Final = b" \t\r\n"


class TooLong(Exception):
    """A value is longer than the limit."""


class JsonFrames:
    """Cuts its input into whole JSON values, each at most `limit` bytes.

    Invalid JSON is returned as it is, as far as its end is clear: the reader will notice, and start again.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._at = 0  # how far the rest was looked at
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the complete values. Raises TooLong."""
        begin = 0
        while begin < len(chunk):
            newline = chunk.find(b"\n", begin)
            # the way of API servers: where nothing is open, a line is a value
            if newline >= 0 and not self._rest and _is_whole(line := chunk[begin:newline]):
                if line and not line.isspace():
                    yield line
                begin = newline + 1
                continue
            end = newline + 1 or len(chunk)
            self._rest += memoryview(chunk)[begin:end]
            begin = end
            yield from self._scan()
            if len(self._rest) > self._limit:
                raise TooLong

    def end(self) -> bytes:
        """Return the rest when the stream ends: nothing, or a truncated value."""
        return bytes(self._rest.strip(_SPACE))

    def _scan(self) -> Iterator[bytes]:
        while (cut := self._next_cut()) >= 0:
            value = bytes(self._rest[:cut]).strip(_SPACE)
            del self._rest[:cut]
            self._at, self._depth, self._in_string = 0, 0, False
            if value:
                yield value

    def _next_cut(self) -> int:
        """Return where the first value ends; -1: it is incomplete."""
        for mark in _MARKS.finditer(self._rest, self._at):
            found = mark[0]
            if found == b"\\":  # half of an escape: the rest of it comes
                self._at = mark.start()
                return -1
            if self._in_string:
                if found == b"\n":  # never in a string: this is no JSON
                    return mark.end()
                self._in_string = found != b'"'
            elif found == b'"':
                self._in_string = True
            elif found in b"{[":
                self._depth += 1
            elif found in b"}]":
                self._depth -= 1
            if self._depth <= 0 and found in b"}]\n" and not self._in_string:
                return mark.end()
        self._at = len(self._rest)
        return -1


def _is_whole(line: bytes) -> bool:
    """Return whether the line is one JSON value, or empty."""
    if not line or line.isspace():
        return True
    try:
        _WHOLE.decode(line)
    except UNREADABLE:
        return False
    return True
