"""Time as an argument. Only the composition root reads the machine's clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Returns the time and waits. In simulations it jumps; in `decide` it stands still."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for intervals: the event loop's time."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""


def utc(text: str) -> datetime:
    """Parse an RFC 3339 text to an aware UTC datetime."""
    return datetime.fromisoformat(text).astimezone(UTC)


class SystemClock:
    """The machine's clock and the running event loop's time: for the composition root. Under a virtual loop, time is virtual."""

    def now(self) -> datetime:
        """Return the current time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the event loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)


class LoopClock:
    """A wall clock that follows the event loop's time from a given start: for virtual time."""

    def __init__(self, start: datetime) -> None:
        self._start = start

    def now(self) -> datetime:
        """Return the start plus the loop's time."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the event loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)
