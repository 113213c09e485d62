"""The deprecated v1beta1 conditions, with severities: the same functions with other rules.

A true condition has no reason; a false one has a reason and a severity. Merging groups by status and severity, and the worst group decides:
False/Error, False/Warning, False/Info, True, Unknown, and last False without a severity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Object, Unstructured, V1Beta1Condition
from clusterwright.conditions.foreign import parse_time
from clusterwright.conditions.patching import ConditionConflict

READY: Final = "Ready"
_RANK: Final = {("False", "Error"): 0, ("False", "Warning"): 1, ("False", "Info"): 2}


def get(conditions: Iterable[V1Beta1Condition], type: str) -> V1Beta1Condition | None:
    """Return the first condition of the type."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def is_true(conditions: Iterable[V1Beta1Condition], type: str) -> bool:
    """Return whether the type is reported and True."""
    found = get(conditions, type)
    return found is not None and found.status == "True"


def is_false(conditions: Iterable[V1Beta1Condition], type: str) -> bool:
    """Return whether the type is reported and False."""
    found = get(conditions, type)
    return found is not None and found.status == "False"


def true(type: str) -> V1Beta1Condition:
    """Return a true condition."""
    return V1Beta1Condition(type=type, status="True")


def false(type: str, reason: str, severity: str, message: str = "") -> V1Beta1Condition:
    """Return a false condition with its severity: Error, Warning or Info."""
    return V1Beta1Condition(type=type, status="False", reason=reason, severity=severity, message=message)


def sort_conditions(conditions: Iterable[V1Beta1Condition]) -> tuple[V1Beta1Condition, ...]:
    """Return conditions sorted: Ready first, the others by type."""
    return tuple(sorted(conditions, key=lambda c: (c.type != READY, c.type)))


def same_state(a: V1Beta1Condition, b: V1Beta1Condition) -> bool:
    """Return whether conditions are equal except for the time."""
    return (a.type, a.status, a.reason, a.severity, a.message) == (b.type, b.status, b.reason, b.severity, b.message)


def set_condition(
    conditions: tuple[V1Beta1Condition, ...], condition: V1Beta1Condition, *, now: datetime, keep_time: bool = False
) -> tuple[V1Beta1Condition, ...]:
    """Return the list with the condition in it, sorted.

    Any difference but the time moves the transition time to `now`; a condition that is new keeps the time it carries. With
    `keep_time`, the time moves only with the status, and a time that the condition carries counts.
    """
    now = now.astimezone(UTC).replace(microsecond=0)
    for n, old in enumerate(conditions):
        if old.type != condition.type:
            continue
        if same_state(old, condition):
            return sort_conditions(conditions)
        since: datetime | None = now
        if keep_time:
            since = condition.last_transition_time or (old.last_transition_time if old.status == condition.status else now)
        return sort_conditions((*conditions[:n], replace(condition, last_transition_time=since), *conditions[n + 1 :]))
    return sort_conditions((*conditions, replace(condition, last_transition_time=condition.last_transition_time or now)))


def delete_condition(conditions: tuple[V1Beta1Condition, ...], type: str) -> tuple[V1Beta1Condition, ...]:
    """Return the list without the type."""
    return tuple(c for c in conditions if c.type != type)


def of_foreign(obj: Unstructured) -> tuple[V1Beta1Condition, ...]:
    """Return the v1beta1 conditions of an object of any kind: the deprecated ones if it has a list of them, else `status.conditions`.

    A list with a malformed item does not count. A condition with an invalid status is left out.
    """
    lists = (obj.at("status", "deprecated", "v1beta1", "conditions"), obj.at("status", "conditions"))
    items = next((one for one in lists if isinstance(one, list | tuple) and all(_is_condition(item) for item in one)), ())
    found = []
    for item in items:
        if item is not None and item.get("status") in {"True", "False", "Unknown"}:
            texts = {f: item[f] for f in ("type", "severity", "reason", "message") if item.get(f)}
            since = parse_time(item.get("lastTransitionTime"))
            found.append(V1Beta1Condition(status=item["status"], last_transition_time=since, **texts))
    return tuple(found)


def _is_condition(item: Any) -> bool:
    if item is None:
        return True
    if not isinstance(item, dict):
        return False
    texts = (item.get(f) for f in ("type", "status", "severity", "reason", "message"))
    since = item.get("lastTransitionTime")
    return all(isinstance(t, str | None) for t in texts) and (since is None or parse_time(since) is not None)


def mirror(source: Iterable[V1Beta1Condition], target: str, fallback: V1Beta1Condition | None = None) -> V1Beta1Condition | None:
    """Return the source's Ready as `target`; else the fallback, else None: leave the target alone."""
    found = get(source, READY)
    if found is not None:
        return replace(found, type=target)
    return replace(fallback, type=target) if fallback is not None else None


@dataclass(frozen=True, slots=True)
class Located:
    """A condition with its reporter; `negative` if True is the bad status."""

    kind: str
    name: str
    condition: V1Beta1Condition | None
    negative: bool = False

    @property
    def status(self) -> str:
        """Return the status, inverted for negative polarity."""
        given = self.condition.status if self.condition else ""
        return {"True": "False", "False": "True"}.get(given, given) if self.negative else given


