"""Attempts that fail: what is said of them, and when the next one is."""

from __future__ import annotations

from datetime import datetime, timedelta

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.passing import PassFailed


class ProvisionFailed(PassFailed):
    """The machine or the cluster's infrastructure cannot be made. `Ready` and an Event say why, and it is tried again."""


class Attempts:
    """The waits between failed attempts, by object: each is twice as long as the one before, up to a limit."""

    def __init__(self, first: timedelta, longest: timedelta) -> None:
        self._first = first
        self._longest = max(first, longest)
        self._waits: dict[ObjectKey, tuple[timedelta, datetime]] = {}

    def failed(self, key: ObjectKey, now: datetime) -> timedelta:
        """Note a failure; return how long to wait. An attempt between two waits, which some change caused, prolongs nothing."""
        wait, due = self._waits.get(key, (self._first / 2, now))
        if now >= due:
            wait = min(wait * 2, self._longest)
            due = now + wait
            self._waits[key] = (wait, due)
        return due - now

    def forget(self, key: ObjectKey) -> None:
        """Begin with the first wait again."""
        self._waits.pop(key, None)
