"""Run lease renewals on the event loop of the controllers, or on a thread with its own event loop and connections.

A busy event loop delays everything. A pass can wait, but a renewal that is seconds late loses the lease. In virtual time nothing is ever
late, and there is only one loop.
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


class LeasePlace(Protocol):
    """A place to renew leases, and the client to use there."""

    client: RestClient

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of `work`, or raise its error. Cancelling the caller cancels it, and waits for its end."""


class OnThisLoop:
    """Renews leases on the event loop of the caller."""

    def __init__(self, client: RestClient) -> None:
        self.client = client

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run the work."""
        return await work()


class LeaseThread:
    """Renews leases on a separate thread, from `async with` to its end. `tell` is called on the loop that entered it."""

    def __init__(self, transport: Transport, clock: Clock, user_agent: str, tell: Tell) -> None:
        self._transport = Told(transport, clock, self._tell_on_loop)
        self._tell = tell
        self.client = RestClient(self._transport, clock=clock, user_agent=user_agent)

    def _tell_on_loop(self, request: Request, response: Response | None, seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._tell, request, response, seconds)

    async def __aenter__(self) -> LeaseThread:
        self._loop = asyncio.get_running_loop()
        self._lease_loop = asyncio.new_event_loop()
        # a daemon: a process that does not stop in order must not wait for it
        self._thread = threading.Thread(target=self._lease_loop.run_forever, name="leases", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.run(self._transport.close)
        self._lease_loop.call_soon_threadsafe(self._lease_loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._lease_loop.close()

    async def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run the work on the thread."""
        home, ended = asyncio.get_running_loop(), asyncio.Event()
        begun: list[asyncio.Task[_T]] = []

        def begin() -> None:
            begun.append(self._lease_loop.create_task(work()))
            begun[0].add_done_callback(lambda _: home.call_soon_threadsafe(ended.set))

        def end() -> None:
            begun[0].cancel()

        self._lease_loop.call_soon_threadsafe(begin)
        try:
            await ended.wait()
        except asyncio.CancelledError:
            self._lease_loop.call_soon_threadsafe(end)
            await ended.wait()
            if not begun[0].cancelled():
                begun[0].exception()  # seen; that it was cancelled here is what counts
            raise
        return begun[0].result()
