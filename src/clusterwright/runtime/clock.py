"""Time as an argument. Nothing below the composition root reads the machine's clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells and passes time. In simulations it jumps; in `decide` it stands still."""

    def now(self) -> datetime:
        """The current time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back, for intervals; the event loop's own time."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""


def utc(text: str) -> datetime:
    """An RFC 3339 text as an aware UTC datetime."""
    return datetime.fromisoformat(text).astimezone(UTC)
