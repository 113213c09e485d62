"""The contract between a controller and the code that decides: a name in, a result out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey
from clusterwright.runtime.client import Reader


@dataclass(frozen=True, slots=True)
class Result:
    """When to look again if nothing changes before. Make it by `await_change`, `after` or `soonest`."""

    requeue_after: timedelta | None = None

    @staticmethod
    def await_change() -> Result:
        """Only a watch event brings us back."""
        return _AWAIT_CHANGE

    @staticmethod
    def after(delay: timedelta) -> Result:
        """Come back after `delay`, as a net below the watches."""
        return Result(delay)

    @staticmethod
    def soonest(*votes: timedelta | None) -> Result:
        """Return the soonest of the requeue votes that were cast; zero and None are no votes."""
        cast = [v for v in votes if v]
        return Result(min(cast)) if cast else _AWAIT_CHANGE


_AWAIT_CHANGE = Result()


class Reconciler(Protocol):
    """Brings one object nearer to its spec. Never two at once for one key; any exception means: again, with backoff."""

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass."""


Mapper = Callable[[Any, Reader], Awaitable[Sequence[ObjectKey]]]
"""Which requests an object (typed for a typed watch, else Unstructured) stands for. Called for old and new state.

What it is given is everybody's: it may not be changed. So for predicates.
"""

Predicate = Callable[[Any | None, Any | None], bool]
"""Whether a change counts: (old, new), None where the object was or is not there."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Changes of `kind` that pass `when` wake the keys that `map` names.

    `settle`: seconds to wait for more of them first. Changes of what an object is made of come in bursts; one pass that sees them all
    writes once. Objects that go, and whatever else wakes the key, do not wait.

    A pass holds the facts that `when` compares, or the whole object where every change counts. `why` says what a change means to a
    pass that holds neither; a test over all controllers asks for it.
    """

    kind: type[Object] | GroupVersionKind
    map: Mapper
    when: Predicate | None = None
    settle: float = 0.0
    why: str = ""
