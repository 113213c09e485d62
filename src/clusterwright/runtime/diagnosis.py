"""Diagnose a running process: its waiting tasks, CPU time, memory and log level.

Served next to the metrics (`Endpoints`). Stacks name files and lines, never values: no secret can be in them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import islice
from types import FrameType
from typing import Final

from aiohttp import web

from clusterwright.runtime.logging import ROOT

LONGEST_PROFILE: Final = 120.0
"""The longest profile, in seconds."""
_INTERVAL: Final = 0.01
_MOST_KINDS: Final = 60
_LEVELS: Final = ("debug", "info", "warning", "error")


def add_routes(app: web.Application) -> None:
    """Add `/debug/tasks`, `/debug/threads`, `/debug/memory`, `/debug/profile?seconds=N` and `/debug/flags/log-level` (GET, PUT)."""
    app.router.add_get("/debug/tasks", _text(tasks))
    app.router.add_get("/debug/threads", _text(threads))
    app.router.add_get("/debug/memory", _text(memory))
    app.router.add_get("/debug/profile", _profile)
    app.router.add_get("/debug/flags/log-level", _get_level)
    app.router.add_put("/debug/flags/log-level", _put_level)


def tasks() -> str:
    """Return every task with the place where it waits, equal ones together."""
    alike: dict[str, list[str]] = {}
    for task in asyncio.all_tasks():
        alike.setdefault(_waits_at(task), []).append(task.get_name())
    parts = [f"{sum(map(len, alike.values()))} tasks"]
    for stack, names in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
        parts.append(f"{len(names)}: {shown}\n{stack}")
    return "\n\n".join(parts) + "\n"


def _waits_at(task: asyncio.Task[object]) -> str:
    lines: list[str] = []
    coroutine: object = task.get_coro()
    while coroutine is not None:
        frame = _first(coroutine, "cr_frame", "gi_frame", "ag_frame")
        if isinstance(frame, FrameType):
            lines.append(f"    {_where(frame)}")
        coroutine = _first(coroutine, "cr_await", "gi_yieldfrom", "ag_await")
    return "\n".join(lines) or "    done"


def _first(obj: object, *names: str) -> object:
    """Return the first existing attribute: coroutines, generators and asynchronous generators have different names."""
    return next((found for name in names if (found := getattr(obj, name, None)) is not None), None)


def _where(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{frame.f_lineno}"


def threads() -> str:
    """Return every thread with its stack."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        stack = [f"    {_where(at)}" for at, _ in traceback.walk_stack(frame)]
        parts.append("\n".join([names.get(ident, str(ident)), *reversed(stack)]))
    return "\n\n".join(parts) + "\n"


def memory() -> str:
    """Return the garbage collector's counts of objects by type, without those frozen at the start."""
    kinds = Counter(f"{type(obj).__module__}.{type(obj).__qualname__}" for obj in gc.get_objects())
    lines = [f"{sum(kinds.values())} objects in sight, {gc.get_freeze_count()} frozen, collections {gc.get_stats()}"]
    lines += [f"{count:>10}  {kind}" for kind, count in islice(kinds.most_common(), _MOST_KINDS)]
    return "\n".join(lines) + "\n"


async def profile(seconds: float) -> str:
    """Return where the process spent its time, sampled: one line per stack, `outer;inner COUNT`, the input format of flame graphs.

    A CPU timer interrupts the event loop; waiting tasks use no CPU and do not appear.
    """
    seen: Counter[str] = Counter()

    def sample(_number: int, frame: FrameType | None) -> None:
        if frame is not None:
            seen[";".join(reversed([_function(at) for at, _ in traceback.walk_stack(frame)]))] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)
    try:
        await asyncio.sleep(seconds)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    return "".join(f"{stack} {count}\n" for stack, count in seen.most_common())


def _function(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}"


def _text(make: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=make())

    return answer


async def _profile(request: web.Request) -> web.Response:
    text = request.query.get("seconds", "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_PROFILE:
        return web.Response(text=f"seconds: {text!r} is not a number from 0 to {LONGEST_PROFILE:g}\n", status=400)
    return web.Response(text=await profile(seconds))


async def _get_level(request: web.Request) -> web.Response:
    return web.Response(text=logging.getLevelName(logging.getLogger(ROOT).getEffectiveLevel()).lower() + "\n")


async def _put_level(request: web.Request) -> web.Response:
    level = (await request.text()).strip().lower()
    if level not in _LEVELS:
        return web.Response(text=f"{level[:40]!r} is not one of {', '.join(_LEVELS)}\n", status=400)
    logging.getLogger(ROOT).setLevel(level.upper())
    return web.Response(text=f"log-level is now {level}\n")