def reporter_conditions(obj: Object) -> tuple[V1Beta1Condition, ...]:
    """Return the v1beta1 conditions of a typed object."""
    status: Any = getattr(obj, "status", None)
    old: Any = getattr(getattr(status, "deprecated", None), "v1beta1", None)
    return getattr(old, "conditions", None) or ()


def merge(
    located: Sequence[Located], target: str, *, types: Sequence[str] = (), steps: int | None = None, source_ref: bool = False
) -> V1Beta1Condition | None:
    """Return the status and texts of the worst group; None if there are no conditions.

    `types`: the order in which reasons count within the group. `steps`: the message becomes `N of <steps> completed`. `source_ref`: the
    reason names the reporter.
    """
    groups: dict[tuple[str, str], list[Located]] = {}
    for one in located:
        if one.condition is not None:
            groups.setdefault((one.status, one.condition.severity), []).append(one)
    if not groups:
        return None
    ranked = sorted(groups, key=_rank)
    status, severity = ranked[0]
    if status == "True":
        return true(target)
    top = sorted(groups[ranked[0]], key=lambda o: (_type(o) != READY, _type(o), o.name))
    speaker = top[0]
    if len(top) > 1:
        speaker = next((o for t in types for o in top if _type(o) == t), top[0])
    said = speaker.condition or V1Beta1Condition()
    reason = said.reason
    if source_ref and "@" not in reason:
        reason = f"{reason} @ {speaker.kind}/{speaker.name}"
    message = said.message
    if steps is not None:
        done = len(groups.get(("True", ""), ()))
        message = f"{done} of {steps} completed"
    if status != "False":
        return V1Beta1Condition(type=target, status="Unknown", reason=reason, message=message)
    return V1Beta1Condition(type=target, status="False", severity=severity, reason=reason, message=message)


def _type(located: Located) -> str:
    return located.condition.type if located.condition else ""


def _rank(group: tuple[str, str]) -> int:
    status, _ = group
    if status == "True":
        return 3
    if status == "Unknown":
        return 4
    return _RANK.get(group, 99)


def summary(
    kind: str,
    name: str,
    conditions: Iterable[V1Beta1Condition],
    *,
    types: Sequence[str] | None = None,
    negative: Collection[str] = (),
    step_counter: bool = False,
    step_counter_if_only: Sequence[str] | None = None,
    source_ref: bool = False,
) -> V1Beta1Condition | None:
    """Return Ready as the summary of the given types (default: all except Ready) that exist; None if none does.

    `step_counter`: the message counts the steps done. `step_counter_if_only`: but only while nothing else is reported.
    """
    scope = [c for c in conditions if c.type != READY and (types is None or c.type in types)]
    steps: int | None = None
    if step_counter and (step_counter_if_only is None or all(c.type in step_counter_if_only for c in scope)):
        steps = len(scope) if types is None else len(types)
        steps = steps if step_counter_if_only is None else len(step_counter_if_only)
    located = [Located(kind, name, c, c.type in negative) for c in scope]
    return merge(located, READY, types=types or (), steps=steps, source_ref=source_ref)


def aggregate(
    reporters: Sequence[tuple[str, str, Iterable[V1Beta1Condition]]], target: str, *, step_counter: bool = True, source_ref: bool = False
) -> V1Beta1Condition | None:
    """Return `target` as the aggregate of Ready over (kind, name, conditions); None if no object reports it."""
    located = [Located(kind, name, get(conditions, READY)) for kind, name, conditions in reporters]
    return merge(located, target, steps=len(reporters) if step_counter else None, source_ref=source_ref)


def patch_conditions(
    before: tuple[V1Beta1Condition, ...],
    after: tuple[V1Beta1Condition, ...],
    latest: tuple[V1Beta1Condition, ...],
    *,
    now: datetime,
    owned: Collection[str] = (),
    force: bool = False,
) -> tuple[V1Beta1Condition, ...]:
    """Run a three-way merge as `conditions.patch_conditions`; raises ConditionConflict."""
    merged = latest
    for condition in after:
        old = get(before, condition.type)
        if old == condition:
            continue
        there = get(merged, condition.type)
        if not (force or condition.type in owned):
            if old is None and there is not None:
                if not same_state(there, condition):
                    raise ConditionConflict(condition.type, "modified", "Add")
                continue
            if old is not None and there is None:
                raise ConditionConflict(condition.type, "deleted", "Change")
            if old is not None and there is not None and there != old:
                if not same_state(there, condition):
                    raise ConditionConflict(condition.type, "modified", "Change")
                continue
        merged = set_condition(merged, condition, now=now)
    for old in before:
        if get(after, old.type) is not None:
            continue
        there = get(merged, old.type)
        if not (force or old.type in owned) and there is not None and not same_state(there, old):
            raise ConditionConflict(old.type, "modified", "Remove")
        merged = delete_condition(merged, old.type)
    return merged
