"""Policies: what a plan must not do. A plan that cannot be made, or does not end, breaks every policy. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.golang import times
from clusterwright.plan.result import Plan

_FORM: Final = re.compile(r"(?P<word>[a-z-]+)(?:>(?P<limit>.+))?")
KNOWN: Final = ("replace", "delete", "control-plane-rollout", "unavailable>N", "duration>T")
MOST_NAMED: Final = 10
"""The most Machines that a text names."""


class BadPolicy(ValueError):
    """A rule cannot be understood; the text says what is expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a word, and a limit where it needs one."""

    word: str
    limit: float = 0.0
    text: str = ""


def parse(texts: Iterable[str]) -> list[Rule]:
    """Return the rules of `--deny`: each text has one or more, separated by `|` or `,`. Raises BadPolicy."""
    return [_rule(part.strip()) for text in texts for part in re.split(r"[|,]", text) if part.strip()]


def from_document(document: Any) -> list[Rule]:
    """Return the rules of a policy file, `deny: [replace, unavailable>1]`. Raises BadPolicy."""
    denied = document.get("deny") if isinstance(document, Mapping) else None
    if not isinstance(denied, list) or not all(isinstance(text, str) for text in denied) or set(document) != {"deny"}:
        raise BadPolicy(f"a policy has one field, deny: a list of {', '.join(KNOWN)}")
    return parse(denied)


def _rule(text: str) -> Rule:
    found = _FORM.fullmatch(text)
    word, limit = (found["word"], found["limit"]) if found is not None else ("", None)
    if word in {"replace", "delete", "control-plane-rollout"} and limit is None:
        return Rule(word, text=text)
    if word == "unavailable" and limit is not None and limit.isdecimal():
        return Rule(word, float(limit), text)
    if word == "duration" and limit is not None and (nanoseconds := times.parse_duration(limit)) is not None:
        return Rule(word, nanoseconds / 1e9, text)
    raise BadPolicy(f"--deny {text}: one of {', '.join(KNOWN)} is expected, with a number N and a duration T such as 30m")


def broken(plan: Plan, rules: Iterable[Rule]) -> list[str]:
    """Return how a plan breaks the rules: one text for each broken rule, empty if it keeps all."""
    return [f"{rule.text}: {why}" for rule in rules if (why := _why(plan, rule))]


def _why(plan: Plan, rule: Rule) -> str:
    if plan.refused:
        return "the change is refused, so nothing is known of what it would do"
    match rule.word:
        case "replace":
            return _named("these Machines would be replaced", [t.old for t in plan.replaced])
        case "delete":
            replaced = {t.old for t in plan.replaced}
            return _named("these objects would be deleted", [t.name for t in plan.deleted if t.name not in replaced and not t.anyway])
        case "control-plane-rollout":
            turns = [t.old for t in plan.replaced if t.owner.startswith("KubeadmControlPlane/") or "ControlPlane/" in t.owner]
            return _named("these Machines of control planes would be replaced", turns)
        case "unavailable":
            worst = [f"{r.unavailable} of {r.owner}" for r in plan.rollouts if r.unavailable > rule.limit]
            return f"Machines would be unavailable: {', '.join(worst)}" if worst else ""
        case _:
            if plan.duration.median is None:
                return "the change would not end"
            high = plan.duration.high if plan.duration.high is not None else plan.duration.median
            return f"it may take {high:.0f} s" if high > rule.limit else ""


def _named(text: str, names: list[str]) -> str:
    if not names:
        return ""
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{text}: {', '.join(names[:MOST_NAMED])}{rest}"
