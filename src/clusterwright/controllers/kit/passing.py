"""One pass under way: what it has read, done, decided and failed at so far; and the one way in which a pass fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Object, Unstructured, V1Beta1Condition
from clusterwright.controllers.kit import conditions
from clusterwright.runtime.client import Client, Original
from clusterwright.runtime.errors import ApiError, NotFound, Terminal
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
    """What every snapshot has: the object, and the moment of the pass. Frozen."""

    @property
    def object(self) -> T_co: ...  # noqa: D102
    @property
    def now(self) -> datetime: ...  # noqa: D102


S = TypeVar("S", bound=Seen[Any])
D = TypeVar("D", bound=Seen[Any])


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event of the object, recorded when the pass has written what it tells."""

    type: str
    reason: str
    message: str


class Pass(Generic[T, S, D]):
    """A pass under way: what it has read, and what it has done with it so far.

    `seen` is made once and stays as it was read. `done` begins as `seen` and is replaced by each step that has an outcome. Its type derives
    from that of `seen`, so that a table on what was read may also be asked at the end, but a table on what was done not at the beginning.
    """

    def __init__(
        self,
        original: Original[T],
        seen: S,
        done: D,
        write: Callable[[Original[T], T], Awaitable[Unstructured | None]],
        rows: dict[str, str] | None = None,
    ) -> None:
        self.original = original
        self._seen = seen
        self.done = done
        self.write = write
        self.rows = rows or {}
        self.votes: list[timedelta] = []
        self.errors: list[Exception] = []
        self.events: list[Event] = []
        self.reports: list[Report] = []
        """Writes to other objects that are left for a moment."""

    @property
    def seen(self) -> S:
        """The snapshot: what the pass has read."""
        return self._seen

    @property
    def object(self) -> T:
        """The object as this pass would leave it so far."""
        obj: T = self.done.object
        return obj

    def become(self, obj: T) -> None:
        """Replace the object as this pass would leave it."""
        if obj is not self.done.object:
            done: Any = self.done
            self.done = replace(done, object=obj)

    # ------------------------------------------------------------------------------------------------- decisions

    def decide(self, table: Table[D], cause: Exception | None = None) -> Decision:
        """Let a table decide on what was read and done. Its row, vote and error are noted; `cause` is the cause of its error."""
        return self.decide_on(table, self.done, cause)

    def decide_on(self, table: Table[X], facts: X, cause: Exception | None = None) -> Decision:
        """Let a table decide on other facts."""
        decision = table.decide(facts)
        self.rows[decision.table] = decision.row
        self.vote(decision.requeue)
        if decision.error:
            self.fail(decision.error, cause)
        return decision

    def conclude(self, *tables: Table[D], together: bool = False, cause: Exception | None = None) -> None:
        """Let tables decide their conditions, each seeing what those before it decided; `together`: none sees the others.

        `cause` is the cause of their errors.
        """
        if together:
            for table, decision in [(table, self.decide(table, cause)) for table in tables]:
                self.become(conditions.decided(self.object, table, decision, self._seen.now))
            return
        for table in tables:
            self.become(conditions.decided(self.object, table, self.decide(table, cause), self._seen.now))

    def mark(self, condition: V1Beta1Condition) -> None:
        """Set a v1beta1 condition."""
        self.become(conditions.with_v1beta1(self.object, condition, self._seen.now))

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

    async def delete(self, client: Client, obj: Object) -> None:
        """Delete an object that belongs to this one, and record it. One that is gone already is not a failure."""
        name = obj.metadata.name
        try:
            await client.delete(type(obj), obj.key, uid=obj.metadata.uid)
        except NotFound:
            return
        except ApiError as error:
            self.record("Warning", "FailedDelete", f"Failed to delete {obj.kind} {name}: {error}")
            self.fail(f"failed to delete {obj.kind} {obj.key}: {error}", error)
            return
        self.record("Normal", "SuccessfulDelete", f"Deleted {obj.kind} {name}")

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
