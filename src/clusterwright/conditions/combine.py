"""Derive conditions from others: mirror one, aggregate one type over many objects, summarise many types of one object."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition
from clusterwright.conditions.lists import get
from clusterwright.conditions.merge import Named, Reporter, Strategy, merge

NOT_YET_REPORTED = "NotYetReported"


class NothingToMerge(ValueError):
    """There are no inputs, or the options contradict each other: a mistake of the caller."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """The status to report while the source does not report its condition."""

    status: str
    reason: str
    message: str = ""


def mirror(conditions: Iterable[Condition], type: str, *, target: str = "", fallback: Fallback | None = None) -> Condition:
    """Return the condition of that type as `target` (default: the same type), with its own transition time.

    If it is not reported, return the fallback, else Unknown/NotYetReported. For foreign objects, pass `conditions_of(obj)`, which may
    raise.
    """
    found = get(conditions, type)
    target = target or type
    if found is not None:
        return replace(found, type=target, observed_generation=0)
    if fallback is not None:
        return Condition(type=target, status=fallback.status, reason=fallback.reason, message=fallback.message)
    return Condition(type=target, status="Unknown", reason=NOT_YET_REPORTED, message=f"Condition {type} not yet reported")


def aggregate(
    reporters: Sequence[Reporter], type: str, *, target: str = "", negative: bool = False, strategy: Strategy | None = None
) -> Condition:
    """Return the condition of one type over many objects; an object that does not report it counts as Unknown.

    `negative`: the type (and so the result) has negative polarity. A `strategy` replaces all of that.
    """
    if not reporters:
        raise NothingToMerge("can't aggregate the conditions of no objects")
    if strategy is None:
        strategy = Strategy(negative=frozenset([type]) if negative else frozenset(), target_negative=negative)
    missing = Condition(type=type, status="Unknown", reason=NOT_YET_REPORTED, message=f"Condition {type} not yet reported")
    named = [Named(r.kind, r.name, get(r.conditions, type) or missing, r.control_plane) for r in reporters]
    status, reason, message = merge("Aggregate", named, [type], strategy)
    return Condition(type=target or type, status=status, reason=reason, message=message)


def summary(
    source: Reporter,
    types: Sequence[str],
    *,
    target: str,
    negative: Collection[str] = (),
    ignore_if_missing: Collection[str] = (),
    overrides: Sequence[Condition] = (),
    strategy: Strategy | None = None,
) -> Condition:
    """Return the condition of many types of one object; a type that is not reported counts as Unknown, unless it may be missing.

    `overrides` replace conditions of the source for this computation only; each must exist and be named once.
    """
    if not types:
        raise NothingToMerge("no condition types to summarize")
    if target in types:
        raise NothingToMerge(f"the summary {target} can't be one of its own inputs")
    overriding = {c.type: c for c in overrides}
    if len(overriding) != len(overrides):
        raise NothingToMerge("override conditions must be unique")
    for override in overrides:
        if get(source.conditions, override.type) is None:
            raise NothingToMerge(f"override condition {override.type} must exist in the source object")
    if strategy is None:
        strategy = Strategy(negative=frozenset(negative))
    named = [
        Named(source.kind, source.name, overriding.get(condition.type, condition), source.control_plane)
        for condition in source.conditions
        if condition.type in types
    ]
    reported = {n.condition.type for n in named}
    for type_ in types:
        if type_ not in reported and type_ not in ignore_if_missing:
            reported.add(type_)
            missing = Condition(type=type_, status="Unknown", reason=NOT_YET_REPORTED, message="Condition not yet reported")
            named.append(Named(source.kind, source.name, missing, source.control_plane))
    if not named:
        raise NothingToMerge("summary can't be performed when the list of conditions to be summarized is empty")
    status, reason, message = merge("Summary", named, types, strategy)
    return Condition(type=target, status=status, reason=reason, message=message)
