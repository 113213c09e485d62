"""The open watches of a server: their time limits, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.storage.streams import Stream


class Watches:
    """Keeps track of streams. `timeout`: seconds after which a watch without own timeout ends, at the latest twice that; 0: never."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._streams: dict[str, set[Stream]] = {}
        self.timeout = 0
        self.bookmark_interval = 60.0

    def hold(self, resource: Resource, stream: Stream, timeout: int, bookmark: Callable[[], bytes] | None) -> None:
        """Keep a watch: end it after its timeout or when its kind goes, and send bookmarks if it wants them."""
        loop = asyncio.get_running_loop()
        key = resource.storage_key
        self._streams.setdefault(key, set()).add(stream)
        stream.on_close(lambda: self._streams[key].discard(stream))
        if timeout <= 0 and self.timeout:
            timeout = self.timeout + self._random.randrange(self.timeout)
        if timeout > 0:
            stream.on_close(loop.call_later(timeout, stream.close).cancel)
        if bookmark is not None and self.bookmark_interval > 0:
            _Bookmarks(stream, bookmark, self.bookmark_interval, loop)

    def end(self, key: str) -> None:
        """Close the watches of a kind."""
        for stream in list(self._streams.get(key, ())):
            stream.close()

    def open(self) -> dict[str, int]:
        """Open watches by table."""
        return {name: len(streams) for name, streams in sorted(self._streams.items()) if streams}

    def close(self) -> None:
        """Close all watches."""
        for key in list(self._streams):
            self.end(key)


class _Bookmarks:
    def __init__(self, stream: Stream, make: Callable[[], bytes], interval: float, loop: asyncio.AbstractEventLoop) -> None:
        self._stream, self._make, self._interval, self._loop = stream, make, interval, loop
        self._handle = loop.call_later(interval, self._send)
        stream.on_close(self._stop)

    def _stop(self) -> None:
        self._handle.cancel()

    def _send(self) -> None:
        self._stream.push(self._make())
        self._handle = self._loop.call_later(self._interval, self._send)
