"""Keep the output of a process in two files of bounded size, on a thread of its own: a slow disk must not stop the event loop."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from clusterwright.runtime.failures import told
from clusterwright.runtime.logging import redact

LARGEST_FILE: Final = 8 * 1024 * 1024
PER_SECOND: Final = 2 * 1024 * 1024
"""Bytes per second that are read on average. A process that writes more waits, so that it takes no time of the plane."""
_LONGEST_WAIT: Final = 2.0
_CHUNK: Final = 64 * 1024
_LAST_LINES: Final = 5
_LONGEST_LINE: Final = 400


class Output:
    """The output of one process. `descriptor` is the end that the process writes to."""

    def __init__(self, path: Path, now: Callable[[], datetime], *, largest: int = LARGEST_FILE, per_second: int = PER_SECOND) -> None:
        self._path, self._now, self._largest, self._per_second = path, now, largest, per_second
        self._reading, self.descriptor = os.pipe()
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._rest = b""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"output of {path.parent.name}", daemon=True)

    def start(self) -> None:
        """Close our copy of the process's end, and begin to read. Call it when the process has started."""
        os.close(self.descriptor)
        self._thread.start()

    def abandon(self) -> None:
        """Close both ends: the process did not start."""
        os.close(self.descriptor)
        os.close(self._reading)

    def close(self, within: float = 2.0) -> None:
        """Wait until everything is written, at most for some seconds: a child of the process may hold the pipe."""
        self._thread.join(within)
        self._closed.set()

    @property
    def last(self) -> str:
        """The last lines, without anything that looks like a credential."""
        lines = [line for line in (*self._last, self._rest) if line.strip()][-_LAST_LINES:]
        text = "\n".join(redact(line.decode("utf-8", "replace").strip()[:_LONGEST_LINE]) for line in lines)
        return told(ValueError(text)) if text else ""

    def _run(self) -> None:
        try:
            file, size = self._opened()
            begin, read = self._now(), 0
            while not self._closed.is_set() and (chunk := os.read(self._reading, _CHUNK)):
                self._remember(chunk)
                if file is not None and size + len(chunk) > self._largest:
                    os.close(file)
                    self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                    file, size = self._opened()
                if file is not None:
                    size += self._written(file, chunk)
                read += len(chunk)
                ahead = read / self._per_second - (self._now() - begin).total_seconds()
                if ahead > 1.0:
                    self._closed.wait(min(ahead - 0.5, _LONGEST_WAIT))  # the clock may be set back
                elif ahead < -10.0:
                    begin, read = self._now(), 0  # quiet time is not saved for a flood
            if file is not None:
                os.close(file)
        finally:
            os.close(self._reading)

    def _opened(self) -> tuple[int | None, int]:
        """Return the file and its size; None if it cannot be opened: the process runs without a log then."""
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None, 0
        return file, os.fstat(file).st_size

    @staticmethod
    def _written(file: int, chunk: bytes) -> int:
        try:
            return os.write(file, chunk)
        except OSError:  # the disk is full: what cannot be written is lost
            return 0

    def _remember(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._last.extend(line[: 2 * _LONGEST_LINE] for line in lines[-_LAST_LINES:] if line.strip())
        self._rest = rest[: 2 * _LONGEST_LINE]
