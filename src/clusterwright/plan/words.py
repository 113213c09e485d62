"""A plan as text for a terminal, and as Markdown for a pull request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.plan.differences import ABSENT, Field
from clusterwright.plan.machines import Rollout, Turn
from clusterwright.plan.result import Duration, Outcome, Plan, Touched, Wait

MOST_SHOWN: Final = 20
"""The most entries of one list that a text shows; JSON has all."""
MOST_VALUE: Final = 60
_TITLES: Final = {"drain": "drain", "check": "preflight", "hold": "waits"}


def span(seconds: float) -> str:
    """Return a duration as people write it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def takes(duration: Duration) -> str:
    """Return how long a plan takes."""
    if duration.median is None:
        return "does not end"
    if duration.low is None or duration.high is None or span(duration.low) == span(duration.high):
        return f"about {span(duration.median)}"
    return f"about {span(duration.median)} ({span(duration.low)} to {span(duration.high)} in {duration.runs} runs)"


def headline(plan: Plan) -> str:
    """Return the plan in one line."""
    if plan.refused:
        return f"Refused: {plan.refused[0].object}: {plan.refused[0].message}"
    if plan.outcome is Outcome.NOTHING:
        return "Nothing to do."
    replaced = {t.old for t in plan.replaced} | {t.new for t in plan.replaced}
    counts = [
        f"{counted(len(plan.replaced), 'Machine')} replaced",
        f"{_other(plan.created, replaced)} created",
        f"{len([c for c in plan.changed if not c.anyway])} changed",
        f"{_other(plan.deleted, replaced)} deleted",
    ]
    return f"{', '.join(c for c in counts if not c.startswith('0 '))}; {takes(plan.duration)}."


def _other(listed: Iterable[Touched], replaced: set[str]) -> int:
    return sum(t.name not in replaced for t in listed)


