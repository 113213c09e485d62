"""The history of a cluster in the order of time: condition changes, Events, beginnings and ends, decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from clusterwright.api.meta import Condition, Json, ObjectKey, Unstructured
from clusterwright.conditions import InvalidConditions, conditions_of
from clusterwright.offline.complaints import old_conditions, time_of
from clusterwright.offline.ownership import name_of


class Sort(StrEnum):
    """The kind of thing that happened."""

    CREATED = "created"
    DELETING = "deleting"
    CONDITION = "condition"
    EVENT = "event"
    WARNING = "warning"
    DECISION = "decision"
    VERDICT = "verdict"


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """One thing that happened: when (RFC 3339), to whom (`Kind/namespace/name`), and what."""

    at: str
    object: str
    sort: Sort
    about: str
    """The condition's type, the Event's reason or the table's name; empty for beginnings and ends."""
    text: str

    def to_json(self) -> Json:
        """Return the moment as plain data."""
        return {"at": self.at, "object": self.object, "sort": str(self.sort), "about": self.about, "text": self.text}


class Decided(Protocol):
    """An entry of the history of decisions, `runtime.traces.Decision`."""

    @property
    def at(self) -> Any: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> ObjectKey: ...  # noqa: D102
    @property
    def rows(self) -> Mapping[str, str]: ...  # noqa: D102


def timeline(objects: Iterable[Unstructured], events: Iterable[Json] = (), decisions: Iterable[Decided] = ()) -> list[Moment]:
    """Everything that the objects, Events and decisions tell, oldest first; what has no time is left out.

    Objects know of each condition only when it changed last. `decisions` are oldest first; only what changed in them is told.
    """
    told: dict[Moment, None] = {}
    for source in (*(_of_object(o) for o in objects), *(_of_event(e) for e in events), of_decisions(decisions)):
        told |= dict.fromkeys(moment for moment in source if moment.at)
    return sorted(told)


def _of_object(obj: Unstructured) -> Iterator[Moment]:
    name, metadata = name_of(obj.kind, *obj.key), obj.metadata
    if metadata.creation_timestamp is not None:
        yield Moment(f"{metadata.creation_timestamp:%Y-%m-%dT%H:%M:%SZ}", name, Sort.CREATED, "", "was created")
    if metadata.deletion_timestamp is not None:
        yield Moment(f"{metadata.deletion_timestamp:%Y-%m-%dT%H:%M:%SZ}", name, Sort.DELETING, "", "is to be deleted")
    for condition in conditions_shown(obj):
        at = condition.last_transition_time
        if at is not None:
            said = " ".join(filter(None, (f"became {condition.status}", condition.reason, condition.message)))
            yield Moment(f"{at:%Y-%m-%dT%H:%M:%SZ}", name, Sort.CONDITION, condition.type, said)


def conditions_shown(obj: Unstructured) -> tuple[Condition, ...]:
    """Return the conditions of an object of any kind, the old ones where there are no others; none where they cannot be read."""
    try:
        return conditions_of(obj) or old_conditions(obj)
    except InvalidConditions:
        return ()


def _of_event(event: Json) -> Iterator[Moment]:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    name = name_of(str(involved.get("kind", "")), str(involved.get("namespace") or ""), str(involved.get("name", "")))
    sort = Sort.WARNING if event.get("type") == "Warning" else Sort.EVENT
    count = event.get("count")
    times = f" ({count} times)" if isinstance(count, int) and count > 1 else ""
    text = f"{event.get('message') or event.get('note') or ''}{times}"
    yield Moment(time_of(event), name, sort, str(event.get("reason") or ""), text)


def of_decisions(decisions: Iterable[Decided]) -> Iterator[Moment]:
    """Yield what changed from one decision to the next; `decisions` are oldest first."""
    before: dict[tuple[str, ObjectKey, str], str] = {}
    for decision in decisions:
        for table, row in decision.rows.items():
            known = (decision.kind, decision.key, table)
            if before.get(known) != row:
                before[known] = row
                name = name_of(decision.kind, *decision.key)
                yield Moment(f"{decision.at:%Y-%m-%dT%H:%M:%SZ}", name, Sort.DECISION, table, f"row {row} fired")
