"""The changes of a pass to the two condition lists, in a form that can be applied to any newer state of the object."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterwright.api.codec import convert, to_json
from clusterwright.api.meta import Condition, Json, Object, Struct, V1Beta1Condition
from clusterwright.conditions import ConditionConflict, patch_conditions, v1beta1

CONDITION_PATHS: tuple[tuple[str, ...], ...] = (("conditions",), ("deprecated", "v1beta1", "conditions"))
"""The paths of the lists, below `status`."""


__all__ = ["CONDITION_PATHS", "ConditionChange", "ConditionConflict"]


@dataclass(frozen=True, slots=True)
class _ListChange:
    path: tuple[str, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    owned: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """The change of both lists; `None` stands for no change at all."""

    lists: tuple[_ListChange, ...]
    now: datetime

    @staticmethod
    def between(
        before: Object, after: Object, owned: Collection[str], owned_v1beta1: Collection[str], now: datetime
    ) -> ConditionChange | None:
        """Return the changes from `before` to `after`."""
        lists: list[_ListChange] = []
        for path, own in zip(CONDITION_PATHS, (owned, owned_v1beta1), strict=True):
            was, wanted = _conditions(before, path), _conditions(after, path)
            if was != wanted:
                lists.append(_ListChange(path, was, wanted, frozenset(own)))
        return ConditionChange(tuple(lists), now) if lists else None

    def lay_over(self, latest: Mapping[str, Any], status_patch: Json) -> bool:
        """Put the merged lists into `status_patch` if they differ from those in `latest`; return whether any did.

        Raises ConditionConflict.
        """
        changed = False
        for change in self.lists:
            raw = _at(latest.get("status"), change.path)
            raw_items: list[Any] = raw if isinstance(raw, list) else []
            merged = self._merged(change, raw_items)
            if merged is None:
                continue
            target = status_patch
            for step in change.path[:-1]:
                target = target.setdefault(step, {})
            target["conditions"] = [_over(to_json(item), raw_items) for item in merged] or None
            changed = True
        return changed

    def _merged(self, change: _ListChange, raw_items: list[Any]) -> tuple[Struct, ...] | None:
        """Return the merged list; None if nothing changes."""
        merged: tuple[Struct, ...]
        present: tuple[Struct, ...]
        if change.path == CONDITION_PATHS[0]:
            present = latest = tuple(convert(item, Condition) for item in raw_items)
            merged = patch_conditions(change.before, change.after, latest, now=self.now, owned=change.owned)
        else:
            present = latest_v1beta1 = tuple(convert(item, V1Beta1Condition) for item in raw_items)
            merged = v1beta1.patch_conditions(change.before, change.after, latest_v1beta1, now=self.now, owned=change.owned)
        return None if merged == present else merged


def _conditions(obj: Object, path: tuple[str, ...]) -> tuple[Any, ...]:
    value: Any = getattr(obj, "status", None)
    for step in path:
        value = getattr(value, step, None)
    return tuple(value) if value else ()


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _over(item: Json, raw_items: Sequence[Any]) -> Json:
    """Return the item, with unknown fields of the stored one."""
    known = {"type", "status", "severity", "observedGeneration", "lastTransitionTime", "reason", "message"}
    for raw in raw_items:
        if isinstance(raw, Mapping) and raw.get("type") == item["type"]:
            return {**{name: value for name, value in raw.items() if name not in known}, **item}
    return item
