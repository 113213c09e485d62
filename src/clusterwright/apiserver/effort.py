"""Limit the metered work (CEL, patterns) of a request: little of it on the event loop, the rest on the worker's thread.

Units are those of `cel.metering`. The cost of an expression is known only after its evaluation. So work begins on the event loop with a
small allowance; if that does not suffice, it is repeated on the worker, with a large one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import Any, Final, TypeVar

from clusterwright.apiserver.status import bad_request
from clusterwright.cel.metering import OBJECT_LIMIT, CostExceeded
from clusterwright.cel.program import Program

LIGHT: Final = 50_000
"""The units that a request may spend on the event loop: up to 20 ms."""
R = TypeVar("R")


class TooMuch(Exception):
    """The work needs more than its allowance."""


class _Allowance:
    __slots__ = ("is_final", "left")

    def __init__(self, units: float, is_final: bool) -> None:
        self.left = units
        self.is_final = is_final


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


def spend(units: float) -> None:
    """Subtract units from the allowance of the current work. Raises TooMuch; does nothing for unlimited work."""
    allowance = _allowance.get()
    if allowance is not None:
        allowance.left -= units
        if allowance.left < 0:
            raise TooMuch


def left_on_loop() -> float:
    """Return the units left on the event loop; infinite for work that is elsewhere, or cannot leave it."""
    allowance = _allowance.get()
    return inf if allowance is None or allowance.is_final else max(allowance.left, 0.0)


def evaluate(program: Program, *values: Any) -> Any:
    """Evaluate an expression within the allowance. Raises CelError, and TooMuch if it must leave the event loop."""
    allowance = _allowance.get()
    if allowance is None:
        return program.evaluate(*values)
    budget = [max(allowance.left, 0.0)]
    try:
        return program.evaluate(*values, budget=budget)
    except CostExceeded:
        if budget[0] <= 0 and not allowance.is_final:
            raise TooMuch from None
        raise
    finally:
        allowance.left = budget[0]


async def in_worker(worker: Executor | None, work: Callable[[], R]) -> R:
    """Run work that reads only its own data on the worker's thread, or here if there is no worker."""
    return work() if worker is None else await asyncio.get_running_loop().run_in_executor(worker, work)


async def metered(worker: Executor | None, work: Callable[..., R], *arguments: Any) -> R:
    """Run work on the event loop if it is light, else on the worker. It may be started twice. Raises StatusError if it costs too much."""
    if worker is not None:
        try:
            return light(work, *arguments)
        except TooMuch:
            pass
    return await heavy(worker, work, *arguments)


def light(work: Callable[..., R], *arguments: Any) -> R:
    """Run work with a small allowance. Raises TooMuch."""
    token = _allowance.set(_Allowance(LIGHT, False))
    try:
        return work(*arguments)
    finally:
        _allowance.reset(token)


async def heavy(worker: Executor | None, work: Callable[..., R], *arguments: Any) -> R:
    """Run work on the worker, or here if there is none. Raises StatusError if it costs too much."""
    try:
        return await in_worker(worker, partial(_limited, work, *arguments))
    except TooMuch:
        raise bad_request("the object costs too much to validate: shorten the texts that must match patterns") from None


def _limited(work: Callable[..., R], *arguments: Any) -> R:
    token = _allowance.set(_Allowance(OBJECT_LIMIT, True))
    try:
        return work(*arguments)
    finally:
        _allowance.reset(token)
