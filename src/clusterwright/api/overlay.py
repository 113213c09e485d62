"""Apply changes of a model to the raw object that it was read from.

A controller changes known fields. Its patch must contain only those changes: unknown fields, at any depth and inside list items, stay as
they are. A cleared field is removed with its whole content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.meta import Json

KEYS: tuple[tuple[str, ...], ...] = (
    ("uid",),
    ("type",),
    ("conditionType",),
    ("name",),
    ("key", "effect"),
    ("class",),
    ("clusterResourceSetName",),
    ("type", "address"),
    ("kind", "name"),
    ("path",),
)
"""Fields that identify list items, tried in this order; the first that is present and unique on both sides counts."""


def merge_patch(raw: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """Return the JSON merge patch that turns `before` into `after` on the wire, where `before` is the model of `raw`.

    It is empty if nothing changed. Lists are sent whole, each item with the unknown fields of its raw item. `spec` and `status` themselves
    are never cleared, only known fields in them.
    """
    kept: Json = {part: {} for part in ("spec", "status") if isinstance(before.get(part), dict) and part not in after}
    return _diff(raw, before, {**after, **kept} if kept else after)


def _diff(raw: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    patch: Json = {}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
            continue
        old = before[key]
        if old == value:
            continue
        stored = raw.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and isinstance(stored, Mapping):
            nested = _diff(stored, old, value)
            if nested:
                patch[key] = nested
        elif isinstance(value, list) and isinstance(old, list) and isinstance(stored, Sequence):
            patch[key] = _merge_list(stored, old, value)
        else:
            patch[key] = value
    for key in before:
        if key not in after and key in raw:
            patch[key] = None
    return patch


def _merge_list(raw: Sequence[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Return the items of `after`, each merged into its raw item."""
    if len(raw) != len(before):  # not the list that was read; nothing can be matched
        return after
    origins = _origins(before, after)
    return [
        item if origin is None or not isinstance(item, dict) else _lay_over(raw[origin], before[origin], item)
        for item, origin in zip(after, origins, strict=True)
    ]


def _lay_over(raw: Any, before: Any, after: Json) -> Any:
    if not isinstance(raw, Mapping) or not isinstance(before, Mapping):
        return after
    return merge_patched(raw, _diff(raw, before, after))


def _origins(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return for each item of `after` the index of its original in `before`, if any."""
    key = _key(before, after)
    if key is not None:
        index = {tuple(item[part] for part in key): position for position, item in enumerate(before)}
        return [index.get(tuple(item[part] for part in key)) for item in after]
    origins: list[int | None] = [None] * len(after)
    free = list(range(len(before)))
    for position, item in enumerate(after):
        match = next((candidate for candidate in free if before[candidate] == item), None)
        if match is not None:
            origins[position] = match
            free.remove(match)
    if len(before) == len(after):  # items changed in place
        for position in free:
            if origins[position] is None:
                origins[position] = position
    return origins


def _key(before: list[Any], after: list[Any]) -> tuple[str, ...] | None:
    return next((key for key in KEYS if _unique(before, key) and _unique(after, key)), None)


def _unique(items: list[Any], key: tuple[str, ...]) -> bool:
    seen: set[tuple[Any, ...]] = set()
    for item in items:
        if not isinstance(item, dict):
            return False
        values = tuple(item.get(part) for part in key)
        if not all(isinstance(value, str) for value in values) or values in seen:
            return False
        seen.add(values)
    return True
