"""The CEL types of values that a structural schema describes, and the conversion from JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.cost import Shape
from clusterwright.cel.formats import parse_duration
from clusterwright.cel.moments import Duration, parse_timestamp
from clusterwright.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Field, Type, escape, map_of
from clusterwright.cel.values import CelError
from clusterwright.golang.numbers import to_double


def _to_float(value: Any) -> Any:
    return to_double(value) if type(value) is int else value


def _to_timestamp(value: Any) -> Any:
    try:
        return parse_timestamp(value if "T" in value or "t" in value else value + "T00:00:00Z") if isinstance(value, str) else value
    except ValueError as e:
        raise CelError(f"Invalid date-time formatted string {value}: {e}") from None


def _to_duration(value: Any) -> Any:
    found = parse_duration(value) if isinstance(value, str) else None
    return value if found is None else Duration(found)


def _to_bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except binascii.Error:
        return value


_FORMATS: Final[dict[str, tuple[Type, Callable[[Any], Any]]]] = {
    "byte": (BYTES, _to_bytes),
    "duration": (DURATION, _to_duration),
    "date": (TIMESTAMP, _to_timestamp),
    "date-time": (TIMESTAMP, _to_timestamp),
}

_METADATA: Final = Type("object", fields={"name": Field("name", STRING), "generateName": Field("generateName", STRING)}, identity=-1)


def type_of(node: Node, *, root: bool = False) -> tuple[Type | None, Callable[[Any], Any] | None]:
    """Return the type of values of a schema, and their conversion; None for values that CEL cannot see."""
    if node.int_or_string:
        return DYN, None
    if node.type == "array":
        if node.items is None:
            return None, None
        item, convert = type_of(node.items)
        if item is None:
            return None, None
        unordered = node.keys if node.list_type == "map" else () if node.list_type == "set" else None
        listed = Type("list", (item,), unordered=unordered)
        if convert is None:
            return listed, None
        return listed, lambda v, c=convert: [c(x) for x in v] if type(v) is list else v
    if node.type == "object":
        if node.additional is not None:
            value, convert = type_of(node.additional)
            if value is None:
                return None, None
            if convert is None:
                return map_of(STRING, value), None
            return map_of(STRING, value), lambda v, c=convert: {k: c(x) for k, x in v.items()} if type(v) is dict else v
        fields: dict[str, Field] = {}
        for name, child in node.properties.items():
            written = escape(name)
            if written is None:
                continue
            kind, convert = type_of(child)
            if kind is not None:
                fields[written] = Field(name, kind, convert)
        if root or node.embedded:
            fields["apiVersion"] = Field("apiVersion", STRING)
            fields["kind"] = Field("kind", STRING)
            fields["metadata"] = Field("metadata", _METADATA)
        return Type("object", fields=fields, identity=id(node)), None
    if node.type == "string":
        found = _FORMATS.get(node.format)
        return found if found is not None else (STRING, None)
    if node.type == "integer":
        return INT, None
    if node.type == "number":
        return DOUBLE, _to_float
    if node.type == "boolean":
        return BOOL, None
    return None, None


# ----------------------------------------------------------------------------------------- how large values can be

_REQUEST: Final = 3 * 1024 * 1024
_FIXED: Final = {"duration": ("duration", 32, 3), "date": ("timestamp", 12, 12), "date-time": ("timestamp", 32, 21)}
_SIMPLE: Final = {"boolean": Shape("bool", smallest=4), "number": Shape("double"), "integer": Shape("int")}


def shape_of(node: Node) -> Shape | None:
    """Return the largest size of a schema's values; without own limits, that of a request. None: CEL cannot see them."""
    source = node.source
    length = source.get("maxLength")
    if node.int_or_string:
        return Shape("dyn", _REQUEST - 2 if length is None else max(length, 0) * 4)
    if node.type == "array":
        item = shape_of(node.items) if node.items is not None else None
        if item is None:
            return None
        most = source.get("maxItems")
        return Shape("list", (_REQUEST - 2) // (item.smallest + 1) if most is None else max(most, 0), item=item, smallest=2)
    if node.type == "object":
        return _object_shape(node)
    if node.type == "string":
        if node.format in _FIXED:
            kind, most, smallest = _FIXED[node.format]
            return Shape(kind, most, smallest=smallest)
        if node.format == "byte":
            return Shape("bytes", _REQUEST - 2 if length is None else max(length, 0), smallest=2)
        words = [len(word.encode()) for word in source.get("enum") or () if isinstance(word, str)]
        most = max(length, 0) * 4 if length is not None else max(words) if words else _REQUEST - 2
        return Shape("string", most, smallest=2)
    return _SIMPLE.get(node.type)


def _object_shape(node: Node) -> Shape | None:
    if node.additional is not None:
        value = shape_of(node.additional)
        if value is None:
            return None
        most = node.source.get("maxProperties")
        return Shape("map", (_REQUEST - 2) // (value.smallest + 6) if most is None else max(most, 0), item=value, smallest=2)
    fields: dict[str, Shape] = {}
    smallest = 2
    required = node.source.get("required") or ()
    for name, child in node.properties.items():
        shape = shape_of(child)
        if shape is None:
            continue
        written = escape(name)
        if written is not None:
            fields[written] = shape
        if name in required and child.source.get("default") is None:
            smallest += len(name.encode()) + shape.smallest + 4
    return Shape("object", fields=fields, smallest=smallest)


def most_values(shape: Shape) -> int:
    """Return how many such values one request can contain."""
    return _REQUEST // (shape.smallest + 1)
