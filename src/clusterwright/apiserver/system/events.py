"""Delete expired Events."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Event, Table

_EVENTS: Final = "events"
_EVENT_TTL: Final = timedelta(hours=1)


class EventExpiry:
    """Removes Events an hour after they were last written, as kube-apiserver does. Each write of an Event removes expired ones."""

    def __init__(self, server: Core) -> None:
        self.server = server
        self._written: deque[tuple[datetime, str, int]] = deque()
        self._is_expiring = False
        now = server.now()
        for entry in server.store.table(_EVENTS).range():
            self._written.append((now, entry.key, entry.rv))
        server.store.listeners.append(self.offer)

    def offer(self, table: Table, event: Event) -> None:
        """Record the time of a write, and remove expired Events."""
        if table.name != _EVENTS or event.type == "DELETED":
            return
        self._written.append((self.server.now(), event.entry.key, event.entry.rv))
        if not self._is_expiring and self._written[0][0] <= self.server.now() - _EVENT_TTL:
            self._is_expiring = True
            self.server.in_steps(self._expire())

    def _expire(self) -> Iterator[int]:
        """Remove Events that were not written for an hour."""
        table = self.server.store.table(_EVENTS)
        oldest = self.server.now() - _EVENT_TTL
        try:
            while self._written and self._written[0][0] <= oldest:
                _, key, rv = self._written.popleft()
                entry = table.objects.get(key)
                if entry is not None and entry.rv == rv:
                    self.server.remove_system(table, entry)
                yield 0 if entry is None else len(entry.raw)
        finally:
            self._is_expiring = False
