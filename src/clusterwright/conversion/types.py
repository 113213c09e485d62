"""The types of a version, like its Go structs, with one reader and one writer for all of them.

A value that was read is a dict without its zero fields: an absent field is zero (or nil); an empty list or map, and the target of a
pointer, are present. Go can distinguish nothing else, so conversions between two types are exact if they move such values. Presence classes
(`P`, `V`, `Z`, `A`) are those of `api/meta.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Protocol, Union, get_args, get_origin

import msgspec

from clusterwright.api.codec import field_hints, field_metadata, without_metadata
from clusterwright.api.constraints import REQUIRED, Format
from clusterwright.api.meta import Always, KeepEmpty, Object
from clusterwright.conversion import values
from clusterwright.conversion.values import Unreadable
from clusterwright.golang.times import format_duration

Go = dict[str, Any]
"""A struct that was read: its non-zero fields."""
Presence = Literal["P", "V", "Z", "A"]


class Type(Protocol):
    """Reads and writes the values of a type."""

    def read(self, json: Any) -> Any:
        """Return the value; raises Unreadable. Null is the zero value."""

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""

    def zero(self) -> Any:
        """Return the zero value."""

    def nil(self) -> Any:
        """Return the printed form of the zero value where it must be printed."""

    @property
    def counts(self) -> bool:
        """Return whether a given value counts even if it is empty; otherwise false values are absent."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar."""

    kind: str
    parse: Callable[[Any], Any]
    empty: Any
    """The zero value."""
    printed: Any
    """The printed form of zero."""
    show: Callable[[Any], Any] | None = None

    def read(self, json: Any) -> Any:
        """Return the checked value in its canonical form."""
        return self.empty if json is None else self.parse(json)

    def write(self, value: Any) -> Any:
        """Return the printed form."""
        return self.show(value) if self.show is not None else value

    def zero(self) -> Any:
        """Return the type's zero value."""
        return self.empty

    def nil(self) -> Any:
        """Return the type's printed zero."""
        return self.printed

    @property
    def counts(self) -> bool:
        """Return True for types without a zero other than absence."""
        return self.kind in {"any", "bytes", "quantity", "int-or-string"}


def _string(json: Any) -> str:
    if not isinstance(json, str):
        raise Unreadable(f"expected a string, found {_noun(json)}")
    return json


def _bool(json: Any) -> bool:
    if not isinstance(json, bool):
        raise Unreadable(f"expected a boolean, found {_noun(json)}")
    return json


def _integer(bounds: tuple[int, int]) -> Callable[[Any], int]:
    low, high = bounds

    def parse(json: Any) -> int:
        if isinstance(json, float) and json.is_integer():
            json = int(json)
        if not isinstance(json, int) or isinstance(json, bool):
            raise Unreadable(f"expected an integer, found {_noun(json)}")
        if not low <= json <= high:
            raise Unreadable(f"{json} is out of range")
        return json

    return parse


_int32 = _integer(values.INT32)


def _int_or_string(json: Any) -> int | str:
    return json if isinstance(json, str) else _int32(json)


def _number(json: Any) -> float:
    if not isinstance(json, (int, float)) or isinstance(json, bool):
        raise Unreadable(f"expected a number, found {_noun(json)}")
    return json


def _noun(json: Any) -> str:
    for kind, noun in ((bool, "a boolean"), ((int, float), "a number"), (str, "a string"), (list, "a list"), (dict, "an object")):
        if isinstance(json, kind):
            return noun
    return "null"


def _same(json: Any) -> Any:
    return json


STRING: Final = Leaf("string", _string, "", "")
BOOL: Final = Leaf("bool", _bool, False, False)
INT32: Final = Leaf("int", _int32, 0, 0)
INT64: Final = Leaf("int", _integer(values.INT64), 0, 0)
NUMBER: Final = Leaf("number", _number, 0, 0)
TIME: Final = Leaf("time", values.time, "", None, values.time_text)
DURATION: Final = Leaf("duration", values.duration, 0, "0s", format_duration)
QUANTITY: Final = Leaf("quantity", values.quantity, "0", "0")
INT_OR_STRING: Final = Leaf("int-or-string", _int_or_string, None, 0)
BYTES: Final = Leaf("bytes", values.encoded_bytes, None, None)
TOKEN: Final = Leaf("token", values.token, "", "")
ANY: Final = Leaf("any", _same, None, None)


class _Collection:
    __slots__ = ()

    def zero(self) -> Any:
        """Return Go's nil."""
        return None

    def nil(self) -> Any:
        """Return null."""
        return None

    @property
    def counts(self) -> bool:
        """Return True: an empty collection differs from none."""
        return True


