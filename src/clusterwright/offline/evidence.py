"""The evidence behind a verdict: rows of tables, conditions, Events, fields and absences on the way from the subject to the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.conditions import InvalidConditions, conditions_of, get
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import Complaint, Tier, begun_of, text_of, time_of
from clusterwright.offline.nodes import Node
from clusterwright.offline.passes import Pass

MOST_EVENTS: Final = 3
"""The most Events of one object in the evidence."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence. `sort`: condition, row, event, field, absence, deletion, pass."""

    sort: str
    object: str
    text: str

    def to_json(self) -> Json:
        """Return the piece as plain data."""
        return {"sort": self.sort, "object": self.object, "text": self.text}


def evidence(investigation: Investigation, cause: Node, passes: Mapping[str, Pass]) -> list[Piece]:
    """Return the evidence for each link from the subject to the cause, the subject first."""
    nodes = [investigation.nodes[name] for name in investigation.path_to(cause.id) if name in investigation.nodes]
    return [piece for node in nodes if node.worst is not None for piece in _of_node(investigation, node, node.worst, passes)]


def _of_node(investigation: Investigation, node: Node, worst: Complaint, passes: Mapping[str, Pass]) -> Iterator[Piece]:
    name = node.id.partition("#")[0]
    found = list(_of_condition(node, name, worst, passes))
    if worst.tier is Tier.MISSING:
        found.append(Piece("absence", name, investigation.why_missing(node)))
    elif node.object is not None and worst.tier is Tier.DELETING:
        held = ", ".join(node.object.metadata.finalizers) or "none"
        since = node.object.at("metadata", "deletionTimestamp")
        found.append(Piece("deletion", name, f"deletionTimestamp is {since}; finalizers: {held}"))
    elif node.object is not None and worst.path not in {"", "status"} and not worst.path.startswith("status.conditions"):
        found.append(Piece("field", name, f"{worst.path}: {worst.text.partition(chr(10))[0]}"))
    found += _of_events(investigation, name, worst)
    if worst.cause == "pass.fails":
        found.append(Piece("pass", name, worst.text.replace("\n", "; ")))
    yield from found or [Piece("field", name, worst.text.partition("\n")[0])]


def _of_condition(node: Node, name: str, worst: Complaint, passes: Mapping[str, Pass]) -> Iterator[Piece]:
    """Yield the condition as it was written, and the row of a pass that confirms or contradicts it."""
    if not worst.about or node.object is None:
        return
    try:
        written = get(conditions_of(node.object), worst.about)
    except InvalidConditions:
        return
    if written is not None:
        at = f" since {written.last_transition_time:%Y-%m-%dT%H:%M:%SZ}" if written.last_transition_time else ""
        yield Piece("condition", name, f"{written.type}={written.status} {written.reason}{at}: {written.message}".rstrip(": "))
    for table in passes[name].tables if name in passes else ():
        if table.table != worst.about:
            continue
        fired = next((row for row in table.rows if row.fired), None)
        asked = ", ".join(f"{s.kind} {s.name}" for s in fired.about) if fired is not None else ""
        looked = f", which looked at {asked}" if asked else ""
        yield Piece("row", name, f"table {table.table}, row {table.decision.row}{looked}: found just now, by a pass of our controller")
        return


def _of_events(investigation: Investigation, name: str, worst: Complaint) -> Iterator[Piece]:
    """Yield the Events with the text of the complaint."""
    told = [e for e in investigation.events.get(name, ()) if text_of(e) and text_of(e) in f"{worst.text} {worst.raw}"]
    for event in told[:MOST_EVENTS]:
        count = event.get("count") or 1
        span = f"{begun_of(event)} to {time_of(event)}, {count} times" if count != 1 else time_of(event)
        yield Piece("event", name, f"{event.get('type')} {event.get('reason')} ({span}): {text_of(event)}")
