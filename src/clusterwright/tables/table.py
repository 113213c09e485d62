"""Rows, collecting rows, and tables, in which the first matching row decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from clusterwright.tables.guard import Guard, Message, Subject

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
A = TypeVar("A", bound=Enum)


Observer = Callable[["Table[Any]", Any], None]
_observer: ContextVar[Observer | None] = ContextVar("table_observer", default=None)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the context, call `observer` for every table that decides, with its snapshot.

    This is for explanations: controllers need no code for it. Other tasks and threads are not affected.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


class NoRowMatches(Exception):
    """No row of a table matches a snapshot; `check.gaps` finds such tables in advance."""

    def __init__(self, table: str) -> None:
        super().__init__(f"no row of table {table} matches")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The new state of a condition. `severity` is for v1beta1 conditions; only mirrored conditions set a transition time."""

    status: str
    reason: str
    message: str = ""
    severity: str = ""
    last_transition_time: datetime | None = None


@dataclass(frozen=True, eq=False)
class Transition(Generic[S_contra]):
    """The change of a row's condition: to a fixed or computed outcome, or (`KEEP`) none.

    `status`, `reason`, `message` describe the outcome, for documents and comparison with the seeds; `make` gives it.
    """

    status: str
    reason: str
    message: str | Message[S_contra] = ""
    severity: str = ""
    make: Callable[[S_contra], Outcome] | None = None

    def outcome(self, snapshot: S_contra) -> Outcome | None:
        """Return the outcome for this snapshot; None leaves the condition as it is."""
        if self.make is not None:
            return self.make(snapshot)
        if not self.status:
            return None
        text = self.message if isinstance(self.message, str) else self.message(snapshot)
        return Outcome(self.status, self.reason, text, self.severity)

    @property
    def message_text(self) -> str:
        """The message or its form."""
        return self.message if isinstance(self.message, str) else self.message.text


KEEP: Transition[Any] = Transition("", "")
"""The condition stays exactly as it is, including observedGeneration; an absent condition stays absent."""


def true(reason: str, message: str | Message[S] = "", severity: str = "") -> Transition[S]:
    """Return the transition to True."""
    return Transition("True", reason, message, severity)


def false(reason: str, message: str | Message[S] = "", severity: str = "") -> Transition[S]:
    """Return the transition to False."""
    return Transition("False", reason, message, severity)


def unknown(reason: str, message: str | Message[S] = "", severity: str = "") -> Transition[S]:
    """Return the transition to Unknown."""
    return Transition("Unknown", reason, message, severity)


def computed(make: Callable[[S], Outcome], *, status: str, reason: str, message: str = "") -> Transition[S]:
    """Return the transition to the result of `make` (a mirror or an aggregate); the texts describe it in documents."""
    return Transition(status, reason, message, make=make)


@dataclass(frozen=True, eq=False)
class Later(Generic[S_contra]):
    """A requeue vote that depends on the snapshot, and its description."""

    text: str
    make: Callable[[S_contra], timedelta]