@dataclass(frozen=True, slots=True)
class List(_Collection):
    """A list; of pointers, null stays null."""

    item: Type
    pointers: bool = False

    def read(self, json: Any) -> Any:
        """Return the list with its items read."""
        if json is None:
            return None
        if not isinstance(json, list):
            raise Unreadable(f"expected a list, found {_noun(json)}")
        read = self.item.read
        items = []
        for position, item in enumerate(json):
            try:
                items.append(None if item is None and self.pointers else read(item))
            except Unreadable as error:
                raise error.under(f"[{position}]") from None
        return items

    def write(self, value: Any) -> Any:
        """Return the list with its items written."""
        write = self.item.write
        return [None if item is None else write(item) for item in value]


@dataclass(frozen=True, slots=True)
class Map(_Collection):
    """A map with string keys."""

    value: Type

    def read(self, json: Any) -> Any:
        """Return the map with its values read."""
        if json is None:
            return None
        if not isinstance(json, dict):
            raise Unreadable(f"expected an object, found {_noun(json)}")
        found = {}
        for key, value in json.items():
            try:
                found[key] = self.value.read(value)
            except Unreadable as error:
                raise error.under(f"[{key}]") from None
        return found

    def write(self, value: Any) -> Any:
        """Return the map with its values written."""
        write = self.value.write
        return {key: write(item) for key, item in value.items()}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct."""

    type: Type
    presence: Presence
    pointer: bool = False
    """Whether an `A` field is a pointer: nil is printed as null."""

    @property
    def optional(self) -> bool:
        """Whether zero differs from absent."""
        return self.presence == "P" or self.pointer

    @property
    def kept(self) -> bool:
        """Whether any given value is kept; otherwise false values are absent."""
        return self.optional or self.type.counts


_EXACT: Final[Mapping[str, type]] = {"string": str, "bool": bool}
"""The classes of leaf values that need no reader."""


@dataclass(slots=True, eq=False)
class Struct:
    """An object with known fields. Unknown ones are dropped when it is read."""

    fields: dict[str, Field] = field(default_factory=dict)
    _reading: dict[str, tuple[type | None, Callable[[Any], Any], bool]] | None = None
    """By name: the class whose values need no reader, the reader, and whether a false value is kept."""
    _writing: tuple[dict[str, tuple[bool, Callable[[Any], Any] | None]], list[tuple[str, Field]]] | None = None
    """By name: whether a false value is omitted, and the writer if needed; and the fields that are always written."""

    def read(self, json: Any) -> Go:
        """Return its non-zero fields."""
        if json is None:
            return {}
        if not isinstance(json, dict):
            raise Unreadable(f"expected an object, found {_noun(json)}")
        reading = self._reading or self._plan_reading()
        found = {}
        for name, raw in json.items():
            known = reading.get(name)
            if known is None or raw is None:
                continue
            exact, read, kept = known
            if type(raw) is exact:
                if raw or kept:
                    found[name] = raw
                continue
            try:
                value = read(raw)
            except Unreadable as error:
                raise error.under(name) from None
            if value or kept:
                found[name] = value
        return found

    def _plan_reading(self) -> dict[str, tuple[type | None, Callable[[Any], Any], bool]]:
        self._reading = {
            name: (_EXACT.get(one.type.kind) if isinstance(one.type, Leaf) else None, one.type.read, one.kept)
            for name, one in self.fields.items()
        }
        return self._reading

    def write(self, value: Go) -> Go:
        """Return the fields in JSON, by presence class."""
        writing, always = self._writing or self._plan_writing()
        json = {}
        for name, part in value.items():
            omitted, write = writing[name]
            if part or not omitted:
                shown = part if write is None else write(part)
                if shown is not None or not omitted:
                    json[name] = shown
        for name, known in always:
            if name not in json:
                json[name] = None if known.pointer else known.type.nil()
        return json

    def _plan_writing(self) -> tuple[dict[str, tuple[bool, Callable[[Any], Any] | None]], list[tuple[str, Field]]]:
        plain: dict[str, tuple[bool, Callable[[Any], Any] | None]] = {
            name: (
                one.presence == "V" or (one.presence == "Z" and not one.kept),
                None if isinstance(one.type, Leaf) and one.type.show is None else one.type.write,
            )
            for name, one in self.fields.items()
        }
        always = [(name, one) for name, one in self.fields.items() if one.presence == "A"]
        self._writing = (plain, always)
        return plain, always

    def zero(self) -> Go:
        """Return no fields."""
        return {}

    def nil(self) -> Any:
        """Return the fields that are always printed."""
        return self.write({})

    @property
    def counts(self) -> bool:
        """Return whether a field is set."""
        return False


# ------------------------------------------------------------------------------------------ from schemas

_BY_NAME: Final[Mapping[str, Leaf]] = {
    "duration": DURATION, "time": TIME, "quantity": QUANTITY, "int-or-string": INT_OR_STRING, "any": ANY,
}  # fmt: skip
_BY_TYPE: Final[Mapping[tuple[str, str], Leaf]] = {
    ("string", ""): STRING, ("string", "byte"): BYTES, ("string", "date-time"): TIME, ("boolean", ""): BOOL,
    ("integer", "int32"): INT32, ("integer", "int64"): INT64, ("integer", ""): INT64, ("number", ""): NUMBER,
}  # fmt: skip
NESTED: Final[Mapping[str, str]] = {
    "additionalProperties": "one", "items": "one", "not": "one", "properties": "map", "allOf": "list", "anyOf": "list", "oneOf": "list",
}  # fmt: skip
"""Fields of a variable's schema with nested schemas, which a structural schema cannot express."""
VARIABLE_SCHEMA: Final = "openAPIV3Schema"


