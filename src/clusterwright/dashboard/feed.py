"""Values by key for several readers: each receives everything once, then only merged differences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from clusterwright.api.meta import Json

GONE: Final = None


class Feed:
    """The current values, and their readers. A slow reader gets fewer, larger differences, never a growing queue."""

    def __init__(self) -> None:
        self.values: dict[str, Json] = {}
        self._readers: list[_Reader] = []

    @property
    def is_read(self) -> bool:
        """Whether it has readers now."""
        return bool(self._readers)

    def put(self, key: str, value: Json | None) -> None:
        """Set the value of a key, or (None) remove it."""
        if self.values.get(key) == value:
            return
        if value is GONE:
            del self.values[key]
        else:
            self.values[key] = value
        for reader in self._readers:
            reader.changed(key, value)

    def replace(self, values: Mapping[str, Json]) -> None:
        """Replace all values."""
        for key in [k for k in self.values if k not in values]:
            self.put(key, GONE)
        for key, value in values.items():
            self.put(key, value)

    async def read(self, rest: float) -> AsyncGenerator[Json, None]:
        """Yield all values, then differences, at most one in `rest` seconds; sometimes an empty one as a sign of life."""
        reader = _Reader()
        self._readers.append(reader)
        try:
            yield {"reset": True, "set": dict(self.values), "gone": []}
            while True:
                yield await reader.difference()
                await asyncio.sleep(rest)
        finally:
            self._readers.remove(reader)


ALIVE: Final = 15.0
"""Seconds between two signs of life."""


class _Reader:
    def __init__(self) -> None:
        self._pending: dict[str, Json | None] = {}
        self._wake = asyncio.Event()

    def changed(self, key: str, value: Json | None) -> None:
        self._pending[key] = value
        self._wake.set()

    async def difference(self) -> Json:
        try:
            async with asyncio.timeout(ALIVE):
                await self._wake.wait()
        except TimeoutError:
            return {}
        self._wake.clear()
        pending, self._pending = self._pending, {}
        return {
            "set": {key: value for key, value in pending.items() if value is not GONE},
            "gone": [key for key, value in pending.items() if value is GONE],
        }
