"""Whose turn it is: requests that come over the network share the server by level and by user, as kube-apiserver's do.

A level has seats; who finds none waits in a queue of their own user, and queues take turns. So a user who floods the server waits
behind themselves. Who waits too long, or too many, is answered 429. Controllers of this process do not come over the network,
and administrators are exempt: whatever the others do, these are served.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from clusterwright.apiserver.auth.identity import User
from clusterwright.apiserver.status import StatusError, failure

WAIT: Final = 15.0


@dataclass(frozen=True, slots=True)
class Level:
    """A priority level, by kube-apiserver's names: seats, and how many of one user may wait."""

    name: str
    seats: int
    waiting: int = 50


# fmt: off
EXEMPT: Final = Level("exempt", 0)
LEVELS: Final[tuple[tuple[str, Callable[[User], bool], Level], ...]] = (
    # flow schema            of whom                                                            level, seats
    ("exempt",               lambda u: "system:masters" in u.groups,                            EXEMPT),
    ("system-nodes",         lambda u: "system:nodes" in u.groups,                              Level("system", 30)),
    ("kube-system-service-accounts", lambda u: "system:serviceaccounts:kube-system" in u.groups, Level("workload-high", 40)),
    ("service-accounts",     lambda u: "system:serviceaccounts" in u.groups,                    Level("workload-low", 40)),
    ("global-default",       lambda u: "system:unauthenticated" not in u.groups,                Level("global-default", 20)),
    ("catch-all",            lambda u: True,                                                    Level("catch-all", 5, waiting=20)),
)
# fmt: on


@dataclass(slots=True)
class _Queues:
    """The users of one level who wait, in the order in which they are next served."""

    level: Level
    busy: int = 0
    queues: OrderedDict[str, deque[asyncio.Future[None]]] = field(default_factory=OrderedDict)

    def leave(self) -> None:
        """A seat is free: the next user's oldest request takes it, and that user goes to the end."""
        while self.queues:
            user, queue = next(iter(self.queues.items()))
            turn = queue.popleft()
            if queue:
                self.queues.move_to_end(user)
            else:
                del self.queues[user]
            if not turn.done():
                turn.set_result(None)
                return
        self.busy -= 1


class Fairness:
    """The levels of one server."""

    def __init__(self, wait: float = WAIT) -> None:
        self._wait = wait
        self._queues = {level.name: _Queues(level) for _, _, level in LEVELS}

    @staticmethod
    def classify(user: User) -> tuple[str, Level]:
        """The flow schema and the level of a user's requests."""
        return next((schema, level) for schema, holds, level in LEVELS if holds(user))

    @asynccontextmanager
    async def seat(self, user: User) -> AsyncIterator[tuple[str, str]]:
        """Hold a seat; answers the names of schema and level. Raises StatusError (429) when it is not one's turn in time."""
        schema, level = self.classify(user)
        if level is EXEMPT:
            yield schema, level.name
            return
        queues = self._queues[level.name]
        await self._sit(queues, user.name)
        try:
            yield schema, level.name
        finally:
            queues.leave()

    async def _sit(self, queues: _Queues, user: str) -> None:
        if queues.busy < queues.level.seats:
            queues.busy += 1
            return
        queue = queues.queues.setdefault(user, deque())
        if len(queue) >= queues.level.waiting:
            raise rejected()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(self._wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                queues.leave()  # the seat came too late
            elif turn in queue:
                queue.remove(turn)
                if not queue:
                    queues.queues.pop(user, None)
            if isinstance(error, TimeoutError):
                raise rejected() from None
            raise


@cache
def uid_of(name: str) -> str:
    """How answers name a flow schema or a level."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.flowcontrol.apiserver.k8s.io"))


def rejected() -> StatusError:
    """429, in kube-apiserver's words."""
    text = "Too many requests, please try again later."
    return failure(429, "TooManyRequests", text, {"retryAfterSeconds": 1}, retry_after=1)