def from_schema(schema: Mapping[str, Any]) -> Struct:
    """Return the type from a schema of `api/versions`."""
    found = Struct()
    for name, part in schema.get("properties", {}).items():
        kind = _schema_type(part)
        found.fields[name] = Field(kind, part.get("x-ser", "V"))
        if name == VARIABLE_SCHEMA and isinstance(kind, Struct):
            _nest(kind)
    return found


def _schema_type(schema: Mapping[str, Any]) -> Type:
    if named := schema.get("x-type"):
        return _BY_NAME[named]
    kind = schema.get("type", "")
    if kind == "array":
        return List(_schema_type(schema["items"]))
    if kind == "object":
        if isinstance(values_of := schema.get("additionalProperties"), Mapping):
            return Map(_schema_type(values_of))
        return from_schema(schema)
    if not kind:
        return QUANTITY if schema.get("x-kubernetes-int-or-string") else ANY
    return _BY_TYPE[kind, schema.get("format", "")]


def _nest(schema: Struct) -> None:
    shapes: Mapping[str, Type] = {"one": schema, "map": Map(schema), "list": List(schema)}
    for name, shape in NESTED.items():
        schema.fields[name] = Field(shapes[shape], "P" if shape == "one" else "V")


# ------------------------------------------------------------------------------------------- from models

_BY_CLASS: Final[Mapping[Any, Leaf]] = {str: STRING, bool: BOOL, int: INT64, float: NUMBER, bytes: BYTES, datetime: TIME, Any: ANY}


@cache
def from_model(model: type[msgspec.Struct]) -> Struct:
    """Return the type from one of our models."""
    found = Struct()
    hints = field_hints(model)
    for one in msgspec.structs.fields(model):
        if issubclass(model, Object) and one.name in {"api_version", "kind", "metadata"}:
            continue
        hint = hints[one.name]
        marks = field_metadata(hint)
        kind = _model_type(hint)
        found.fields[one.encode_name] = Field(kind, _presence(kind, one, marks, getattr(model, "omit_zero", True)))
        if one.encode_name == VARIABLE_SCHEMA and isinstance(kind, Struct):
            _nest(kind)
    return found


def _presence(kind: Type, one: msgspec.structs.FieldInfo, marks: tuple[Any, ...], omit_zero: bool) -> Presence:
    if any(isinstance(mark, Always) for mark in marks):
        return "A"
    if isinstance(kind, Struct):
        return "P" if any(isinstance(mark, KeepEmpty) for mark in marks) or (not omit_zero and one.default is None) else "Z"
    if kind is TIME:
        return "A" if REQUIRED in marks and one.encode_name == "lastTransitionTime" else "Z"
    if kind is ANY:
        return "Z" if REQUIRED in marks else "P"
    return "P" if one.default is None else "V"


def _model_type(hint: Any) -> Type:
    bare = without_metadata(hint)
    if bare in _BY_CLASS:
        return INT32 if bare is int and _formats(hint) == "int32" else _BY_CLASS[bare]
    if get_origin(bare) in {Union, UnionType}:
        return QUANTITY if float in get_args(bare) else INT_OR_STRING
    origin, arguments = get_origin(bare), get_args(bare)
    if origin is tuple:
        return List(_model_type(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Map(_model_type(arguments[1]))
    return from_model(bare)


def _formats(hint: Any) -> str:
    """Return the `format` of a number, at any depth of `Annotated` and `| None`."""
    for mark in field_metadata(hint):
        if isinstance(mark, Format):
            return mark.name
    return next((found for inner in get_args(hint) if (found := _formats(inner))), "")
