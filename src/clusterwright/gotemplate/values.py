"""The values in templates, with the Go types of the same JSON.

| Go                       | here                                                         |
|--------------------------|--------------------------------------------------------------|
| `interface {}` holding x | `Boxed(x)`: a map entry or list element that nobody opened yet |
| the invalid value        | `None`; `Boxed(None)` is a nil interface                     |
| int64, int, uint8        | `int` (from the data), `Int` (from the template), `Byte`     |
| string: any bytes        | `str`; a byte that is not UTF-8 is a surrogate escape        |
| slice, map               | list or tuple, mapping with string keys                      |
| any other type           | `Opaque`                                                     |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import Any

MAX_TEXT = 1 << 20
"""The longest text that a template may create, in characters."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class TemplateError(ValueError):
    """Go would refuse to parse or execute the template; or it would cost too much."""

    place: tuple[int, int] | None = None
    """The position of the field that could not be evaluated: its line, and bytes into it."""
    field: str = ""
    """The source text of that field."""


class Int(int):
    """Go's int: literals, lengths and indexes."""

    __slots__ = ()


class Byte(int):
    """Go's uint8: an element of a string."""

    __slots__ = ()


class Window(list[Any]):
    """A slice of a slice, which in Go can be sliced again up to the capacity of the first."""

    def __init__(self, backing: Sequence[Any], start: int, end: int, capacity: int) -> None:
        super().__init__(backing[start:end])
        self.backing = backing[start:capacity]


@dataclass(frozen=True, slots=True)
class Boxed:
    """A value inside an interface."""

    value: Any


class Opaque:
    """A value of a Go type that JSON does not have. It prints as `str`, and has members like fields."""

    go_type: str = "struct"
    go_kind: str = "struct"

    def member(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the value of a field or method; raises TemplateError if none takes these arguments."""
        raise TemplateError(f"can't evaluate field {name} in type {self.go_type}")


class Kind(Enum):
    """A kind in the sense of Go's reflect; each value is the name of the only type of that kind here."""

    NIL = "<nil>"
    BOOL = "bool"
    INT = "int"
    INT64 = "int64"
    BYTE = "uint8"
    FLOAT = "float64"
    COMPLEX = "complex128"
    STRING = "string"
    SLICE = "[]interface {}"
    MAP = "map[string]interface {}"
    STRUCT = "struct"


INTEGERS = frozenset({Kind.INT, Kind.INT64, Kind.BYTE})
_KINDS: dict[type, Kind] = {
    type(None): Kind.NIL, bool: Kind.BOOL, Int: Kind.INT, int: Kind.INT64, Byte: Kind.BYTE, float: Kind.FLOAT, complex: Kind.COMPLEX,
    str: Kind.STRING, Opaque: Kind.STRUCT, list: Kind.SLICE, tuple: Kind.SLICE, Window: Kind.SLICE, dict: Kind.MAP,
}  # fmt: skip


def kind_of(value: Any) -> Kind:
    """Return the kind of an unboxed value; raises TemplateError if it is not JSON-like."""
    kind = _KINDS.get(type(value))
    if kind is None:
        kind = next((kind for type_, kind in _KINDS.items() if isinstance(value, type_)), None)
    if kind is None and isinstance(value, Mapping):
        kind = Kind.MAP
    if kind is None:
        raise TemplateError(f"a {type(value).__name__} cannot be a value for a template")
    return kind


def unbox(value: Any) -> Any:
    """Return the value itself, without its interface."""
    return value.value if isinstance(value, Boxed) else value


def is_true(value: Any) -> bool:
    """Return Go's truth value: everything except false, 0, nil and empty values."""
    value = unbox(value)
    return kind_of(value) is not Kind.NIL and bool(value)


def sorted_entries(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the entries of a map in the order in which Go iterates and prints it."""
    if not all(isinstance(key, str) for key in value):
        raise TemplateError("a map has a key that is not a string")
    return sorted(value.items(), key=itemgetter(0))


def to_bytes(text: str) -> bytes:
    """Return the bytes of a Go string."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def from_bytes(raw: bytes) -> str:
    """Return the Go string of these bytes, which need not be UTF-8."""
    return raw.decode("utf-8", "surrogateescape")


def concatenate(parts: Iterable[str]) -> str:
    """Return the parts as one Go string: bytes that are UTF-8 only together become one character."""
    text = "".join(parts)
    return from_bytes(to_bytes(text)) if _SURROGATE.search(text) else text


def bounded(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts until they are too many; then raise TemplateError."""
    length = 0
    for part in parts:
        length += len(part)
        if length > MAX_TEXT:
            raise TemplateError("the text becomes too long")
        yield part


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each byte that is not UTF-8, as Go's JSON encoder does."""
    return _SURROGATE.sub("\ufffd", text)


def is_word_character(character: str) -> bool:
    """Return whether Go allows the character in the names of fields, variables and functions."""
    if character.isascii():
        return character.isalnum() or character == "_"
    category = unicodedata.category(character)
    return category[0] == "L" or category == "Nd"
