"""Go's built-in template functions, except `and` and `or`, which evaluate their arguments themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterwright.golang.quoting import is_printable
from clusterwright.gotemplate.metering import Charge
from clusterwright.gotemplate.printing import sprint, sprintf, sprintln
from clusterwright.gotemplate.values import (
    INTEGERS,
    Boxed,
    Byte,
    Int,
    Kind,
    TemplateError,
    Window,
    concatenate,
    from_bytes,
    is_true,
    kind_of,
    to_bytes,
    unbox,
)

_HTML = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_JAVASCRIPT = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}
_QUERY = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function, its number of arguments, and the cost of a call. Arguments are still boxed unless they were opened."""

    call: Callable[..., Any]
    least: int
    most: float = math.inf
    wants_format: bool = False
    weight: int = 1
    """How often the sizes of arguments and result count."""
    deep: bool = False
    """Whether the function reads everything in its arguments."""
    metered: bool = False
    """Whether the function charges by itself: its first argument is the charge function."""


def _length(item: Any) -> Int:
    item = unbox(item)
    if isinstance(item, str):
        return Int(len(to_bytes(item)))
    if kind_of(item) not in {Kind.SLICE, Kind.MAP}:
        raise TemplateError(f"len of type {kind_of(item).value}")
    return Int(len(item))


def _bound(index: Any, capacity: int) -> int:
    if isinstance(index, Boxed) or kind_of(index) not in INTEGERS:
        raise TemplateError("cannot index slice/array with a value that is not an integer")
    if not 0 <= index <= capacity:
        raise TemplateError(f"index out of range: {index}")
    return int(index)


def _index(item: Any, *indexes: Any) -> Any:
    item = unbox(item)
    if item is None:
        raise TemplateError("index of untyped nil")
    for index in indexes:
        item, index = unbox(item), unbox(index)
        match kind_of(item):
            case Kind.STRING:
                raw = to_bytes(item)
                item = Byte(raw[_bound(index, len(raw) - 1)])
            case Kind.SLICE:
                item = Boxed(item[_bound(index, len(item) - 1)])
            case Kind.MAP:
                if not isinstance(index, str):
                    raise TemplateError(f"value has type {kind_of(index).value}; should be string")
                item = Boxed(item.get(index))
            case kind:
                raise TemplateError(f"can't index item of type {kind.value}")
    return item


def _slice(item: Any, *indexes: Any) -> Any:
    item = unbox(item)
    if isinstance(item, str):
        raw = to_bytes(item)
        start, end = _bounds(indexes, (0, len(raw)), len(raw))
        return from_bytes(raw[start:end])
    if kind_of(item) is not Kind.SLICE:
        raise TemplateError(f"can't slice item of type {kind_of(item).value}")
    backing = item.backing if isinstance(item, Window) else item
    return Window(backing, *_bounds(indexes, (0, len(item), len(backing)), len(backing)))


def _bounds(indexes: tuple[Any, ...], defaults: tuple[int, ...], capacity: int) -> list[int]:
    if len(indexes) > len(defaults):
        raise TemplateError(f"too many slice indexes: {len(indexes)}")
    # Unlike everything else, slice does not look into an interface for its indexes.
    bounds = [*(_bound(index, capacity) for index in indexes), *defaults[len(indexes) :]]
    if bounds != sorted(bounds):
        raise TemplateError(f"invalid slice index: {bounds}")
    return bounds


def _comparable(value: Any) -> Kind:
    """Return the kind for comparisons; all integers have one."""
    kind = kind_of(value)
    return Kind.INT if kind in INTEGERS else kind


def _equal(first: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("missing argument for comparison")
    first = unbox(first)
    return any(_is_equal(first, unbox(other)) for other in others)


def _is_equal(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    kind = _comparable(first)
    if kind is not _comparable(second):
        raise TemplateError(f"incompatible types for comparison: {kind_of(first).value} and {kind_of(second).value}")
    if kind in {Kind.SLICE, Kind.MAP, Kind.STRUCT}:
        raise TemplateError(f"non-comparable type {kind.value}")
    return bool(first == second)


def _less(first: Any, second: Any) -> bool:
    first, second = unbox(first), unbox(second)
    kind = _comparable(first)
    if kind is not _comparable(second) or kind not in {Kind.INT, Kind.FLOAT, Kind.STRING}:
        raise TemplateError(f"invalid types for comparison: {kind_of(first).value} and {kind_of(second).value}")
    return to_bytes(first) < to_bytes(second) if kind is Kind.STRING else bool(first < second)


def _text(arguments: tuple[Any, ...]) -> str:
    """Return the arguments of an escaper as one text."""
    return sprint(["<no value>" if argument is None else argument for argument in map(unbox, arguments)])


def _javascript(*arguments: Any) -> str:
    def escaped(character: str) -> str:
        if character in _JAVASCRIPT:
            return _JAVASCRIPT[character]
        if "\x20" <= character <= "\x7f" or "\udc80" <= character <= "\udcff":
            return character
        return character if is_printable(character) else f"\\u{ord(character):04X}"

    return concatenate(map(escaped, _text(arguments)))


def _query(*arguments: Any) -> str:
    return "".join(chr(byte) if byte in _QUERY else "+" if byte == 0x20 else f"%{byte:02X}" for byte in to_bytes(_text(arguments)))


def _printf(charge: Charge, text: str, *arguments: Any) -> str:
    return sprintf(text, [unbox(argument) for argument in arguments], charge)


def _call(*_: Any) -> Any:
    raise TemplateError("call of non-function")


BUILTINS: Mapping[str, Builtin] = {
    "call": Builtin(_call, 1),
    "html": Builtin(lambda *arguments: _text(arguments).translate(_HTML), 0, weight=4, deep=True),
    "index": Builtin(_index, 1),
    "js": Builtin(_javascript, 0, weight=8, deep=True),
    "len": Builtin(_length, 1, 1),
    "not": Builtin(lambda value: not is_true(value), 1, 1),
    "print": Builtin(lambda *arguments: sprint([unbox(argument) for argument in arguments]), 0, deep=True),
    "printf": Builtin(_printf, 1, wants_format=True, deep=True, metered=True),
    "println": Builtin(lambda *arguments: sprintln([unbox(argument) for argument in arguments]), 0, deep=True),
    "slice": Builtin(_slice, 1),
    "urlquery": Builtin(_query, 0, weight=8, deep=True),
    "eq": Builtin(_equal, 1),
    "ne": Builtin(lambda first, second: not _equal(first, second), 2, 2),
    "lt": Builtin(_less, 2, 2),
    "le": Builtin(lambda first, second: _less(first, second) or _equal(first, second), 2, 2),
    "gt": Builtin(lambda first, second: not (_less(first, second) or _equal(first, second)), 2, 2),
    "ge": Builtin(lambda first, second: not _less(first, second), 2, 2),
}
SHORT_CIRCUITS: Mapping[str, bool] = {"and": False, "or": True}
"""The functions that return their first argument with this truth value, and evaluate none after it."""