def as_text(plan: Plan) -> str:
    """Return the plan as a tree for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield headline(plan)
    for one in plan.refused:
        for cause in one.causes:
            yield f"  {cause.get('field') or ''}: {cause.get('message') or ''}"
    for rollout in plan.rollouts:
        yield ""
        yield from _rollout(rollout)
    replaced = {t.old for t in plan.replaced} | {t.new for t in plan.replaced}
    yield from _objects("Created", [t for t in plan.created if t.name not in replaced])
    yield from _objects("Changed", plan.changed)
    yield from _objects("Deleted", [t for t in plan.deleted if t.name not in replaced])
    if plan.clusters:
        yield from ["", "Clusters"]
        yield from (f"  {line}" for line in map(_cluster, plan.clusters))
    if plan.waits:
        yield from ["", "Waits"]
        yield from _cut([_wait(w) for w in plan.waits])
    if plan.hooks:
        yield from ["", "Runtime extensions"]
        yield from _cut([f"{_clock(h.at)}  {h.hook}: {h.handler}{'  (answer assumed)' if h.assumed else ''}" for h in plan.hooks])
    if plan.stuck:
        yield from ["", "Does not converge"]
        yield from _cut([f"{s.object}: {s.why}" for s in plan.stuck])
        yield from (f"  explain: {verdict}" for verdict in dict.fromkeys(s.verdict for s in plan.stuck if s.verdict))
    if plan.denied:
        yield from ["", "Denied by policy", *(f"  {text}" for text in plan.denied)]
    if plan.notes:
        yield from ["", "Notes"]
        yield from _cut(plan.notes)


def _cluster(effects: Json) -> str:
    counts = [f"{effects[what]} {what}" for what in ("replaced", "created", "changed", "deleted") if effects[what]]
    text = f"{effects['cluster']}: {', '.join(counts) or 'nothing'}"
    return "; ".join([text, *(f"does not converge: {why}" for why in effects["notConverging"][:1])])


def _rollout(rollout: Rollout) -> Iterator[str]:
    numbers = f"{rollout.desired_before} -> {rollout.desired_after} replicas, " if rollout.desired_before != rollout.desired_after else ""
    effect = f"{numbers}at most {rollout.surge} more and {rollout.unavailable} fewer available than now"
    yield f"{rollout.owner}: {_count(rollout)}; {effect}"
    yield from (f"  because: {reason}" for reason in rollout.reasons)
    yield from _cut([f"  {_field(f)}" for f in rollout.fields])
    yield from _cut([_turn(t) for t in rollout.turns])


def _count(rollout: Rollout) -> str:
    added, removed = sum(not t.old for t in rollout.turns), sum(not t.new for t in rollout.turns)
    parts = [(len(rollout.replaced), "replaced"), (added, "added"), (removed, "removed")]
    return ", ".join(f"{counted(n, 'Machine')} {what}" for n, what in parts if n)


def _turn(turn: Turn) -> str:
    old, new = _short(turn.old), _short(turn.new)
    text = f"-/+ {old} -> a new Machine" if turn.old and turn.new else f"+   {new}" if turn.new else f"-   {old}"
    until = "does not end" if turn.ended is None else _clock(turn.ended)
    return f"{text}  ({_clock(turn.started)} to {until})" if turn.ended is not None else f"{text}  ({_clock(turn.started)}, {until})"


def _objects(title: str, listed: Sequence[Touched]) -> Iterator[str]:
    if not listed:
        return
    yield from ["", title]
    for one in listed[:MOST_SHOWN]:
        parts = f" with {counted(len(one.parts), 'object')}" if one.parts else ""
        yield f"  {one.name}{parts}{'  (happens without the change, too)' if one.anyway else ''}"
        yield from (f"    {_field(f)}" for f in one.fields[:MOST_SHOWN])
        if len(one.fields) > MOST_SHOWN:
            yield f"    ... {len(one.fields) - MOST_SHOWN} more fields"
    if len(listed) > MOST_SHOWN:
        yield f"  ... {len(listed) - MOST_SHOWN} more"


def _field(field: Field) -> str:
    return f"{field.path}: {_value(field.old)} -> {_value(field.new)}"


def _value(value: Any) -> str:
    if value is ABSENT:
        return "(none)"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split()) if text else '""'
    return f"{text[:MOST_VALUE]}..." if len(text) > MOST_VALUE else text


def _wait(wait: Wait) -> str:
    until = "never ends" if wait.until is None else f"until {_clock(wait.until)}"
    return f"{_TITLES[wait.kind]}: {wait.object} from {_clock(wait.since)}, {until}: {' '.join(wait.why.split())}"


def _cut(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:MOST_SHOWN])
    if len(lines) > MOST_SHOWN:
        yield f"  ... {len(lines) - MOST_SHOWN} more"


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:02}:{rest % 60:02}"


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def as_markdown(plan: Plan, title: str = "Plan") -> str:
    """Return the plan as a comment for a pull request."""
    lines: list[str] = []
    for line in _markdown(plan, title):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)


def _markdown(plan: Plan, title: str) -> Iterator[str]:
    yield from [f"### {title}: {_escaped(headline(plan))}", ""]
    for text in plan.denied:
        yield f"- :no_entry: denied by policy: {_escaped(text)}"
    for refused in plan.refused:
        yield f"- `{refused.object}`: {_escaped(refused.message)}"
        yield from (f"  - `{cause.get('field') or ''}`: {_escaped(str(cause.get('message') or ''))}" for cause in refused.causes)
    if plan.rollouts:
        yield from ["", "| Machines of | What | Because | More / fewer available, at most |", "|---|---|---|---|"]
        for rollout in plan.rollouts:
            why = "<br>".join(_escaped(text) for text in (*rollout.reasons, *map(_field, rollout.fields[:MOST_SHOWN])))
            yield f"| `{rollout.owner}` | {_count(rollout)} | {why} | {rollout.surge} / {rollout.unavailable} |"
    for stuck in plan.stuck[:MOST_SHOWN]:
        yield f"- :warning: does not converge: `{stuck.object}` {_escaped(stuck.why)}"
    for wait in plan.waits[:MOST_SHOWN]:
        if wait.kind == "drain":
            yield f"- :hourglass: {_escaped(_wait(wait))}"
    if plan.clusters:
        yield from ["", "| Cluster | Replaced | Created | Changed | Deleted | Does not converge |", "|---|---|---|---|---|---|"]
        for effects in plan.clusters:
            counts = " | ".join(str(effects[what]) for what in ("replaced", "created", "changed", "deleted"))
            yield f"| `{effects['cluster']}` | {counts} | {_escaped('; '.join(effects['notConverging'][:1]))} |"
    if plan.created or plan.changed or plan.deleted:
        yield from ["", "<details><summary>Objects</summary>", "", "```diff"]
        yield from (f"+ {t.name}" for t in plan.created)
        for one in plan.changed:
            yield f"! {one.name}"
            yield from (f"    {_field(f)}".replace("```", "'''") for f in one.fields[:MOST_SHOWN])
        yield from (f"- {t.name}" for t in plan.deleted)
        yield from ["```", "", "</details>"]
    if plan.notes:
        yield from ["", *(f"- {_escaped(note)}" for note in plan.notes[:MOST_SHOWN])]


def _escaped(text: str) -> str:
    flat = " ".join(text.split())
    for character in "\\`*_|<>[]":
        flat = flat.replace(character, f"\\{character}")
    return flat
