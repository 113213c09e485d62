"""Cancellation that must not get lost."""

from __future__ import annotations

import asyncio


def heed_cancellation() -> None:
    """Raise CancelledError if this task was told to end; a loop that outlives failures asks before each turn.

    What fails at the moment when it is cancelled may tell of the failure only, a TaskGroup for one.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
