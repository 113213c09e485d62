"""Compare objects before and after: which fields differ, and how. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.offline.record import redacted
from clusterwright.plan.changes import LAST_APPLIED

ABSENT: Final = object()
_BOOKKEEPING: Final = frozenset(
    {
        "managedFields",
        "resourceVersion",
        "generation",
        "uid",
        "creationTimestamp",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
_COPIES: Final = frozenset({LAST_APPLIED})
_HIDDEN: Final = "(secret)"
MOST_FIELDS: Final = 200
"""The most fields of one object that are listed."""
_KEYS: Final = ("name", "type", "key", "topologyName", "uid")
"""The fields that identify an item of a list, best first."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that differs; ABSENT as a value: it is not there."""

    path: str
    old: Any
    new: Any

    def to_json(self) -> Json:
        """Return the form of the schema: an absent value is left out."""
        made: Json = {"path": self.path}
        if self.old is not ABSENT:
            made["old"] = self.old
        if self.new is not ABSENT:
            made["new"] = self.new
        return made


def fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of two states of an object that differ, without status and what servers count. Secret values are not shown."""
    if before.get("kind") == "Secret":
        return tuple(_keys_of_secret(before, after))
    found = []
    for field in _differing(_compared(before), _compared(after), _compared(redacted(before)), _compared(redacted(after)), ""):
        found.append(field)
        if len(found) == MOST_FIELDS:
            break
    return tuple(found)


def _keys_of_secret(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Field]:
    old, new = before.get("data") or {}, after.get("data") or {}
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield Field(f"data.{key}", _HIDDEN if key in old else ABSENT, _HIDDEN if key in new else ABSENT)


def _compared(obj: Mapping[str, Any]) -> Json:
    made = {k: v for k, v in obj.items() if k not in {"status", "metadata", "apiVersion", "kind"}}
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k not in _BOOKKEEPING}
    if isinstance(metadata.get("annotations"), Mapping):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k not in _COPIES}
    return {"metadata": metadata, **made}


def _differing(before: Any, after: Any, old: Any, new: Any, path: str) -> Iterator[Field]:
    """Yield the fields that differ between `before` and `after`, with the values of `old` and `new`, where secrets are redacted."""
    if before == after or (before in ({}, []) and after is ABSENT) or (before is ABSENT and after in ({}, [])):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _differing(before.get(key, ABSENT), after.get(key, ABSENT), _at(old, key), _at(new, key), _joined(path, key))
    elif isinstance(before, list) and isinstance(after, list):
        key = next((k for k in _KEYS if _identifies(k, before) and _identifies(k, after)), None)
        for name, i, j in _pairs(before, after, key):
            inner = f"{path}[{name}]" if key is None else f"{path}[{key}={name}]"
            yield from _differing(_item(before, i), _item(after, j), _item(old, i), _item(new, j), inner)
    else:
        yield Field(path, old, new)


def _pairs(before: list[Any], after: list[Any], key: str | None) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield the items that belong together: their name or number, and their places in both lists."""
    if key is None:
        for index in range(max(len(before), len(after))):
            yield str(index), index, index
        return
    olds, news = ({str(item[key]): index for index, item in enumerate(items)} for items in (before, after))
    for name in dict.fromkeys([*olds, *news]):
        yield name, olds.get(name), news.get(name)


def _item(items: Any, index: int | None) -> Any:
    return items[index] if isinstance(items, list) and index is not None and index < len(items) else ABSENT


def _at(value: Any, key: str) -> Any:
    return value.get(key, ABSENT) if isinstance(value, Mapping) else ABSENT


def _identifies(key: str, items: list[Any]) -> bool:
    return all(isinstance(i, Mapping) and isinstance(i.get(key), str) for i in items) and len({i[key] for i in items}) == len(items)


def _joined(path: str, key: str) -> str:
    if "." in key or "/" in key:
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
