"""Tables and partial metadata: the output of `kubectl get`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import Column, KindHandler
from clusterwright.apiserver.status import bad_request
from clusterwright.cel.formatting import to_string
from clusterwright.golang.numbers import parse_int
from clusterwright.golang.quoting import quote

NAME: Final = Column(
    "Name",
    "string",
    "name",
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request "
    "the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration "
    "definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
)


def partial(obj: Json) -> Json:
    """Return the meta.k8s.io/v1 PartialObjectMetadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata") or {}}


def table(handler: KindHandler, items: Sequence[Json], *, now: datetime, include: str, list_metadata: Json, columns: bool = True) -> Json:
    """Return a meta.k8s.io/v1 Table. `include` selects what rows contain: Metadata, Object or None; `columns`: describe the columns."""
    if include not in ("", "Metadata", "Object", "None"):
        raise bad_request(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {quote(include)}: must be "
            f"'Metadata', 'Object', 'None', or empty"
        )
    cells = getattr(handler, "cells", None)
    rows = []
    for item in items:
        shown: Any = item
        if include == "None":
            shown = None
        elif include != "Object":
            shown = partial(item)
        rows.append({"cells": cells(item, now) if cells is not None else _cells(handler.columns, item, now), "object": shown})
    out: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata}
    shown_columns = handler.columns if any(c.format == "name" for c in handler.columns) else (NAME, *handler.columns)
    out["columnDefinitions"] = [_definition(c) for c in shown_columns] if columns else None
    # what prints names and nothing but the time of creation makes no list where there is nothing to list
    out["rows"] = rows or (None if [c.name for c in shown_columns] == ["Name", "Created At"] else [])
    return out


def _definition(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _cells(columns: Sequence[Column], obj: Json, now: datetime) -> list[Any]:
    out: list[Any] = [(obj.get("metadata") or {}).get("name", "")]
    out.extend(_cell(c, obj, now) for c in columns)
    return out


def _cell(column: Column, obj: Json, now: datetime) -> Any:
    if column.type == "date" and column.json_path == ".metadata.creationTimestamp":
        return age((obj.get("metadata") or {}).get("creationTimestamp"), now)
    try:
        found = json_path(column.json_path)(obj)
    except PathError:
        return None
    if not found:
        return None
    value = found[0] if column.type != "string" or len(found) == 1 else None
    match column.type:
        case "integer":
            if type(value) is int:
                return value
            if type(value) is float:
                return int(value)
            try:
                return parse_int(value, 64) if isinstance(value, str) else None
            except ValueError:
                return None
        case "number":
            return value if isinstance(value, (int, float)) and type(value) is not bool else None
        case "boolean":
            return value if type(value) is bool else None
        case "date":
            return age(value, now) if isinstance(value, str) else "<unknown>"
    texts = [_text(v) for v in found]
    return ",".join(texts) if len(texts) > 1 else texts[0]


def _text(value: Any) -> str:
    """Return a value in the form of a string column."""
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        import msgspec

        return msgspec.json.encode(value, order="sorted").decode()
    return to_string(value)


def age(timestamp: Any, now: datetime) -> str:
    """Return an age in kubectl's form: `5s`, `3m20s`, `2h`, `4d`."""
    if not isinstance(timestamp, str):
        return "<unknown>"
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return human_duration(int((now - then).total_seconds()))


def human_duration(seconds: int) -> str:
    """Return a duration in at most two units."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        days, rest = divmod(hours, 24)
        return f"{days}d{rest}h" if rest else f"{days}d"
    days = hours // 24
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years, rest = divmod(days, 365)
    if hours < 24 * 365 * 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


# ---------------------------------------------------------------- JSONPath


class PathError(Exception):
    """A path cannot be parsed or followed."""


_STEP: Final = re.compile(
    r"""\.\.?(?P<name>(?:\\.|[^.\[\]\\'"])+)
      |\[(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\]
      |\[\?\((?P<filter>.*?)\)\]
      |\[(?P<index>[-\d:*,]+)\]""",
    re.VERBOSE,
)
_FILTER: Final = re.compile(r"""\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>'[^']*'|"[^"]*"|[^\s]+))?\s*""")


@lru_cache(maxsize=1024)
def json_path(path: str) -> Any:
    """Return a function that finds all values at a JSONPath of kubectl's dialect; missing keys yield nothing."""
    steps: list[Any] = []
    at = 0
    text = path if path.startswith((".", "[")) else "." + path
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            if text[at:] == ".":
                break
            raise PathError(path)
        at = found.end()
        if found["name"] is not None:
            name = re.sub(r"\\(.)", r"\1", found["name"])
            steps.append(_every if name == "*" else _member(name))
        elif found["quoted"] is not None:
            steps.append(_member(re.sub(r"\\(.)", r"\1", found["quoted"])))
        elif found["filter"] is not None:
            steps.append(_filtered(found["filter"]))
        else:
            steps.append(_indexed(found["index"]))

    def find(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = [v for value in values for v in step(value)]
        return values

    return find


def _member(name: str) -> Any:
    return lambda value: [value[name]] if type(value) is dict and name in value else []


def _every(value: Any) -> list[Any]:
    return list(value) if type(value) is list else list(value.values()) if type(value) is dict else []


def _number(text: str) -> int:
    try:
        return parse_int(text, 64)
    except ValueError:
        raise PathError(text) from None


def _indexed(text: str) -> Any:
    if text == "*":
        return _every
    if ":" in text:
        parts = [_number(p) if p else None for p in text.split(":")]
        if 0 in parts[2:]:
            raise PathError(text)
        return lambda value: value[slice(*parts)] if type(value) is list else []
    wanted = [_number(p) for p in text.split(",")]
    return lambda value: [value[i] for i in wanted if type(value) is list and -len(value) <= i < len(value)]


def _filtered(text: str) -> Any:
    found = _FILTER.fullmatch(text)
    if found is None:
        raise PathError(text)
    inner = json_path(found["path"] or ".")
    op, raw = found["op"], found["value"]
    wanted: Any = raw
    if raw is not None:
        if raw[0] in "'\"":
            wanted = raw[1:-1]
        elif raw in ("true", "false"):
            wanted = raw == "true"
        else:
            try:
                wanted = float(raw) if "." in raw else int(raw)
            except ValueError:
                wanted = raw

    def keep(item: Any) -> bool:
        values = inner(item)
        if not values:
            return False
        if op is None:
            return True
        value = values[0]
        if op == "==":
            return bool(value == wanted)
        if op == "!=":
            return bool(value != wanted)
        try:
            return bool({"<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted}[op])
        except TypeError:
            return False

    return lambda value: [v for v in (value if type(value) is list else _every(value)) if keep(v)]
