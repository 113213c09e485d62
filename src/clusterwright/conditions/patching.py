"""Three-way merge of condition lists: apply our changes to the current list."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from clusterwright.api.meta import Condition
from clusterwright.conditions.lists import delete_condition, get, set_condition, sort_conditions


class ConditionConflict(Exception):
    """Another process changed a condition that we also changed and do not own."""

    def __init__(self, type: str, what: str, operation: str) -> None:
        super().__init__(
            f'error patching conditions: The condition "{type}" was {what} by a different process and this caused a '
            f"merge/{operation}Condition conflict"
        )


def patch_conditions(
    before: tuple[Condition, ...],
    after: tuple[Condition, ...],
    latest: tuple[Condition, ...],
    *,
    now: datetime,
    owned: Collection[str] = (),
    force: bool = False,
) -> tuple[Condition, ...]:
    """Return `latest` with the changes from `before` to `after`, sorted if there are any; raises ConditionConflict.

    For `owned` types (all of them with `force`) our value takes precedence. For others, an equal change made elsewhere is kept with its
    time, and a different one is a conflict. Types that we did not change stay as they are in `latest`.
    """
    merged, changed = latest, False
    for condition in after:
        old = get(before, condition.type)
        if old == condition:
            continue
        changed = True
        there = get(merged, condition.type)
        if not (force or condition.type in owned):
            if old is None and there is not None:
                if not _same_state(there, condition):
                    raise ConditionConflict(condition.type, "modified", "Add")
                continue
            if old is not None and there is None:
                raise ConditionConflict(condition.type, "deleted", "Change")
            if old is not None and there is not None and there != old:
                if not _same_state(there, condition):
                    raise ConditionConflict(condition.type, "modified", "Change")
                continue
        merged = set_condition(merged, condition, generation=None, now=now)
    for old in before:
        if get(after, old.type) is not None:
            continue
        changed = True
        there = get(merged, old.type)
        if not (force or old.type in owned) and there is not None and not _same_state(there, old):
            raise ConditionConflict(old.type, "modified", "Remove")
        merged = delete_condition(merged, old.type)
    return sort_conditions(merged) if changed else latest


def _same_state(a: Condition, b: Condition) -> bool:
    return (a.status, a.observed_generation, a.reason, a.message) == (b.status, b.observed_generation, b.reason, b.message)