@dataclass(frozen=True, slots=True)
class Phase:
    """The decision of a row in a phase table: the value of `status.phase`. A phase is not a condition's status."""

    name: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a table for a snapshot."""

    table: str
    row: str
    outcome: Outcome | None = None
    """The outcome; None: keep the condition as it is."""
    requeue: timedelta | None = None
    act: Enum | None = None
    """The action of the row; read it with `chosen`, which checks the type."""
    phase: str = ""
    """The phase, in a phase table; empty: the phase stays as it is."""
    v1beta1: Outcome | None = None
    """The new state of the deprecated condition of the same type; None: it stays as it is."""
    error: str = ""
    """The error in which the pass ends, after its remaining steps."""
    lines: tuple[str, ...] = ()
    """The names of the matching lines of a collecting row."""

    def chosen(self, acts: type[A]) -> A | None:
        """Return the act of the row, to be matched to the last member (`assert_never`); None if the row has no act."""
        if self.act is not None and not isinstance(self.act, acts):
            raise TypeError(f"row {self.row} of table {self.table} has the act {self.act!r}, not a member of {acts.__name__}")
        return self.act


@dataclass(frozen=True, eq=False)
class Row(Generic[S_contra]):
    """One line of a table: a guard and its consequences.

    `name` is a stable slug (test id, log field, metric label); no code branches on it. `act` is the action: a member of the table's own
    enum, whose value describes it. `ensure` adds words only. `requeue` is a vote: the soonest of a pass wins. `error` ends the pass.
    `v1beta1` is what becomes of the deprecated condition of the same type.
    """

    name: str
    guard: Guard[S_contra]
    transition: Transition[S_contra] | Phase
    ensure: str = ""
    requeue: timedelta | Later[S_contra] | None = None
    error: str | Message[S_contra] = ""
    act: Enum | None = None
    v1beta1: Transition[S_contra] | None = None

    def decide(self, table: str, snapshot: S_contra) -> Decision | None:
        """Return the decision if this row matches."""
        if not self.guard.test(snapshot):
            return None
        then = self.transition
        return Decision(
            table,
            self.name,
            None if isinstance(then, Phase) else then.outcome(snapshot),
            self.requeue.make(snapshot) if isinstance(self.requeue, Later) else self.requeue,
            self.act,
            then.name if isinstance(then, Phase) else "",
            None if self.v1beta1 is None else self.v1beta1.outcome(snapshot),
            self.error if isinstance(self.error, str) else self.error(snapshot),
        )

    def matches(self, values: dict[int, bool]) -> bool:
        """Return whether the row matches when its atoms have these values."""
        return self.guard.under(values)

    def guards(self) -> tuple[Guard[S_contra], ...]:
        """Return the atoms of the row."""
        return self.guard.atoms()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that tests must cover."""
        return (self.name,)


@dataclass(frozen=True, eq=False)
class Because(Generic[S_contra]):
    """A line of a collecting row: a reason that may hold together with others."""

    name: str
    guard: Guard[S_contra]
    message: str | Message[S_contra]

    @property
    def message_text(self) -> str:
        """The message or its form."""
        return self.message if isinstance(self.message, str) else self.message.text


