"""One running pass: what it has read, done, decided and failed at so far; and how passes fail."""

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
"""Seconds until a pass that failed only because a connection is missing runs again; the connection itself requeues it sooner."""

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)
X = TypeVar("X")


class PassFailed(ApiError):
    """A pass failed in an expected way: it is logged without a stack trace and does not count as a panic."""


class Seen(Protocol[T_co]):
    """The fields of every snapshot: the object, and the time of the pass. Frozen."""

    @property
    def object(self) -> T_co: ...  # noqa: D102
    @property
    def now(self) -> datetime: ...  # noqa: D102


S = TypeVar("S", bound=Seen[Any])
D = TypeVar("D", bound=Seen[Any])


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event of the object, recorded after the patch that it is about."""

    type: str
    reason: str
    message: str


class Pass(Generic[T, S, D]):
    """A running pass: what it has read, and what it has done so far.

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
        """Writes to other objects that are delayed, because they only report state."""

    @property
    def seen(self) -> S:
        """The snapshot: what the pass has read."""
        return self._seen

    @property
    def object(self) -> T:
        """The object as the pass leaves it so far."""
        obj: T = self.done.object
        return obj

    def become(self, obj: T) -> None:
        """Replace the object that the pass will write."""
        if obj is not self.done.object:
            done: Any = self.done
            self.done = replace(done, object=obj)

    # ------------------------------------------------------------------------------------------------- decisions

    def decide(self, table: Table[D], cause: Exception | None = None) -> Decision:
        """Let a table decide on what was read and done. Record its row, requeue vote and error; `cause` is the cause of its error."""
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
        """Let tables decide their conditions, each after the ones before it; `together`: on the same input.

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
        """Requeue after this time at the latest; None does nothing."""
        if delay:
            self.votes.append(delay)

    # -------------------------------------------------------------------------------------------------- failures

    def fail(self, error: Exception | str, cause: Exception | None = None) -> None:
        """Let the pass end in this error after its remaining steps; a text becomes a PassFailed with that cause."""
        if isinstance(error, str):
            error = PassFailed(error)
            error.__cause__ = cause
        self.errors.append(error)

    async def delete(self, client: Client, obj: Object) -> None:
        """Delete an object that belongs to this one, and record it. An object that is gone already is not a failure."""
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
        """Record an Event of the object after the final patch of the pass."""
        self.events.append(Event(type, reason, message))

    # ---------------------------------------------------------------------------------------------------- writing

    def rebase(self, latest: Original[T]) -> None:
        """Continue from a newer state of the object, which this pass or another client has written in another way."""
        self.original = latest
        self.become(latest.object)

    async def save(self, obj: T) -> None:
        """Write data now that must not be lost if the pass fails; the final patch is then relative to it.

        The object that the pass will write stays unchanged, and observedGeneration is that of the read object.
        """
        answer = await self.write(self.original, obj)
        if answer is not None:
            self.original = Original(obj, msgspec.json.encode(answer.json))


def failure(errors: Sequence[Exception]) -> PassFailed | Terminal:
    """Return all failures of a pass as one error: Terminal if a retry cannot fix any part of it.

    Its retry is not urgent if only the connection to a workload cluster is missing, or if an API server asked to wait.
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
