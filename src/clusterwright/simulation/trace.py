"""Record the traffic between processes and API servers with its times: as a hash, to compare runs, and as text, to read them."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque

from clusterwright.api.wire import Request, Response


class Trace:
    """All exchanges, in order. Two runs with the same hash did the same at the same virtual times."""

    def __init__(self, *, keep: int = 2000) -> None:
        self._hash = hashlib.sha256()
        self._lines: deque[str] = deque(maxlen=keep)
        self.requests = 0

    def exchange(self, process: str, request: Request, response: Response) -> None:
        """Record a request and its answer."""
        self.requests += 1
        query = "&".join(f"{name}={value}" for name, value in request.query)
        self._add(f"{process} {request.method} {request.path}?{query} -> {response.status}", request.body, response.body)

    def line(self, process: str, line: bytes) -> None:
        """Record a delivered watch line."""
        self._add(f"{process} event", line)

    def note(self, process: str, text: str) -> None:
        """Record another event."""
        self._add(f"{process} {text}")

    def _add(self, text: str, *bodies: bytes) -> None:
        stamped = f"{asyncio.get_running_loop().time():.6f} {text}"
        self._hash.update(stamped.encode())
        for body in bodies:
            self._hash.update(len(body).to_bytes(4))
            self._hash.update(body)
        # only heads are kept for reading: bodies may hold secrets
        self._lines.append(stamped)

    @property
    def digest(self) -> str:
        """Return the hash of all events so far."""
        return self._hash.hexdigest()

    @property
    def lines(self) -> list[str]:
        """Return the last events."""
        return list(self._lines)