@dataclass(frozen=True, eq=False, init=False)
class Collect(Generic[S_contra]):
    """A row that matches if any of its lines does; its message is one bullet for each line that holds, in order."""

    name: str
    transition: Transition[S_contra]
    lines: tuple[Because[S_contra], ...]
    requeue: timedelta | None
    bullet: str

    def __init__(
        self, name: str, transition: Transition[S_contra], *lines: Because[S_contra], requeue: timedelta | None = None, bullet: str = "* "
    ) -> None:
        for attribute, value in (("name", name), ("transition", transition), ("lines", lines), ("requeue", requeue), ("bullet", bullet)):
            object.__setattr__(self, attribute, value)

    def decide(self, table: str, snapshot: S_contra) -> Decision | None:
        """Return the decision if any line holds."""
        held = [line for line in self.lines if line.guard.test(snapshot)]
        if not held:
            return None
        texts = [line.message if isinstance(line.message, str) else line.message(snapshot) for line in held]
        text = "\n".join(self.bullet + t for t in texts)
        base = self.transition
        outcome = Outcome(base.status, base.reason, text, base.severity)
        return Decision(table, self.name, outcome, self.requeue, lines=tuple(line.name for line in held))

    def matches(self, values: dict[int, bool]) -> bool:
        """Return whether any line holds when the atoms have these values."""
        return any(line.guard.under(values) for line in self.lines)

    def guards(self) -> tuple[Guard[S_contra], ...]:
        """Return the atoms of the lines."""
        return tuple({id(a): a for line in self.lines for a in line.guard.atoms()}.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names that tests must cover: one for each line."""
        return tuple(line.name for line in self.lines)


@dataclass(frozen=True, slots=True)
class RowExplanation:
    """A row evaluated on a snapshot: whether it matched, whether it fired, and the values of its guards."""

    name: str
    guard: str
    matched: bool
    fired: bool
    guards: tuple[tuple[str, bool], ...]
    transition: str
    about: tuple[Subject, ...] = ()
    """The other objects that the row's guards read."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A table evaluated on a snapshot."""

    table: str
    decision: Decision
    rows: tuple[RowExplanation, ...]


@dataclass(frozen=True, eq=False, init=False)
class Table(Generic[S_contra]):
    """Rows in order; the first that matches decides. `name` is the condition (or the phase) that it decides.

    `v1beta1`: the table decides the deprecated condition of this type instead.
    """

    name: str
    rows: tuple[Row[S_contra] | Collect[S_contra], ...]
    about: str = ""
    v1beta1: str = ""
    exactly_one: tuple[tuple[Guard[S_contra], ...], ...] = field(default=())
    at_most_one: tuple[tuple[Guard[S_contra], ...], ...] = field(default=())
    assuming: tuple[Guard[S_contra], ...] = field(default=())

    def __init__(
        self,
        name: str,
        *rows: Row[S_contra] | Collect[S_contra],
        about: str = "",
        v1beta1: str = "",
        exactly_one: Sequence[Sequence[Guard[S_contra]]] = (),
        at_most_one: Sequence[Sequence[Guard[S_contra]]] = (),
        assuming: Sequence[Guard[S_contra]] = (),
    ) -> None:
        """Create a table.

        `exactly_one`, `at_most_one` and `assuming` declare which truth assignments are possible, for the checks only: groups of
        guards of which exactly or at most one holds (the members of a union), and composed guards that always hold.
        """
        names = [n for row in rows for n in row.names]
        if len(set(names)) != len(names):
            raise ValueError(f"table {name}: row names must be unique: {names}")
        values: tuple[tuple[str, Any], ...] = (
            ("name", name),
            ("rows", rows),
            ("about", about),
            ("v1beta1", v1beta1),
            ("exactly_one", tuple(tuple(g) for g in exactly_one)),
            ("at_most_one", tuple(tuple(g) for g in at_most_one)),
            ("assuming", tuple(assuming)),
        )
        for attribute, value in values:
            object.__setattr__(self, attribute, value)

    def decide(self, snapshot: S_contra) -> Decision:
        """Return the decision of the first matching row; raises NoRowMatches if the table has a gap here."""
        decision = self._first(snapshot)
        observer = _observer.get()
        if observer is not None:
            observer(self, snapshot)
        return decision

    def _first(self, snapshot: S_contra) -> Decision:
        for row in self.rows:
            decision = row.decide(self.name, snapshot)
            if decision is not None:
                return decision
        raise NoRowMatches(self.name)

    def explain(self, snapshot: S_contra) -> Explanation:
        """Return the decision with the truth value of every guard of every row."""
        decision = self._first(snapshot)
        rows = []
        for row in self.rows:
            for name, guard, transition in _lines(row):
                values = tuple((atom.text, atom.test(snapshot)) for atom in guard.atoms())
                held = guard.test(snapshot)
                fired = row.name == decision.row and (isinstance(row, Row) or name in decision.lines)
                rows.append(RowExplanation(name, guard.text, held, fired, values, transition, guard.subjects(snapshot)))
        return Explanation(self.name, decision, tuple(rows))

    def subjects(self, snapshot: S_contra) -> tuple[Subject, ...]:
        """Return the other objects that the firing row reads, each once: its cause may be among them."""
        return tuple(dict.fromkeys(s for row in self.explain(snapshot).rows if row.fired for s in row.about))

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names that tests must cover."""
        return tuple(n for row in self.rows for n in row.names)

    def row(self, name: str) -> Row[S_contra] | Collect[S_contra]:
        """Return the row of that name, or the collecting row with a line of that name."""
        for row in self.rows:
            if row.name == name or name in row.names:
                return row
        raise KeyError(name)


def _lines(row: Row[S] | Collect[S]) -> list[tuple[str, Guard[S], str]]:
    if isinstance(row, Row):
        return [(row.name, row.guard, describe(row.transition, row.error))]
    return [(b.name, b.guard, f"{row.transition.status}/{row.transition.reason}: {row.bullet}{b.message_text}") for b in row.lines]


def describe(transition: Transition[S] | Phase, error: str | Message[S] = "") -> str:
    """Return a transition in one line: `False/NotReady: text`, `phase Running`, `no change`, `error: text`."""
    text = error if isinstance(error, str) else error.text
    if isinstance(transition, Phase):
        return f"phase {transition.name}"
    if not transition.status and transition.make is None:
        return f"error: {text}" if text else "no change"
    shown = f"{transition.status}/{transition.reason}" if transition.reason else transition.status
    if transition.severity:
        shown += f" ({transition.severity})"
    if transition.message_text:
        shown += f": {transition.message_text}"
    return f"{shown}; error: {text}" if text else shown
