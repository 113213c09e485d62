"""The contract between a controller and the deciding code: a name in, a result out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey
from clusterwright.runtime.client import Reader


@dataclass(frozen=True, slots=True)
class Result:
    """When to reconcile again without an event. Create it by `await_change`, `after` or `soonest`."""

    requeue_after: timedelta | None = None

    @staticmethod
    def await_change() -> Result:
        """Return a result that waits for a watch event."""
        return _AWAIT_CHANGE

    @staticmethod
    def after(delay: timedelta) -> Result:
        """Return a result that requeues after `delay`, in case a watch misses an event."""
        return Result(delay)

    @staticmethod
    def soonest(*votes: timedelta | None) -> Result:
        """Return the soonest of the requeue votes; zero and None are not votes."""
        cast = [v for v in votes if v]
        return Result(min(cast)) if cast else _AWAIT_CHANGE


_AWAIT_CHANGE = Result()


class Reconciler(Protocol):
    """Reconciles one object. Passes of one key never overlap; any exception causes a retry with backoff."""

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass."""


Mapper = Callable[[Any, Reader], Awaitable[Sequence[ObjectKey]]]
"""Returns the requests for an object (typed for a typed watch, else Unstructured). Called with the old and the new state.

The object is shared and must not be changed. The same holds for predicates.
"""

Predicate = Callable[[Any | None, Any | None], bool]
"""Returns whether a change counts: (old, new), None if the object did not or does not exist."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Changes of `kind` that pass `when` queue the keys that `map` returns.

    `settle`: seconds to wait for more of them first. Changes of an object's parts come in bursts; one pass that sees them all writes once.
    Deleted objects, and other events for the key, do not wait.

    A snapshot holds the facts that `when` compares, or the whole object if every change counts. `why` explains a watch where it holds
    neither; a test over all controllers requires it.
    """

    kind: type[Object] | GroupVersionKind
    map: Mapper
    when: Predicate | None = None
    settle: float = 0.0
    why: str = ""
