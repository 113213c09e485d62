"""An event loop whose clock jumps: when every task waits, time moves to the next timer at once.

An hour of waiting takes no time, and the same program takes the same steps every time: there are no threads and no sockets
whose timing could differ. Work for an executor runs synchronously.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

R = TypeVar("R")


class Stalled(RuntimeError):
    """Every task waits and no timer is set: nothing can ever happen again."""


class _Selector(selectors.BaseSelector):
    """A selector that only waits for time."""

    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            raise Stalled("every task waits and no timer is set")
        if timeout > 0:
            self.loop.jump(timeout)
        return []


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number: asyncio keeps tasks in sets, and cancels them in the order of their hashes."""

    def __init__(self, *arguments: Any, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(*arguments, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. Its time begins at 0."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        self._tasks_made = 0
        selector = _Selector()
        super().__init__(selector)
        selector.loop = self
        self.set_task_factory(self._make_task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> _Task:
        self._tasks_made += 1
        return _Task(coroutine, loop=loop, number=self._tasks_made, **options)

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._virtual_now

    def jump(self, seconds: float) -> None:
        """Advance the time, exactly to the next timer if a task waits for it."""
        due = self._virtual_now + seconds
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # rounding must not miss the timer
        if scheduled and abs(scheduled[0].when() - due) < 1e-6:
            due = scheduled[0].when()
        self._virtual_now = max(self._virtual_now, due)
        # the loop asks whether a timer is due by now and a bit: late in the day floats no longer tell a nanosecond
        self._clock_resolution = max(self._clock_resolution, 2 * math.ulp(self._virtual_now))  # type: ignore[has-type]

    def run_in_executor(self, executor: Any, func: Callable[..., R], *args: Any) -> asyncio.Future[R]:  # type: ignore[override]
        """Run the work now: threads would make runs differ."""
        future: asyncio.Future[R] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # belongs to whoever awaits it
            future.set_exception(error)
        return future


def run_virtual(main: Coroutine[Any, Any, R]) -> R:
    """Run to completion in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
