"""A fault of the gallery: what is done to a live plane, and what is then true."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from clusterwright.offline.verdict import State
from clusterwright.runtime.clock import Clock
from clusterwright.simulation.plane import Plane, plane

Make = Callable[[Plane], Awaitable[None]]
Stage = Callable[[Clock], AbstractAsyncContextManager[Plane]]
"""The plane on which it is played."""
BAD = frozenset({State.BROKEN, State.WAITING})
PAUSED = "cluster.x-k8s.io/paused"


_IN_CLUSTER: set[Make] = set()


def in_cluster(make: Make) -> Make:
    """What is done to a cluster, of one and one, that has been up for a minute."""
    _IN_CLUSTER.add(make)
    return make


@dataclass(frozen=True)
class Fault:
    """What is done, and what is then true: the objects that may be named (alternatives by `|`), and a word of who must act."""

    name: str
    make: Make
    truth: str
    who: str
    states: frozenset[State] = BAD
    """After a minute; what only takes long is no trouble yet. After ten minutes all of them are."""
    stage: Stage = plane

    @property
    def is_in_cluster(self) -> bool:
        """Whether there must be one first."""
        return self.make in _IN_CLUSTER


SLOW = frozenset({State.PROGRESSING})
