"""A fault of the gallery: what is done to a live plane, and what is then true."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.offline.verdict import State
from clusterwright.simulation.plane import Plane

Make = Callable[[Plane], Awaitable[None]]
BAD = frozenset({State.BROKEN, State.WAITING})
PAUSED = "cluster.x-k8s.io/paused"


@dataclass(frozen=True)
class Fault:
    """What is done, and what is then true: the objects that may be named (alternatives by `|`), and a word of who must act."""

    name: str
    make: Make
    truth: str
    who: str
    states: frozenset[State] = BAD
    """After a minute; what only takes long is no trouble yet. After ten minutes all of them are."""
    admission: bool = False
    """Whether the API server has our admission."""
    features: Mapping[str, bool] = field(default_factory=lambda: EMBEDDED_FEATURES)


SLOW = frozenset({State.PROGRESSING})
