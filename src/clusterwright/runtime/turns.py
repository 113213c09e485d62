"""Writers of one process take turns at an object, because several controllers write it, often after the same event.

A writer that locks by resourceVersion reads the newest known state and then writes, without another writer of this process in between. Only
writes of other processes can then conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from clusterwright.api.meta import GroupVersionKind, ObjectKey


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    owner: asyncio.Task[Any] | None = None
    users: int = 0


class Turns:
    """One lock for each object that is being written; a task that holds one may take it again."""

    def __init__(self) -> None:
        self._turns: dict[tuple[GroupVersionKind, ObjectKey], _Turn] = {}

    @asynccontextmanager
    async def take(self, kind: GroupVersionKind, key: ObjectKey) -> AsyncIterator[None]:
        """Hold the object's turn."""
        turn = self._turns.setdefault((kind, key), _Turn())
        task = asyncio.current_task()
        if turn.owner is task:
            yield
            return
        turn.users += 1
        try:
            async with turn.lock:
                turn.owner = task
                try:
                    yield
                finally:
                    turn.owner = None
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[kind, key]
