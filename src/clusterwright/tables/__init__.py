"""Decision tables: rows as data over named guards, so that every decision can be read, tested and explained.

A `Guard` is a named question about a frozen snapshot and composes with `&`, `|` and `~`; `about` names the other objects that the answer
comes from. A `Row` joins a guard with what then holds: a transition of the condition (`true`, `false`, `unknown`, `computed`, or `KEEP`)
and of its v1beta1 twin, or a `Phase`; the act that follows (a member of an enum, matched exhaustively by the controller, so that no code
branches on row names); a requeue vote; the error that the pass ends in. A `Collect` is a row with several lines: all that hold become one
bulleted message. A `Table` tries them in order, the first match wins:

    @guard("metadata.deletionTimestamp is set")
    def deleting(c: Snapshot) -> bool:
        return c.deleting

    @message("<Kind> does not exist")
    def does_not_exist(c: Snapshot) -> str:
        return f"{c.kind} does not exist"

    READY: Table[Snapshot] = Table(
        "Ready",
        Row("gone", missing & ~deleting, false("DoesNotExist", does_not_exist), requeue=timedelta(seconds=30)),
        Collect("broken", false("NotReady"), Because("no-disk", no_disk, "The disk is missing")),
        Row("ready", OTHERWISE, true("Ready")),
    )
    decision = READY.decide(snapshot)

`explain` says which row fired and the truth value of every guard; `check` finds gaps, unreachable and overlapping rows by
trying all truth assignments; `render` turns a table into Markdown and JSON. The kit knows no kind, no clock and no client.
"""

from clusterwright.tables.check import Impossible, TooManyGuards, contradictions, gaps, overlaps, unreachable
from clusterwright.tables.guard import OTHERWISE, About, Guard, Message, Subject, guard, message
from clusterwright.tables.render import as_json, as_markdown, explanation_as_json, explanation_as_text
from clusterwright.tables.table import (
    KEEP,
    Because,
    Collect,
    Decision,
    Explanation,
    Later,
    NoRowMatches,
    Outcome,
    Phase,
    Row,
    RowExplanation,
    Table,
    Transition,
    computed,
    false,
    observing,
    true,
    unknown,
)

__all__ = [
    "KEEP",
    "OTHERWISE",
    "About",
    "Because",
    "Collect",
    "Decision",
    "Explanation",
    "Guard",
    "Impossible",
    "Later",
    "Message",
    "NoRowMatches",
    "Outcome",
    "Phase",
    "Row",
    "RowExplanation",
    "Subject",
    "Table",
    "TooManyGuards",
    "Transition",
    "as_json",
    "as_markdown",
    "computed",
    "contradictions",
    "explanation_as_json",
    "explanation_as_text",
    "false",
    "gaps",
    "guard",
    "message",
    "observing",
    "overlaps",
    "true",
    "unknown",
    "unreachable",
]
