"""Where leases are kept: on the event loop with everything else, or aside, on a thread with an event loop and connections of its own.

An event loop that has much to do is late for everything. That does not matter to a pass, but a renewal that is late by seconds
costs the lease. In virtual time nothing is ever late, and there is one loop only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, TypeVar

from clusterwright.api.wire import Request, Response, Transport
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.transports import Tell, Told

_T = TypeVar("_T")


class Place(Protocol):
    """Where something is done, and the client that is to be used there."""

    client: RestClient

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return what `work` returns or raises. Who is cancelled has it cancelled, and returns when it has ended."""


class Here:
    """On this event loop."""

    def __init__(self, client: RestClient) -> None:
        self.client = client

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Do it."""
        return await work()


class Aside:
    """On a thread of its own, from `async with` to its end. `tell` is called on the loop that entered it."""

    def __init__(self, transport: Transport, clock: Clock, user_agent: str, tell: Tell) -> None:
        self._transport = Told(transport, clock, self._tell_at_home)
        self._tell = tell
        self.client = RestClient(self._transport, clock=clock, user_agent=user_agent)

    def _tell_at_home(self, request: Request, response: Response | None, seconds: float) -> None:
        self._home.call_soon_threadsafe(self._tell, request, response, seconds)

    async def __aenter__(self) -> Aside:
        self._home = asyncio.get_running_loop()
        self._there = asyncio.new_event_loop()
        # a daemon: who does not stop in order must not wait for it
        self._thread = threading.Thread(target=self._there.run_forever, name="leases", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.run(self._transport.close)
        self._there.call_soon_threadsafe(self._there.stop)
        await asyncio.to_thread(self._thread.join)
        self._there.close()

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Do it there."""
        home, ended = asyncio.get_running_loop(), asyncio.Event()
        begun: list[asyncio.Task[_T]] = []

        def begin() -> None:
            begun.append(self._there.create_task(work()))
            begun[0].add_done_callback(lambda _: home.call_soon_threadsafe(ended.set))

        def end() -> None:
            begun[0].cancel()

        self._there.call_soon_threadsafe(begin)
        try:
            await ended.wait()
        except asyncio.CancelledError:
            self._there.call_soon_threadsafe(end)
            await ended.wait()
            if not begun[0].cancelled():
                begun[0].exception()  # seen; that it was cancelled here is what counts
            raise
        return begun[0].result()
