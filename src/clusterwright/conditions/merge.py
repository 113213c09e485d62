"""Merge many conditions into one: classification, precedence and messages.

Two operations share the steps. A summary merges several types of one object, an aggregate one type of several objects. Each
condition is an issue, an unknown or an info; the worst class decides status and reason; the message lists what matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, Literal

from clusterwright.api.meta import Condition, Object, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.conditions.foreign import conditions_of
from clusterwright.conditions.words import plural

MOST_MESSAGES: Final = 3
MOST_NAMES: Final = 3
_ZERO_TIME: Final = datetime.min.replace(tzinfo=UTC)
_BULLET = re.compile(r"\*[\t\n\f\r ]")  # these spaces and no others: a no-break space makes no bullet


class Priority(IntEnum):
    """How much a condition matters in a merge; lower is worse."""

    ISSUE = 0
    UNKNOWN = 1
    INFO = 2


@dataclass(frozen=True, slots=True)
class Reporter:
    """The objects that report conditions. `control_plane` is true only for control-plane Machines, which are named first."""

    kind: str
    name: str
    conditions: tuple[Condition, ...] = ()
    control_plane: bool = False


def reporter(obj: Object | Unstructured) -> Reporter:
    """Return an object as a reporter; raises InvalidConditions for an Unstructured with malformed conditions."""
    metadata = obj.metadata
    control_plane = obj.kind == "Machine" and CONTROL_PLANE_LABEL in metadata.labels
    if isinstance(obj, Unstructured):
        return Reporter(obj.kind, metadata.name, conditions_of(obj), control_plane)
    status: Any = getattr(obj, "status", None)
    return Reporter(obj.kind, metadata.name, getattr(status, "conditions", None) or (), control_plane)


@dataclass(frozen=True, slots=True)
class Named:
    """A condition with its reporter's name."""

    kind: str
    name: str
    condition: Condition
    control_plane: bool = False


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reason of the result if the worst input is an issue, an unknown, or only info."""

    issue: str = "IssuesReported"
    unknown: str = "UnknownReported"
    info: str = "InfoReported"


def default_priority(condition: Condition, negative: Iterable[str] = ()) -> Priority:
    """Return the priority by status and polarity: False is an issue; with negative polarity, True is."""
    if condition.status == "True":
        return Priority.ISSUE if condition.type in negative else Priority.INFO
    if condition.status == "False":
        return Priority.INFO if condition.type in negative else Priority.ISSUE
    return Priority.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The rules of a merge. `negative` names the input types of negative polarity, `target_negative` is the polarity of the result.

    `priority` may classify a condition; None selects the default. `transform` may change the lines of a summary.
    """

    reasons: Reasons = Reasons()
    negative: frozenset[str] = frozenset()
    target_negative: bool = False
    priority: Callable[[Condition], Priority | None] | None = None
    transform: Callable[[list[str]], list[str]] | None = None

    def classify(self, condition: Condition) -> Priority:
        """Return how much the condition matters."""
        own = self.priority(condition) if self.priority else None
        return default_priority(condition, self.negative) if own is None else own


def merge(
    operation: Literal["Summary", "Aggregate"], conditions: Sequence[Named], types: Sequence[str], strategy: Strategy
) -> tuple[str, str, str]:
    """Return status, reason and message of many conditions together; `conditions` must not be empty."""
    order = {t: n for n, t in enumerate(types)}  # a type that is named twice stands where it is named last
    ordered = sorted(conditions, key=lambda c: (order.get(c.condition.type, 0), c.condition.last_transition_time or _ZERO_TIME))
    classified = [(strategy.classify(c.condition), c) for c in ordered]
    worst = min(priority for priority, _ in classified)
    if worst is Priority.ISSUE:
        status, reason = "True" if strategy.target_negative else "False", strategy.reasons.issue
    elif worst is Priority.UNKNOWN:
        status, reason = "Unknown", strategy.reasons.unknown
    else:
        status, reason = "False" if strategy.target_negative else "True", strategy.reasons.info
    if operation == "Summary":
        return status, reason, _summary_message(classified, status, strategy.transform)
    return status, reason, _aggregate_message(classified, worst)


