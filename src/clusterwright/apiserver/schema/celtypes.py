"""The CEL types of values that a structural schema describes, and how JSON becomes such values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Field, Type, escape, map_of
from clusterwright.cel.values import CelError, parse_duration, parse_timestamp


def _to_float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _to_timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_timestamp(value if "T" in value or "t" in value else value + "T00:00:00Z")
    except CelError:
        return value


def _to_duration(value: Any) -> Any:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except CelError:
        return value


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
    """The type of values of a schema, and their conversion; None for what CEL cannot see."""
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
