"""Failed attempts: their messages, and the time of the next one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.passing import PassFailed


class ProvisionFailed(PassFailed):
    """The machine or the cluster's infrastructure cannot be created. `Ready` and an Event show the reason, and it is retried.

    `facts` are for the provider's own conditions.
    """

    def __init__(self, message: str, *, facts: Any = None) -> None:
        super().__init__(message)
        self.facts = facts


class Attempts:
    """The waits between failed attempts, by object: each is twice as long as the previous one, up to a limit."""

    def __init__(self, first: timedelta, longest: timedelta) -> None:
        self._first = first
        self._longest = max(first, longest)
        self._waits: dict[ObjectKey, tuple[timedelta, datetime]] = {}

    def failed(self, key: ObjectKey, now: datetime) -> timedelta:
        """Record a failure; return the wait. An attempt between two waits, caused by some change, does not prolong them."""
        wait, due = self._waits.get(key, (self._first / 2, now))
        if now >= due:
            wait = min(wait * 2, self._longest)
            due = now + wait
            self._waits[key] = (wait, due)
        return due - now

    def forget(self, key: ObjectKey) -> None:
        """Restart with the first wait."""
        self._waits.pop(key, None)
