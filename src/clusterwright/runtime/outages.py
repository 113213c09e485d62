"""Whether the API server is in trouble: then a pass that fails says nothing about its object, and need not wait for long.

Failures of one object double the wait for its next pass, up to a quarter of an hour: it is likely to fail again. After an outage of
minutes that would be how long everything stood still for no reason. So while the API server refuses, breaks off or does not
answer, no key waits longer than `LONGEST`.
"""

from __future__ import annotations

from typing import Final

from clusterwright.runtime.clock import Clock

LONGEST: Final = 30.0
"""Seconds between two passes of a key during an outage: slow enough for a server that is ill, soon enough when it is well."""
_MEMORY: Final = 30.0


class Outages:
    """What was heard of the API server lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = float("-inf")

    def heard(self, status: int) -> None:
        """An answer, or 0 for none."""
        if status in {0, 429} or status >= 500:
            self._last = self._clock.monotonic()

    def longest_wait(self) -> float:
        """Return how long a key may wait at most."""
        return LONGEST if self._clock.monotonic() - self._last < _MEMORY else float("inf")
