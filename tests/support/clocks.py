"""Clocks for passes that follow each other."""

from __future__ import annotations

from datetime import datetime, timedelta


class MovableClock:
    """A clock that stands until it is moved."""

    def __init__(self, start: datetime) -> None:
        self.time = self._start = start

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
