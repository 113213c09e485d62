"""Deferred work of requests: short actions run at once, long ones in slices, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

log = logging.getLogger(__name__)
_SLICE: Final = 25
"""The number of steps of long work in one slice."""
_STEP_BYTES: Final = 16 * 1024
"""The number of object bytes that count as one more step."""


class Backlog:
    """The deferred work of one server.

    Short actions run at the end of the request that caused them. Long work is an iterator: each `next` is a step that looks at
    one object and gives its size. After some steps the rest waits for the next turn of the event loop; several iterators take
    turns. Without a running event loop all of it is done at once.
    """

    def __init__(self) -> None:
        self._actions: deque[Callable[[], None]] = deque()
        self._long: deque[Iterator[int]] = deque()
        self._left = 0
        self._is_running = False
        self._scheduled_on: asyncio.AbstractEventLoop | None = None

    def add(self, action: Callable[[], None]) -> None:
        """Run a short action after the current request, or with the next one."""
        self._actions.append(action)

    def add_steps(self, steps: Iterator[int]) -> None:
        """Do long work step by step after the current request, or with the next one."""
        self._long.append(steps)

    def run(self) -> None:
        """Run all short actions, and a slice of the long work unless the event loop will run one anyway."""
        if self._is_running:
            return
        self._is_running = True
        try:
            self._act()
            if self._long:
                self._take_turns()
        finally:
            self._is_running = False

    def _take_turns(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            while self._long:
                self._slice()
            return
        if self._scheduled_on is loop:
            return
        self._slice()
        self._go_on(loop)

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled_on = loop if self._long else None
        if self._long:
            loop.call_soon(self._continue, loop)

    def _continue(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_running = True
        try:
            self._act()
            self._slice()
        finally:
            self._is_running = False
            self._go_on(loop)

    def _slice(self) -> None:
        self._left = _SLICE
        while self._long and self._left > 0:
            steps = self._long.popleft()
            while self._left > 0:
                try:
                    self._left -= 1 + next(steps) // _STEP_BYTES
                except StopIteration:
                    break
                except Exception:
                    log.exception("a controller of the API server failed")
                    break
                finally:
                    self._act()
            else:
                self._long.append(steps)

    def _act(self) -> None:
        while self._actions:
            try:
                self._actions.popleft()()
            except Exception:
                log.exception("a controller of the API server failed")
