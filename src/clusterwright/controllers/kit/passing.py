"""One pass under way: what it has seen, decided and failed at so far; and the one way in which a pass fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Object, Unstructured, V1Beta1Condition
from clusterwright.controllers.kit import conditions
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, Terminal
from clusterwright.runtime.reports import Report
from clusterwright.tables import Decision, Table
from clusterwright.workload.access import NotConnected

CONNECTION_RETRY = 20.0
"""Seconds after which a pass that failed only for want of a connection is run again: the connection itself wakes it sooner."""

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)
X = TypeVar("X")


class PassFailed(ApiError):
    """A pass could not do all that it should. Foreseen: it is logged without a stack trace and counts as no panic."""


class Seen(Protocol[T_co]):
    """What every snapshot has: the object as this pass would leave it so far, and the moment of the pass. Frozen."""

    @property
    def object(self) -> T_co: ...  # noqa: D102
    @property
    def now(self) -> datetime: ...  # noqa: D102


S = TypeVar("S", bound=Seen[Any])


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event of the object, recorded when the pass has written what it tells."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Pass(Generic[T, S]):
    """A pass under way. `seen` is the frozen snapshot; a step that learns more puts a new one in its place."""

    original: Original[T]
    seen: S
    write: Callable[[Original[T], T], Awaitable[Unstructured | None]]
    rows: dict[str, str] = field(default_factory=dict)
    votes: list[timedelta] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    """Writes to other objects that are left for a moment."""

    @property
    def object(self) -> T:
        """The object as it is to become."""
        obj: T = self.seen.object
        return obj

    def become(self, obj: T) -> None:
        """The object is to become this."""
        if obj is not self.seen.object:
            seen: Any = self.seen
            self.seen = replace(seen, object=obj)

    # ------------------------------------------------------------------------------------------------- decisions

    def decide(self, table: Table[S], cause: Exception | None = None) -> Decision:
        """Let a table decide on what is seen. Its row, vote and error are noted; `cause` is what its error comes from."""
        return self.decide_on(table, self.seen, cause)

    def decide_on(self, table: Table[X], snapshot: X, cause: Exception | None = None) -> Decision:
        """As `decide`, on another snapshot."""
        decision = table.decide(snapshot)
        self.rows[decision.table] = decision.row
        self.vote(decision.requeue)
        if decision.error:
            self.fail(decision.error, cause)
        return decision

    def conclude(self, *tables: Table[S], together: bool = False) -> None:
        """Let tables decide their conditions, each seeing what those before it decided; `together`: none sees the others."""
        if together:
            for table, decision in [(table, self.decide(table)) for table in tables]:
                self.become(conditions.decided(self.object, table, decision, self.seen.now))
            return
        for table in tables:
            self.become(conditions.decided(self.object, table, self.decide(table), self.seen.now))

    def mark(self, condition: V1Beta1Condition) -> None:
        """Set a v1beta1 condition."""
        self.become(conditions.with_v1beta1(self.object, condition, self.seen.now))

    def vote(self, delay: timedelta | None) -> None:
        """Look again after this time at the latest; None is no vote."""
        if delay:
            self.votes.append(delay)

    # -------------------------------------------------------------------------------------------------- failures

    def fail(self, error: Exception | str, cause: Exception | None = None) -> None:
        """Let the pass end in this error, after its remaining steps; a text becomes a PassFailed with that cause."""
        if isinstance(error, str):
            error = PassFailed(error)
            error.__cause__ = cause
        self.errors.append(error)

    def record(self, type: str, reason: str, message: str) -> None:
        """Record an Event of the object when the pass has written what it concluded."""
        self.events.append(Event(type, reason, message))

    # ---------------------------------------------------------------------------------------------------- writing

    def rebase(self, latest: Original[T]) -> None:
        """Go on from the object as it is now: this pass has changed it by a write of another form, or others have."""
        self.original = latest
        self.become(latest.object)

    async def save(self, obj: T) -> None:
        """Write now what must not be lost, whatever comes; the patch at the end is then a change of what was written.

        What the object is to become stays as it is, and the pass speaks for the generation that it read.
        """
        answer = await self.write(self.original, obj)
        if answer is not None:
            self.original = Original(obj, msgspec.json.encode(answer.json))


def failure(errors: Sequence[Exception]) -> PassFailed | Terminal:
    """Return all that failed in a pass, as one error: Terminal if no part of it can be mended by a retry.

    It is not in a hurry if only the connection to a workload cluster is missing, nor where an API server asked for patience.
    """
    text = "; ".join(dict.fromkeys(str(e) or type(e).__name__ for e in errors))
    if all(isinstance(e, Terminal) for e in errors):
        return Terminal(text)
    unconnected = all(isinstance(e.__cause__ or e, NotConnected) for e in errors)
    asked = [e.retry_after for e in (link for e in errors for link in (e, e.__cause__)) if isinstance(e, ApiError) and e.retry_after]
    error = PassFailed(text, retry_after=CONNECTION_RETRY if unconnected else max(asked, default=None))
    error.is_expected = unconnected
    error.__cause__ = errors[0] if len(errors) == 1 else ExceptionGroup("several things failed", list(errors))
    return error