def _summary_message(classified: Sequence[tuple[Priority, Named]], status: str, transform: Callable[[list[str]], list[str]] | None) -> str:
    lines = []
    for priority, named in classified:
        condition = named.condition
        if priority is Priority.INFO and (status != "True" or not condition.message):
            continue
        lines.append(f"* {condition.type}:" + (indented(condition.message) if condition.message else f" {condition.reason}"))
    return "\n".join(transform(lines) if transform else lines)


def indented(message: str) -> str:
    """Return a message as it follows `* Type:`: on the same line, or below it, indented, if it has lines or bullets."""
    if "\n" not in message and not _BULLET.search(message):
        return f" {message}"
    lines = message.split("\n")
    bullets = [bool(_BULLET.search(line)) for line in lines]
    if all(bullets):
        return "".join(f"\n  {line}" for line in lines)
    return "".join(f"\n    {line}" if bullet else f"\n  * {line}" for line, bullet in zip(lines, bullets, strict=True))


class _Group:
    """All objects of one kind with the same text."""

    __slots__ = ("kind", "message", "reporters")

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        self.reporters: list[tuple[bool, str]] = []

    def names(self) -> list[str]:
        """Return the names, control-plane Machines first."""
        return [name for _, name in sorted(self.reporters)]

    def rank(self) -> str:
        """Return the tie-breaker between otherwise equal groups: the names in their original order."""
        return ",".join(name for _, name in self.reporters)


def _aggregate_message(classified: Sequence[tuple[Priority, Named]], worst: Priority) -> str:
    if worst is Priority.INFO:
        shown = [(p, c) for p, c in classified if c.condition.message]
    else:
        shown = sorted(((p, c) for p, c in classified if p is not Priority.INFO), key=lambda pair: pair[0])  # issues arrive first
    groups: dict[str, dict[str, _Group]] = {}
    priorities: dict[str, Priority] = {}
    control_plane_first: set[str] = set()
    for priority, named in shown:
        text = named.condition.message
        group = groups.setdefault(named.kind, {}).setdefault(text, _Group(named.kind, text))
        group.reporters.append((not named.control_plane, named.name))
        priorities[text] = min(priorities.get(text, Priority.INFO), priority)
        if named.control_plane:
            control_plane_first.add(text)
    left, lines = MOST_MESSAGES, []
    for kind in sorted(groups):
        ranked = sorted(
            groups[kind].values(),
            key=lambda g: (g.message not in control_plane_first, priorities[g.message], -len(g.reporters), g.rank()),
        )
        lines += [_group_line(g) for g in ranked[:left]]
        rest: dict[Priority, int] = {}
        for group in ranked[left:]:
            rest[priorities[group.message]] = rest.get(priorities[group.message], 0) + len(group.reporters)
        for priority in sorted(rest):
            count = rest[priority]
            lines.append(f"And {count} {kind if count == 1 else plural(kind)} {_REST[priority]}")
        left = max(0, left - len(ranked))
    return "\n".join(lines)


_REST: Final = {Priority.ISSUE: "with other issues", Priority.UNKNOWN: "with status unknown", Priority.INFO: "with additional info"}


def _group_line(group: _Group) -> str:
    names = group.names()
    if len(names) == 1:
        head = f"* {group.kind} {names[0]}:"
    else:
        head = f"* {plural(group.kind)} {', '.join(names[:MOST_NAMES])}"
        head += f", ... ({len(names) - MOST_NAMES} more):" if len(names) > MOST_NAMES else ":"
    return head + indented(group.message)


_COMPONENTS: Final = ("* APIServer", "* ControllerManager", "* Scheduler", "* EtcdPodHealthy")


def group_control_plane_components(lines: list[str]) -> list[str]:
    """Return one line `* Control plane components:` instead of those about static Pods, if they are several with the same text."""
    texts = [line.partition(":")[2] for line in lines if _is_component(line)]
    if len(texts) < 2 or len(set(texts)) > 1:
        return lines
    grouped, seen = [], False
    for line in lines:
        if not _is_component(line):
            grouped.append(line)
        elif not seen:
            seen = True
            grouped.append(f"* Control plane components:{texts[0]}")
    return grouped


def _is_component(line: str) -> bool:
    head = line.partition(":")[0]
    return head.startswith(_COMPONENTS[:3]) or head == _COMPONENTS[3]
