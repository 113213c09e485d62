"""Tables and explanations as Markdown, text and JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from clusterwright.api.meta import Json
from clusterwright.tables.table import Because, Collect, Explanation, Later, Phase, Row, Table, describe

S = TypeVar("S")


def as_markdown(table: Table[S]) -> str:
    """Return the table in the seeds' columns, with the row names in front."""
    head = "| Row | Guard (observed predicate) | Ensure (idempotent action) | Transition | Next reconcile |"
    lines = [head, "|---|---|---|---|---|"]
    for row in table.rows:
        if isinstance(row, Row):
            cells = [
                f"`{row.name}`",
                f"`{row.guard.text}`",
                _ensure(row) or "-",
                f"`{describe(row.transition, row.error)}`" + (f"; v1beta1: `{describe(row.v1beta1)}`" if row.v1beta1 else ""),
                _after(row.requeue),
            ]
            lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
            continue
        for line in row.lines:
            shown = f"{row.transition.status}/{row.transition.reason}: {row.bullet}{line.message_text}"
            cells = [f"`{line.name}`", f"`{line.guard.text}`", "- (collected)", f"`{shown}`", _after(row.requeue)]
            lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
    about = f"{table.about}\n\n" if table.about else ""
    return f"## {table.name}\n\n{about}" + "\n".join(lines) + "\n"


def as_json(table: Table[S]) -> Json:
    """Return the table as plain data: its rows by name, guard, status, reason, message, requeue."""
    rows: list[Json] = []
    for row in table.rows:
        if isinstance(row, Row):
            rows.append(_row_json(row))
        else:
            rows.extend(_line_json(row, line) for line in row.lines)
    return {"name": table.name, "about": table.about, "rows": rows}


def _row_json(row: Row[S]) -> Json:
    t = row.transition
    error = row.error if isinstance(row.error, str) else row.error.text
    shown: dict[str, Any] = {"name": row.name, "guard": row.guard.text, "atoms": [a.text for a in row.guards()]}
    if isinstance(t, Phase):
        shown["phase"] = t.name
    elif t.status or t.make:
        shown |= {"status": t.status, "reason": t.reason, "message": t.message_text}
        if t.severity:
            shown["severity"] = t.severity
    else:
        shown["keep"] = True
    if row.v1beta1 is not None:
        shown["v1beta1"] = describe(row.v1beta1)
    if row.act is not None:
        shown["act"] = row.act.name
    if ensure := _ensure(row):
        shown["ensure"] = ensure
    if error:
        shown["error"] = error
    shown["requeueAfterSeconds"] = row.requeue.total_seconds() if isinstance(row.requeue, timedelta) else None
    if isinstance(row.requeue, Later):
        shown["requeueAfter"] = row.requeue.text
    return shown


def _line_json(row: Collect[S], line: Because[S]) -> Json:
    return {
        "name": line.name,
        "guard": line.guard.text,
        "atoms": [a.text for a in line.guard.atoms()],
        "collectedIn": row.name,
        "status": row.transition.status,
        "reason": row.transition.reason,
        "message": row.bullet + line.message_text,
        "requeueAfterSeconds": row.requeue.total_seconds() if row.requeue else None,
    }


def explanation_as_json(explanation: Explanation) -> Json:
    """Return the row that fired and why, as plain data."""
    outcome = explanation.decision.outcome
    answer: Json = {"table": explanation.table, "row": explanation.decision.row, "rows": []}
    if outcome is not None:
        answer |= {"status": outcome.status, "reason": outcome.reason, "message": outcome.message}
    for row in explanation.rows:
        shown: dict[str, Any] = {"name": row.name, "guard": row.guard, "matched": row.matched, "fired": row.fired}
        shown["guards"] = [{"text": text, "value": value} for text, value in row.guards]
        shown["transition"] = row.transition
        if row.about:
            shown["about"] = [s._asdict() for s in row.about]
        answer["rows"].append(shown)
    return answer


def explanation_as_text(explanation: Explanation) -> str:
    """Return the table for a terminal: the fired row marked, and each guard's value."""
    width = max(len(r.name) for r in explanation.rows)
    lines = [explanation.table]
    for row in explanation.rows:
        mark = ">" if row.fired else " "
        lines.append(f" {mark} {row.name:<{width}}  {'yes' if row.matched else 'no ':<3}  {row.transition.replace(chr(10), ' ')}")
        for text, value in row.guards:
            lines.append(f"   {'':<{width}}       {'+' if value else '-'} {text}")
    return "\n".join(lines)


def _ensure(row: Row[S]) -> str:
    return "; ".join(filter(None, (str(row.act.value) if row.act is not None else "", row.ensure)))


def _after(requeue: timedelta | Later[S] | None) -> str:
    if isinstance(requeue, Later):
        return f"after {requeue.text}"
    return f"after {requeue.total_seconds():g} s" if requeue else "none"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
