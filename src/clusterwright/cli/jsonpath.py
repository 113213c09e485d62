"""The part of kubectl's JSONPath that selects values: `{.a.b}`, `['a.b']`, `[0]`, `[-1]`, `[*]`, `[?(@.type=="Ready")]`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]{}])+)
    |\[(?P<index>-?\d+)\]
    |\[['"](?P<key>[^'"]+)['"]\]
    |(?P<all>\[\*\]|\.\*)
    |\[\?\(\s*@\.(?P<field>[\w./\\-]+)\s*(?P<how>==|!=)\s*["']?(?P<value>[^"')]*)["']?\s*\)\]""",
    re.VERBOSE,
)


class BadPath(ValueError):
    """The text is not a JSONPath of the supported subset."""


def compiled(text: str) -> Callable[[Any], list[Any]]:
    """Return a function that finds the values that a path selects; raises BadPath."""
    path = text.strip()
    path = path[1:-1].strip() if path.startswith("{") and path.endswith("}") else path
    path = path.removeprefix("$")
    if path and path[0] not in ".[":
        path = f".{path}"
    steps: list[re.Match[str]] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise BadPath(f"{text!r}: {path[at:]!r} is not supported")
        steps.append(found)
        at = found.end()
    if not steps:
        raise BadPath(f"{text!r} selects nothing")

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [below for above in values for below in _below(above, step)]
        return values

    return find


def _below(value: Any, step: re.Match[str]) -> Iterable[Any]:
    groups = step.groupdict()
    if groups["name"] == "*" or groups["all"]:
        return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if groups["index"] is not None:
        index = int(groups["index"])
        return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else ()
    if groups["field"] is not None:
        is_equal = groups["how"] == "=="
        names = groups["field"].replace("\\.", "\0").split(".")
        return [item for item in value if (shown(_field(item, names)) == groups["value"]) is is_equal] if isinstance(value, list) else ()
    key = groups["key"] if groups["key"] is not None else re.sub(r"\\(.)", r"\1", groups["name"])
    return [value[key]] if isinstance(value, dict) and key in value else ()


def _field(item: Any, names: Iterable[str]) -> Any:
    for name in names:
        item = item.get(name.replace("\0", ".")) if isinstance(item, dict) else None
    return item


def shown(value: Any) -> str:
    """Return a value in readable form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
