"""Watches: all changes from a starting point that match a selector, as lines of JSON."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from clusterwright.api.wire import Response
from clusterwright.apiserver.status import StatusError, gone
from clusterwright.apiserver.storage.store import Entry, Event, Gone

if TYPE_CHECKING:
    from clusterwright.apiserver.storage.store import Table

Selects = Callable[[Entry], bool]
Render = Callable[[Entry], bytes]
Frame = Callable[[str, bytes], bytes]
"""Returns one event in wire form, from a type and an object."""

QUEUE_LIMIT: Final = 10_000
"""How many lines a watcher may lag before it is closed; it then resumes or lists again."""
QUEUE_BYTES: Final = 64 * 1024 * 1024
"""How many bytes a watcher may lag."""


class Stream:
    """A continuing answer: a head, then lines. Iterate it, or give it a sink; close it when done."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.closed = False
        self._lines: deque[bytes] = deque()
        self._limit = QUEUE_LIMIT
        self._bytes = 0
        self._bytes_limit = QUEUE_BYTES
        self._wake: asyncio.Future[None] | None = None
        self._sink: Callable[[bytes], None] | None = None
        self._on_close: list[Callable[[], None]] = []

    def push(self, line: bytes, *, first: bool = False) -> None:
        """Append a line. `first`: it shows an object that existed when the stream began; such lines do not count as a lag.

        A stream that lags too far is closed, and its waiting bytes are dropped: its reader resumes from its last line.
        """
        if self.closed:
            return
        if self._sink is not None:
            self._sink(line)
            return
        self._lines.append(line)
        self._bytes += len(line)
        if first:
            self._limit += 1
            self._bytes_limit += len(line)
        elif self._bytes > self._bytes_limit:
            self._lines.clear()
            self.close()
        elif len(self._lines) > self._limit:
            self.close()
        self._notify()

    def connect(self, sink: Callable[[bytes], None], on_close: Callable[[], None]) -> None:
        """Send all lines, past and future, to `sink`; `on_close` is called at the end."""
        lines, self._lines, self._bytes = self._lines, deque(), 0
        for line in lines:
            sink(line)
        if self.closed:
            on_close()
            return
        self._sink = sink
        self._on_close.append(on_close)

    def take(self, size: int) -> bytes:
        """Return waiting lines, about `size` bytes of them; empty if there are none."""
        taken: list[bytes] = []
        while self._lines and size > 0:
            taken.append(self._lines.popleft())
            size -= len(taken[-1])
            self._bytes -= len(taken[-1])
        return b"".join(taken)

    def on_close(self, callback: Callable[[], None]) -> None:
        """Register a function to call when the stream closes."""
        self._on_close.append(callback)

    def close(self) -> None:
        """End the stream; lines already pushed are still delivered. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._notify()

    def _notify(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    def __aiter__(self) -> Lines:
        return Lines(self)

    async def next(self) -> bytes | None:
        """Return the next line; None at the end."""
        while not self._lines:
            if self.closed:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        line = self._lines.popleft()
        self._bytes -= len(line)
        return line


class Lines:
    """Iterates over a stream's lines, and closes it when it is closed or forgotten (also before the first line)."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> bytes:
        try:
            text = await self._stream.next()
        except BaseException:
            self._stream.close()
            raise
        if text is None:
            raise StopAsyncIteration
        return text

    async def aclose(self) -> None:
        """End the stream."""
        self._stream.close()

    def __del__(self) -> None:
        self._stream.close()


def line(kind: str, body: bytes) -> bytes:
    """Return one watch event in wire form."""
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


class Feed(Protocol):
    """Receives a table's events on their way to a stream."""

    def begin(self, entry: Entry) -> None:
        """Show an existing object."""

    def offer(self, event: Event) -> None:
        """Show a change."""

    def push(self, line: bytes) -> None:
        """Send a line unchanged, in its turn."""


class Watcher:
    """Feeds one stream from one table."""

    def __init__(self, stream: Stream, selects: Selects | None, render: Render | None, variant: object, frame: Frame | None = None) -> None:
        self.stream = stream
        self.selects = selects
        self.render = render
        self.variant = variant
        """The name of the rendering, so that watchers of the same form share lines."""
        self.frame: Frame = frame or line
        self.last_rv = 0

    def begin(self, entry: Entry) -> None:
        """Push an existing object, if it passes the selector."""
        if self.selects is None or self.selects(entry):
            self.stream.push(self.frame("ADDED", self.render(entry) if self.render is not None else entry.raw), first=True)

    def push(self, line: bytes) -> None:
        """Push a line unchanged."""
        self.stream.push(line)

    def offer(self, event: Event) -> None:
        """Push the event if it passes the selector, as the change in the watcher's view.

        An object that cannot be converted to the watcher's version ends the watch; the write itself succeeds.
        """
        try:
            self._offer(event)
        except StatusError as error:
            self.stream.push(self.frame("ERROR", msgspec.json.encode(error.status)))
            self.stream.close()

    def _offer(self, event: Event) -> None:
        kind, shown, plain = event.type, event.entry, True
        if shown.rv <= self.last_rv:
            return
        if self.selects is not None:
            now = kind != "DELETED" and self.selects(shown)
            before = event.old is not None and self.selects(event.old)
            if now:
                kind = "MODIFIED" if before else "ADDED"
            elif before:
                if kind != "DELETED":
                    kind, plain = "DELETED", False
            else:
                return
        key = (self.variant, kind, plain)
        text = event.lines.get(key) if event.lines is not None else None
        if text is None:
            entry = shown if plain else (event.old or shown).at(shown.rv)
            text = self.frame(kind, self.render(entry) if self.render is not None else entry.raw)
            if event.lines is not None:
                event.lines[key] = text
        self.stream.push(text)


def replay(table: Table, rv: int, durable_rv: int, feed: Feed) -> None:
    """Pass on the durable events after `rv`; raises StatusError if they are older than the history."""
    try:
        events = table.since(rv)
    except Gone:
        raise gone(f"too old resource version: {rv} ({table.floor})") from None
    for event in events:
        if event.entry.rv <= durable_rv:
            feed.offer(event)
