"""A tree of objects as lines: aligned, fitted to the terminal, similar siblings grouped, in colour. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.cli.tree import Branch, age
from clusterwright.conditions.words import plural
from clusterwright.offline.complaints import without_blank_lines

_COLUMNS: Final = ("NAME", "READY", "UP-TO-DATE", "VERSION", "STATUS", "REASON", "SINCE", "MESSAGE")
_OPTIONAL: Final = frozenset({"READY", "UP-TO-DATE", "VERSION"})
"""Columns that are left out if no object has a value for them."""
_STATUS: Final = _COLUMNS.index("STATUS")
_NARROWEST: Final = 30
"""The least columns of a message, even if the terminal has no room for them."""
_SHOWN: Final = 3
"""How many names of a group are shown."""
_COLOURS: Final = {"True": "\x1b[32m", "False": "\x1b[31m", "Unknown": "\x1b[33m"}
_STATES: Final = {"fine": "\x1b[32m", "progressing": "\x1b[36m", "waiting": "\x1b[33m", "broken": "\x1b[31m", "could not see": "\x1b[33m"}
_BAD: Final = {"True": "False", "False": "True"}
_NEGATIVE: Final = re.compile(r"^(Deleting|Paused|Remediating|RollingOut|Scaling(Up|Down)|Updating)$")
_PLAIN: Final = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tree is shown. `conditions`: all conditions of every object, or of these kinds; `width` 0: no limit."""

    width: int = 0
    colour: bool = False
    grouping: bool = False
    conditions: bool | Collection[str] = False

    def shows_conditions(self, kind: str) -> bool:
        """Return whether all conditions of an object of a kind are shown."""
        return self.conditions if isinstance(self.conditions, bool) else kind.lower() in {k.lower() for k in self.conditions}


def render(root: Branch, now: datetime, layout: Layout = Layout()) -> str:  # noqa: B008  # it is frozen
    """Return the tree as lines."""
    rows = [*_rows(root, "", "", now, layout)]
    cells = [_COLUMNS, *(row.cells for row in rows)]
    shown = [n for n, name in enumerate(_COLUMNS[:-1]) if name not in _OPTIONAL or any(row[n] for row in cells[1:])]
    widths = {n: max(len(row[n]) for row in cells) for n in shown}
    taken = sum(widths.values()) + 2 * len(widths)
    lines = ["  ".join([*(_COLUMNS[n].ljust(widths[n]) for n in shown), _COLUMNS[-1]])]
    for row in rows:
        room = max(layout.width - taken, _NARROWEST) if layout.width else 0
        first, *rest = _wrapped(row.cells[-1], room)
        parts = [_painted(row.cells[n].ljust(widths[n]), row, layout) if n == _STATUS else row.cells[n].ljust(widths[n]) for n in shown]
        lines.append("  ".join([*parts, first]).rstrip())
        lines += [f"{row.below:<{taken}}{line}".rstrip() for line in rest]
    return "\n".join(lines)


def foot(state: str, headline: str, layout: Layout) -> str:
    """Return a verdict below a tree: as wide as the tree, with its state in colour."""
    lines = _wrapped(headline, layout.width)
    if layout.colour and headline.lower().startswith(state):
        lines[0] = f"{_STATES.get(state, '')}{lines[0][: len(state)]}{_PLAIN}{lines[0][len(state) :]}"
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Row:
    cells: tuple[str, ...]
    below: str
    """Return the left margin of further lines: the lines of the tree that continue."""
    is_negative: bool = False


def _rows(branch: Branch, lead: str, below: str, now: datetime, layout: Layout) -> Iterator[_Row]:
    children = _grouped(branch.children) if layout.grouping and not layout.conditions else branch.children
    hanging = below + ("│ " if children else "  ")
    yield _Row((lead + branch.label, branch.replicas, branch.up_to_date, branch.version, *_cells(branch, now)), hanging)
    if layout.shows_conditions(branch.kind):
        for condition in branch.conditions:
            if branch.condition is None or condition.type != branch.condition.type:
                cells = _cells(replace(branch, condition=condition), now)
                yield _Row((f"{hanging}  {condition.type}", "", "", "", *cells), hanging, bool(_NEGATIVE.match(condition.type)))
    for index, child in enumerate(children):
        is_last = index == len(children) - 1
        yield from _rows(child, below + ("└─" if is_last else "├─"), below + ("  " if is_last else "│ "), now, layout)


def _grouped(children: Sequence[Branch]) -> list[Branch]:
    """Return Machines that have no children and the same state as one branch; others unchanged."""
    groups: dict[tuple[str, ...], list[Branch]] = {}
    for child in children:
        key: tuple[str, ...] = (child.label,)
        if child.kind == "Machine" and not child.children and not child.is_deleting and child.condition is not None:
            key = (child.kind, child.condition.status, child.condition.reason, child.version, child.up_to_date)
        groups.setdefault(key, []).append(child)
    return [members[0] if len(members) == 1 else _together(members) for members in groups.values()]


def _together(members: Sequence[Branch]) -> Branch:
    conditions = [m.condition for m in members if m.condition is not None]
    names = [m.label.partition("/")[2] for m in members]
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    messages = {c.message for c in conditions}
    told = [*(messages - {""} if len(messages) == 1 else ()), f"See {', '.join(names[:_SHOWN])}{more}"]
    times = [c.last_transition_time for c in conditions if c.last_transition_time is not None]
    condition = replace(conditions[0], message="\n".join(told), last_transition_time=min(times, default=None))
    return replace(members[0], label=f"{len(members)} {plural(members[0].kind)}", condition=condition, conditions=())


def _cells(branch: Branch, now: datetime) -> tuple[str, ...]:
    condition = branch.condition
    if condition is None:
        return "", "", "", ""
    return condition.status, condition.reason, age(condition.last_transition_time, now), condition.message


def _wrapped(message: str, room: int) -> list[str]:
    """Return a message as lines that fit; lists stay lists."""
    lines: list[str] = []
    for line in without_blank_lines(message).splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + (2 if line.lstrip().startswith("* ") else 0))
        lines += textwrap.wrap(line, room, subsequent_indent=indent, break_on_hyphens=False) if room else [line]
    return lines or [""]


def _painted(text: str, row: _Row, layout: Layout) -> str:
    status = row.cells[_STATUS]
    if not layout.colour or status not in _COLOURS:
        return text
    return f"{_COLOURS[_BAD.get(status, status) if row.is_negative else status]}{text}{_PLAIN}"
