"""Static types of CEL expressions, and those of values that a structural schema describes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from clusterwright.apiserver.cel.syntax import RESERVED
from clusterwright.apiserver.cel.values import CelError, parse_duration, parse_timestamp
from clusterwright.apiserver.schema.structural import Node

_SHOWN: Final = {
    "cidr": "net.CIDR",
    "format": "kubernetes.NamedFormat",
    "ip": "net.IP",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "url": "kubernetes.URL",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a name, parameters for list, map, optional and type, and the fields of an object."""

    name: str
    params: tuple[Type, ...] = ()
    fields: dict[str, Field] | None = field(default=None, compare=False, repr=False)
    identity: int = 0
    unordered: tuple[str, ...] | None = field(default=None, compare=False)
    """Of lists whose order does not matter to equality: the keys of their items, none for sets."""

    def __str__(self) -> str:
        if self.fields is not None:
            return "object"
        name = _SHOWN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an object: its JSON name, its type, and how its JSON value becomes a CEL value (None: as it is)."""

    name: str
    type: Type
    convert: Callable[[Any], Any] | None = None


DYN: Final = Type("dyn")
NULL: Final = Type("null")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
TYPE: Final = Type("type")


def list_of(item: Type) -> Type:
    """list(item)."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """map(key, value)."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """optional(value)."""
    return Type("optional", (value,))


def joined(a: Type, b: Type) -> Type:
    """The type of either of two values."""
    if a == b:
        return a
    if a is NULL or a.name == "null":
        return b
    if b.name == "null":
        return a
    if a.name == b.name and len(a.params) == len(b.params) and a.params:
        return Type(a.name, tuple(joined(x, y) for x, y in zip(a.params, b.params, strict=True)))
    return DYN


_NULLABLE: Final = frozenset({"object", "timestamp", "duration", "optional", "null", "map", "list"})


def comparable(a: Type, b: Type) -> bool:
    """Whether `==` may be asked of values of these types."""
    if "dyn" in (a.name, b.name):
        return True
    if a.name == "null" or b.name == "null":
        other = b if a.name == "null" else a
        return other.name in _NULLABLE or other.fields is not None
    if a.name != b.name:
        return False
    if a.fields is not None or b.fields is not None:
        return a.identity == b.identity
    return all(comparable(x, y) for x, y in zip(a.params, b.params, strict=False))


_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


def escape(name: str) -> str | None:
    """How an expression writes a property name, or None when it cannot."""
    if name in RESERVED or name in ("true", "false", "null", "in"):
        return f"__{name}__"
    for raw, escaped in _ESCAPES:
        name = name.replace(raw, escaped)
    return name if _IDENTIFIER.fullmatch(name) else None


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
    import base64
    import binascii

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
