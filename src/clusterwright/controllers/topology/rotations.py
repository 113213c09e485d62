"""Detect templates that rotate again and again without a change, for example because a patch uses their own name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_WITHIN: Final = 600.0
_TOO_OFTEN: Final = 3


class Rotations:
    """Counts rotations by Cluster and slot, as long as Cluster and class stay the same."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen: dict[tuple[str, str], tuple[tuple[int, int], list[float]]] = {}

    def note(self, cluster: str, slot: str, generations: tuple[int, int]) -> bool:
        """Record the rotation of a slot's template; return whether that is too often to be intended."""
        now = self._monotonic()
        known, times = self._seen.get((cluster, slot), (generations, []))
        recent = [t for t in times if t > now - _WITHIN] if known == generations else []
        recent.append(now)
        if len(self._seen) > 10_000:
            self._seen.clear()
        self._seen[cluster, slot] = (generations, recent)
        return len(recent) == _TOO_OFTEN
