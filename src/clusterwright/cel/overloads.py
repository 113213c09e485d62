"""Overloads of functions, the run-time types of their arguments, and equality."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.cel.moments import Duration, Timestamp
from clusterwright.cel.types import DYN, Type, comparable
from clusterwright.cel.values import INT_MAX, INT_MIN, CelError, Optional, Semver, TypeValue, UInt
from clusterwright.golang.quantities import Quantity
from clusterwright.golang.urls import RequestUrl

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. `receiver` distinguishes `x.f(y)` from `f(x, y)`; type variables are single capital letters."""

    receiver: bool
    params: tuple[Type, ...]
    result: Type
    run: Implementation


_TYPE = re.compile(r"\s*([A-Za-z_.]+)\s*(<)?")


def _parse_type(text: str, at: int = 0) -> tuple[Type, int]:
    found = _TYPE.match(text, at)
    assert found is not None, text
    name, at = found.group(1), found.end()
    params = []
    if found.group(2):
        while True:
            param, at = _parse_type(text, at)
            params.append(param)
            closing = text[at]
            at += 1
            if closing == ">":
                break
    return Type(name, tuple(params)), at


def _types(text: str) -> tuple[Type, ...]:
    out, at = [], 0
    while at < len(text) and text[at:].strip():
        kind, at = _parse_type(text, at)
        out.append(kind)
        at += 1
    return tuple(out)


class Library(dict[str, list[Overload]]):
    """Functions by name. Each module of functions has one; `catalogue` combines them."""

    def define(self, signature: str, run: Implementation) -> None:
        """Add an overload: `f(string, int) bool` or `string.f(int) bool`."""
        head, rest = signature.split("(", 1)
        arguments, result = rest.rsplit(")", 1)
        receiver: tuple[Type, ...] = ()
        owner, dot, name = head.rpartition(".")
        if dot and owner not in NAMESPACES:
            receiver = _types(owner)
        else:
            name = head
        params = receiver + _types(arguments)
        self.add(name, Overload(bool(receiver), params, _types(result)[0], run))

    def add(self, name: str, overload: Overload) -> None:
        """Add a given overload."""
        self.setdefault(name, []).append(overload)


NAMESPACES: Final = frozenset({"sets", "optional", "lists", "format", "strings", "jsonpatch"})


def unify(param: Type, actual: Type, bound: dict[str, Type]) -> bool:
    """Return whether an argument's type fits a parameter; bind type variables."""
    if len(param.name) == 1 and param.name.isupper():
        known = bound.get(param.name)
        if known is None or known.name == "dyn":
            bound[param.name] = actual
            return True
        return comparable(known, actual)
    if actual.name == "dyn" or param.name == "dyn":
        return True
    if param.name != actual.name:
        return False
    if len(param.params) != len(actual.params):
        return not actual.params or not param.params
    return all(unify(p, a, bound) for p, a in zip(param.params, actual.params, strict=True))


def substitute(kind: Type, bound: dict[str, Type]) -> Type:
    """Return the type with its variables replaced."""
    if len(kind.name) == 1 and kind.name.isupper():
        return bound.get(kind.name, DYN)
    return Type(kind.name, tuple(substitute(p, bound) for p in kind.params)) if kind.params else kind


# ---------------------------------------------------------------- runtime types

_RUNTIME: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null",
    Timestamp: "timestamp",
    Duration: "duration",
    UInt: "uint",
    TypeValue: "type",
    Optional: "optional",
    Quantity: "quantity",
    Semver: "semver",
    RequestUrl: "url",
}
_SHOWN: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "semver": "kubernetes.Semver",
    "format": "kubernetes.NamedFormat",
}


@dataclass(frozen=True, slots=True)
class Ip:
    """An IP address."""

    value: ipaddress.IPv4Address | ipaddress.IPv6Address

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network with the address it was written with."""

    value: ipaddress.IPv4Interface | ipaddress.IPv6Interface

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A validation format of the format library."""

    name: str
    check: Callable[[str], list[str]]


_RUNTIME[Ip] = "ip"
_RUNTIME[Cidr] = "cidr"
_RUNTIME[NamedFormat] = "format"


def runtime_name(value: Any) -> str:
    """Return the type name of a value."""
    return _RUNTIME.get(type(value), "dyn")


def type_value(value: Any) -> TypeValue:
    """Return type(value)."""
    return TypeValue(shown_name(runtime_name(value)))


def shown_name(kind: str) -> str:
    """Return the name of a type as CEL shows it."""
    return _SHOWN.get(kind, kind)


def fits(param: Type, value: Any) -> bool:
    """Return whether a value fits a parameter, by its outermost type."""
    return param.name == "dyn" or (len(param.name) == 1 and param.name.isupper()) or runtime_name(value) == param.name


def checked(value: int) -> int:
    """Return an integer, or the overflow error."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> UInt:
    """Return an unsigned integer, or the overflow error."""
    if 0 <= value < 1 << 64:
        return UInt(value)
    raise CelError("unsigned integer overflow")


def equal(a: Any, b: Any) -> bool:
    """Return CEL equality: numbers by value, everything else only within its type."""
    kind, other = type(a), type(b)
    if kind is other:
        if kind is list:
            return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
        if kind is dict:
            return len(a) == len(b) and all(k in b and equal(v, b[k]) for k, v in a.items())
        return bool(a == b)
    if kind is bool or other is bool:
        return False
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return False


def key(value: Any) -> Hashable:
    """Return a key that is equal for two values exactly if they are `equal`."""
    kind = type(value)
    if kind is list:
        return kind, tuple(map(key, value))
    if kind is dict:
        return kind, frozenset((k, key(v)) for k, v in value.items())
    if value != value:  # noqa: PLR0124 - not a number is not even equal to itself
        return object()
    return float if kind is not bool and isinstance(value, (int, float)) else kind, value


def keys(values: list[Any]) -> set[Hashable]:
    """Return the keys of the elements of a list."""
    return set(map(key, values))


def contains(values: list[Any], item: Any) -> bool:
    """Return whether an item is in values."""
    return any(equal(item, v) for v in values)


def equal_unordered(a: Any, b: Any, names: tuple[str, ...]) -> bool:
    """Return the equality of sets, and of map lists by the keys of their items: order does not matter."""
    if type(a) is not list or type(b) is not list:
        return equal(a, b)
    if len(a) != len(b):
        return False
    if not names:
        return keys(a) == keys(b)

    def keyed(values: list[Any]) -> dict[Any, Any]:
        return {tuple(repr(v.get(k)) for k in names) if type(v) is dict else repr(v): v for v in values}

    return equal(keyed(a), keyed(b))
