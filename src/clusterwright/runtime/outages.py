"""Detect outages of the API server: a failed pass then says nothing about its object, and the wait is short.

Failures of one object double the wait for its next pass, up to a quarter of an hour: it is likely to fail again. After an outage of
minutes, everything would wait that long for no reason. So while the API server refuses, disconnects or does not answer, no key waits longer
than `LONGEST`.
"""

from __future__ import annotations

from typing import Final

from clusterwright.runtime.clock import Clock

LONGEST: Final = 30.0
"""The longest wait between two passes of a key during an outage, in seconds: it neither overloads the server nor delays recovery."""
_MEMORY: Final = 30.0


class Outages:
    """The recent answers of the API server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")

    def heard(self, status: int) -> None:
        """Record the status of an answer, or 0 for none."""
        if status in {0, 429} or status >= 500:
            self._last = self._clock.monotonic()

    def longest_wait(self) -> float:
        """Return the longest wait of a key."""
        return LONGEST if self._clock.monotonic() - self._last < _MEMORY else float("inf")
