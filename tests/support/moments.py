"""A life that is lived once up to a moment, from which many tests go on.

A plane in virtual time is nothing but memory: no thread works for it, no socket is open. A fork of the process therefore has it whole, and
what one test does to it no other test sees. What a fork costs is a tenth of what it costs to bring up a cluster.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

from clusterwright.simulation.loop import VirtualLoop

P = TypeVar("P")
R = TypeVar("R")


class Moment(Generic[P]):
    """The moment at which `life` yields; it is not lived before a test asks."""

    def __init__(self, life: Callable[[], AbstractAsyncContextManager[P]]) -> None:
        self._life = life
        self._loop: VirtualLoop | None = None

    def then(self, test: Callable[[P], Awaitable[R]]) -> R:
        """What `test` returns, which goes on from the moment; what it raises fails the test, with its traceback."""
        loop = self._loop or self._live()
        end, its = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the fork does not have: they are the test runner's
            pid = os.fork()
        if pid == 0:
            with open(its, "wb") as out, suppress(BaseException):
                pickle.dump(self._outcome(loop, test), out)
            os._exit(0)
        os.close(its)
        with open(end, "rb") as answer:
            told = answer.read()
        status = os.waitpid(pid, 0)[1]
        assert told, f"the fork ended with {status} and said nothing: is what the test returns no data?"
        value, failure = pickle.loads(told)
        if failure:
            raise AssertionError(failure)
        return value

    def close(self) -> None:
        """End the life."""
        if self._loop is not None:
            self._whole.cancel()
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._whole)
            self._loop.close()
            self._loop = None

    def _live(self) -> VirtualLoop:
        self._loop = loop = VirtualLoop()
        reached: asyncio.Future[None] = loop.create_future()
        self._goes_on: asyncio.Future[Callable[[P], Awaitable[Any]]] = loop.create_future()

        async def whole() -> Any:
            try:
                async with self._life() as lived:
                    reached.set_result(None)
                    return await (await self._goes_on)(lived)
            except BaseException as error:
                if not reached.done():
                    reached.set_exception(error)
                raise

        self._whole = loop.create_task(whole())
        loop.run_until_complete(reached)
        return loop

    def _outcome(self, loop: VirtualLoop, test: Callable[[P], Awaitable[Any]]) -> tuple[Any, str]:
        try:
            self._goes_on.set_result(test)
            return loop.run_until_complete(self._whole), ""
        except BaseException:
            return None, traceback.format_exc()


@contextmanager
def moment(life: Callable[[], AbstractAsyncContextManager[P]]) -> Iterator[Moment[P]]:
    """A moment for a fixture."""
    made = Moment(life)
    try:
        yield made
    finally:
        made.close()
