"""Pause processes, as if they were stopped by a signal, swapped out, or on a frozen machine.

All tasks of a paused process stop, between any two awaits, while time and other processes continue; after the pause all of them continue at
once, and timers that were due meanwhile are late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any

_process: ContextVar[Pause | None] = ContextVar("paused_process", default=None)


class Pause:
    """The pause of one process."""

    def __init__(self) -> None:
        self._resumed = asyncio.Event()
        self._resumed.set()

    def begin(self) -> None:
        """Pause from now on."""
        self._resumed.clear()

    def end(self) -> None:
        """Continue."""
        self._resumed.set()

    @property
    def is_on(self) -> bool:
        """Whether the process is paused now."""
        return not self._resumed.is_set()

    def enter(self, context: Context) -> None:
        """Make tasks that are started in the context belong to the process."""
        context.run(_process.set, self)

    async def over(self) -> None:
        """Return when the process continues."""
        await self._resumed.wait()


def allow_pauses(loop: asyncio.AbstractEventLoop) -> None:
    """Make every task that is started from now on pausable, which costs time."""

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        context = options.get("context")
        pause = context.get(_process) if context is not None else _process.get()
        return asyncio.Task(_pausable(coro, pause) if pause is not None else coro, loop=loop, **options)

    loop.set_task_factory(factory)


async def _pausable(coro: Coroutine[Any, Any, Any], pause: Pause) -> Any:
    """Run a coroutine, and stop it between two of its awaits while the process is paused."""
    return await _Steps(coro, pause)


class _Steps:
    """The steps of a coroutine, as an awaitable."""

    def __init__(self, coro: Coroutine[Any, Any, Any], pause: Pause) -> None:
        self._coro = coro
        self._pause = pause

    def __await__(self) -> Generator[Any, Any, Any]:
        value: Any = None
        error: BaseException | None = None
        while True:
            while self._pause.is_on:
                try:
                    yield from self._pause.over().__await__()
                except asyncio.CancelledError as cancelled:
                    error = cancelled  # thrown when the process goes on
            try:
                awaited = self._coro.send(value) if error is None else self._coro.throw(error)
            except StopIteration as end:
                return end.value
            value, error = None, None
            try:
                value = yield awaited
            except BaseException as raised:  # handed on, whatever it is
                error = raised
