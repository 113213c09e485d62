"""Keep cancellation from getting lost."""

from __future__ import annotations

import asyncio


def heed_cancellation() -> None:
    """Raise CancelledError if this task was cancelled; a loop that survives failures calls this before each turn.

    An operation that fails at the moment of cancellation may report only the failure, for example a TaskGroup.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
