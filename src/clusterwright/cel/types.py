"""Static types of CEL expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from clusterwright.cel.syntax import RESERVED

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
    """For lists whose order does not matter to equality: the keys of their items, none for sets."""

    def __str__(self) -> str:
        if self.fields is not None:
            return "object"
        name = _SHOWN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an object: its JSON name, its type, and the conversion of its JSON value to CEL (None: unchanged)."""

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
    """Return list(item)."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """Return map(key, value)."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return optional(value)."""
    return Type("optional", (value,))


def joined(a: Type, b: Type) -> Type:
    """Return the common type of two values."""
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
    """Return whether `==` is defined for values of these types."""
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
    """Return a property name in the syntax of expressions, or None if that is impossible."""
    if name in RESERVED or name in ("true", "false", "null", "in"):
        return f"__{name}__"
    for raw, escaped in _ESCAPES:
        name = name.replace(raw, escaped)
    return name if _IDENTIFIER.fullmatch(name) else None
