"""Ownership and merging of values: the structured-merge view of a schema."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from clusterwright.apiserver.schema.gotypes import json_fields, table
from clusterwright.apiserver.schema.structural import Node

SCALAR: Final = 0
LIST: Final = 1
MAP: Final = 2
ANY: Final = 3


class MergeType:
    """One node. A list has `keys` (map list), is a `set`, or is atomic; a map has `fields` and maybe an `element`."""

    __slots__ = ("_element", "_fields", "atomic", "defaults", "is_set", "keys", "kind", "scalar")

    def __init__(
        self, kind: int, *, atomic: bool = False, scalar: str = "untyped", is_set: bool = False, keys: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.atomic = atomic
        self.scalar = scalar
        self.is_set = is_set
        self.keys = keys
        self.defaults: dict[str, Any] = {}
        self._fields: Any = {}
        self._element: Any = None

    @property
    def fields(self) -> dict[str, MergeType]:
        """The named members."""
        fields: Any = self._fields  # looked at once: two threads may ask at a time
        if callable(fields):
            fields = self._fields = fields()
        found: dict[str, MergeType] = fields
        return found

    @property
    def element(self) -> MergeType | None:
        """The type of list items and of unnamed members."""
        element: Any = self._element
        if callable(element):
            element = self._element = element()
        found: MergeType | None = element
        return found

    def child(self, key: str) -> MergeType | None:
        """Return the type of a member."""
        fields: Any = self._fields  # not by way of the property: this is asked for every field of every write
        found: MergeType | None = (self.fields if callable(fields) else fields).get(key)
        return found or self.element


ANY_TYPE: Final = MergeType(ANY)
ANY_TYPE._element = ANY_TYPE
_STRING: Final = MergeType(SCALAR, scalar="string")
_NUMERIC: Final = MergeType(SCALAR, scalar="numeric")
_BOOLEAN: Final = MergeType(SCALAR, scalar="boolean")
_UNTYPED: Final = MergeType(SCALAR)
_SCALARS: Final = {"string": _STRING, "integer": _NUMERIC, "number": _NUMERIC, "boolean": _BOOLEAN}


def of_schema(node: Node, *, root: bool = False, is_open: bool = False) -> MergeType:
    """Return the merge type of a structural schema; within a schema that keeps unknown fields (`is_open`), members do too."""
    if node.int_or_string:
        return _UNTYPED
    is_open = is_open or node.preserve
    if node.type == "array":
        return _list_of(node, is_open)
    if node.type == "object" or node.properties or node.additional is not None:
        made = MergeType(MAP, atomic=node.map_type == "atomic")
        made._fields = {k: of_schema(c, is_open=is_open) for k, c in node.properties.items()}
        if root or node.embedded:
            made._fields.setdefault("apiVersion", _STRING)
            made._fields.setdefault("kind", _STRING)
            if root:
                made._fields["metadata"] = of_struct("meta.v1.ObjectMeta")
            else:
                made._fields.setdefault("metadata", ANY_TYPE)
        if node.additional is not None:
            made._element = of_schema(node.additional, is_open=is_open)
        elif is_open or node.additional_open or not node.properties:
            made._element = ANY_TYPE
        return made
    return _SCALARS.get(node.type, ANY_TYPE)


def _list_of(node: Node, is_open: bool) -> MergeType:
    if node.list_type == "map":
        made = MergeType(LIST, keys=node.keys)
        if node.items is not None:
            made.defaults = {
                k: node.items.properties[k].default
                for k in node.keys
                if k in node.items.properties and node.items.properties[k].has_default
            }
    elif node.list_type == "set":
        made = MergeType(LIST, is_set=True)
    else:
        made = MergeType(LIST, atomic=True)
    made._element = of_schema(node.items, is_open=is_open) if node.items is not None else ANY_TYPE
    return made


@cache
def of_struct(name: str) -> MergeType:
    """Return the merge type of a built-in type."""
    made = MergeType(MAP, atomic=bool(table()[name].get("atomic")))
    made._fields = lambda: {k: _of_field(f) for k, f in json_fields(name).items()}
    return made


def of_kind(name: str) -> MergeType:
    """Return the merge type of a whole object of a built-in kind."""
    inner = of_struct(name)
    made = MergeType(MAP)
    made._fields = lambda: {"apiVersion": _STRING, "kind": _STRING, **inner.fields}
    return made


_GO_SCALARS: Final = {
    "int32": _NUMERIC,
    "int64": _NUMERIC,
    "float64": _NUMERIC,
    "bool": _BOOLEAN,
    "byte": _NUMERIC,
    "intstr": _UNTYPED,
    "quantity": _UNTYPED,
}


_ZEROS: Final = {"string": "", "int32": 0, "int64": 0}
"""The value of a missing key: a field that is always written has Go's zero as its default."""


def _of_field(field: dict[str, Any]) -> MergeType:
    kind = field["t"].lstrip("*")
    if kind.startswith("[]"):
        item = kind[2:].lstrip("*")
        listed = field.get("l")
        if listed == "map":
            made = MergeType(LIST, keys=tuple(field.get("k") or ()))
            if item in table():
                items = json_fields(item)
                made.defaults = {k: items[k].get("d", _ZEROS.get(items[k]["t"])) for k in made.keys if "d" in items[k] or "a" in items[k]}
        else:
            made = MergeType(LIST, is_set=listed == "set", atomic=listed != "set")
        made._element = lambda: _of_field({"t": item})
        return made
    if kind.startswith("{}"):
        made = MergeType(MAP, atomic=bool(field.get("atomic")))
        made._element = lambda: _of_field({"t": kind[2:]})
        return made
    if kind in table():
        inner = of_struct(kind)
        if field.get("atomic") and not inner.atomic:
            made = MergeType(MAP, atomic=True)
            made._fields = lambda: inner.fields
            return made
        return inner
    if kind in ("raw", "any", "schema"):
        return ANY_TYPE
    return _GO_SCALARS.get(kind, _STRING)
