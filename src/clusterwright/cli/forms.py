"""The forms in which `get` prints objects: JSON, YAML, names, paths of values, and columns of the caller's choice. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from clusterwright.cli import jsonpath
from clusterwright.cli.errors import Usage
from clusterwright.cli.tabular import table

TABLES: Final = frozenset({"table", "wide"})
"""Forms that the API server makes."""
Documents = Sequence[Mapping[str, Any]]
Form = Callable[[Documents, bool], str]
"""Returns the text of objects. The second argument: one object was named, so that it is not put into a list."""


def _json(objects: Documents, is_one: bool) -> str:
    return msgspec.json.format(msgspec.json.encode(_document(objects, is_one))).decode() + "\n"


def _yaml(objects: Documents, is_one: bool) -> str:
    from clusterwright.api.yamlwriter import dump  # only now: other forms are to be quick

    return dump(_document(objects, is_one))


def _names(objects: Documents, is_one: bool) -> str:
    def name(obj: Mapping[str, Any]) -> str:
        group = obj["apiVersion"].rpartition("/")[0]
        return f"{obj['kind'].lower()}{group and f'.{group}'}/{obj['metadata']['name']}\n"

    return "".join(map(name, objects))


def _document(objects: Documents, is_one: bool) -> Any:
    return objects[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": objects}


_PLAIN: Final[Mapping[str, Form]] = {"json": _json, "yaml": _yaml, "name": _names}


def form(text: str) -> Form | None:
    """Return the form that `-o` names, or None for tables of the API server. Raises Usage."""
    if text in TABLES:
        return None
    if text in _PLAIN:
        return _PLAIN[text]
    word, _, rest = text.partition("=")
    try:
        if word == "jsonpath" and rest:
            return _values(rest)
        if word == "custom-columns" and rest:
            return _columns(rest)
    except jsonpath.BadPath as error:
        raise Usage(f"-o {word}: {error}") from None
    raise Usage(f"-o {text}: table, wide, json, yaml, name, jsonpath=PATH or custom-columns=HEAD:PATH,... is expected")


def _values(path: str) -> Form:
    """Return the form that prints the values at a path in the document, as `kubectl -o jsonpath` does."""
    find = jsonpath.compiled(path)
    return lambda objects, is_one: " ".join(map(_text, find(_document(list(objects), is_one)))) + "\n"


def _columns(text: str) -> Form:
    """Return the form that prints a table of values, `HEAD:PATH,...`."""
    columns = []
    for part in text.split(","):
        head, colon, path = part.partition(":")
        if not head or not colon or not path:
            raise Usage(f"-o custom-columns: {part!r}: HEAD:PATH is expected, for example NAME:.metadata.name")
        columns.append((head, jsonpath.compiled(path)))

    def shown(objects: Documents, is_one: bool) -> str:
        rows = [[",".join(map(_text, found)) or "<none>" for _, find in columns if (found := find(obj)) is not None] for obj in objects]
        return f"{table([[head for head, _ in columns], *rows])}\n"

    return shown


def _text(value: Any) -> str:
    return jsonpath.shown(value) if not isinstance(value, dict | list) else msgspec.json.encode(value).decode()
