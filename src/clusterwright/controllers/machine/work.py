"""A pass under way, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from clusterwright.api.core import Machine
from clusterwright.api.meta import V1Beta1Condition
from clusterwright.controllers.machine import plan
from clusterwright.controllers.machine.snapshot import MachineSnapshot
from clusterwright.controllers.machine.status import with_v1beta1_condition
from clusterwright.controllers.wiring import EventRecorder
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError
from clusterwright.tables import Table
from clusterwright.workload.access import NotConnected

CONNECTION_RETRY = 20.0
"""Seconds after which a pass that failed only for want of a connection is run again: the connection itself wakes us sooner."""


class MachineError(ApiError):
    """A pass could not do all that it should."""


@dataclass(slots=True)
class Pass:
    """A pass under way: what it knows and has decided so far."""

    seen: MachineSnapshot
    original: Original[Machine]
    votes: list[timedelta] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def machine(self) -> Machine:
        """The Machine as it is to become."""
        return self.seen.machine

    def become(self, machine: Machine) -> None:
        """The Machine is to become this."""
        self.seen = replace(self.seen, machine=machine)

    def mark(self, condition: V1Beta1Condition) -> None:
        """Set a v1beta1 condition."""
        self.become(with_v1beta1_condition(self.machine, condition, self.seen.now))

    def advance(self, table: Table[MachineSnapshot], cause: Exception | None = None) -> None:
        """Let a phase's table decide."""
        self.seen, decision = plan.advance(self.seen, table)
        self.rows[decision.table] = decision.row
        if decision.requeue is not None:
            self.votes.append(decision.requeue)
        if decision.error:
            self.fail(decision.error, cause)

    def fail(self, text: str, cause: Exception | None = None) -> None:
        """The pass will end in an error."""
        error = MachineError(text)
        error.__cause__ = cause
        self.errors.append(error)

    def record(self, events: EventRecorder, type: str, reason: str, message: str) -> None:
        """Record an Event of the Machine."""
        events.record(self.original.object, type, reason, message)


def failure(errors: Sequence[Exception]) -> MachineError:
    """All that failed in a pass, as one error; it is not in a hurry if only the connection to the workload cluster is missing."""
    unconnected = all(isinstance(e.__cause__ or e, NotConnected) for e in errors)
    text = "; ".join(str(e) or type(e).__name__ for e in errors)
    error = MachineError(text, retry_after=CONNECTION_RETRY if unconnected else None)
    error.is_expected = unconnected
    error.__cause__ = errors[0] if len(errors) == 1 else ExceptionGroup("several things failed", list(errors))
    return error


def cause_of(lookup: object) -> Exception | None:
    """Why something could not be found or brought in line, if that is so."""
    error = getattr(lookup, "error", None) or getattr(lookup, "sync_error", None)
    return error if isinstance(error, Exception) else None
