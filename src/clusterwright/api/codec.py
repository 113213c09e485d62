"""Convert between JSON and models. Decoding ignores unknown fields; encoding follows the presence classes.

`to_json` is msgspec's dump with corrections: fields that are always written, empty objects that are never written, times without fractions
of a second. The corrections for a class are computed once.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from clusterwright.api.meta import Always, Json, KeepEmpty, Object
from clusterwright.api.wire import UNREADABLE

S = TypeVar("S", bound=msgspec.Struct)


class DecodeError(ValueError):
    """Bytes or JSON do not fit the model. `path` names the first wrong place, as `$.spec.replicas`."""

    def __init__(self, kind: str, message: str) -> None:
        reason, _, path = message.partition(" - at `")
        self.path = path.rstrip("`") or "$"
        field = self.path.removeprefix("$").removeprefix(".")
        super().__init__(f"{kind}: {field}: {_in_words_of_json(reason)}" if field else f"{kind}: {_in_words_of_json(reason)}")


_WRONG_TYPE = re.compile(r"Expected `([a-z |]+)`, got `(\w+)`")
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def _in_words_of_json(reason: str) -> str:
    """Return why JSON does not fit, with JSON's names of types."""
    found = _WRONG_TYPE.fullmatch(reason)
    if found is None:
        return reason
    wanted, given = (" or ".join(_JSON_TYPES.get(one, one) for one in side.split(" | ") if one != "null") for side in found.groups())
    return f"must be of type {wanted}, not {given}"


_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def _decoder(cls: type[S]) -> msgspec.json.Decoder[S]:
    decoder = _DECODERS.get(cls)
    if decoder is None:
        decoder = _DECODERS[cls] = msgspec.json.Decoder(cls)
    return decoder


def decode(cls: type[S], raw: bytes) -> S:
    """Return `raw` decoded as `cls`; JSON null means absent. Raises DecodeError."""
    try:
        return _decoder(cls).decode(raw)
    except msgspec.ValidationError as error:
        return _decode_without_nulls(cls, raw, error)
    except UNREADABLE as error:
        raise DecodeError(cls.__name__, str(error)) from None


def _decode_without_nulls(cls: type[S], raw: bytes, error: msgspec.ValidationError) -> S:
    try:
        json = _decode_json(raw)
        cleaned = without_nulls(json)
        if cleaned == json:
            raise DecodeError(cls.__name__, str(error)) from None
        return msgspec.convert(cleaned, cls)
    except UNREADABLE as second:  # an error of validation is one of them
        raise DecodeError(cls.__name__, str(second)) from None


def without_nulls(json: Any) -> Any:
    """Return a copy of `json` without the keys whose value is null, at any depth."""
    if isinstance(json, dict):
        return {key: without_nulls(value) for key, value in json.items() if value is not None}
    if isinstance(json, list):
        return [without_nulls(item) for item in json]
    return json


def convert(json: Mapping[str, Any], cls: type[S]) -> S:
    """Return decoded JSON converted to `cls`; null means absent. Raises DecodeError."""
    try:
        return msgspec.convert(json, cls)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(without_nulls(dict(json)), cls)
    except msgspec.ValidationError as error:
        raise DecodeError(cls.__name__, str(error)) from None


def to_json(obj: msgspec.Struct) -> Json:
    """Return the object as JSON that the caller may change."""
    # through bytes: msgspec.to_builtins would leave tuples as tuples
    json: Json = _decode_json(_encode_json(obj))
    plan = _plan(type(obj))
    if plan is not None:
        plan.finish(json)
    if isinstance(obj, Object):
        json["apiVersion"] = obj.api_version
        json["kind"] = obj.kind
    return json


def encode(obj: msgspec.Struct) -> bytes:
    """Return the object as JSON bytes."""
    return _encode_json(to_json(obj))


_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
_WHOLE_SECONDS = len("2006-01-02T15:04:05Z")


class _Plan:
    """The corrections that a dump of one class still needs."""

    __slots__ = ("always", "lists", "maps", "objects", "times")

    def __init__(self) -> None:
        self.always: list[tuple[str, Any]] = []
        self.times: list[str] = []
        self.objects: list[tuple[str, _Plan | None, Json | None]] = []
        """Name, plan, and the dump of a zero value, which is not written; None if zero is written, too."""
        self.lists: list[tuple[str, _Plan]] = []
        self.maps: list[tuple[str, _Plan]] = []

    @property
    def empty(self) -> bool:
        return not (self.always or self.times or self.objects or self.lists or self.maps)

    def finish(self, json: Json) -> None:
        """Correct the dump, from the innermost objects outwards."""
        for name in self.times:
            if name in json and len(text := json[name]) != _WHOLE_SECONDS:
                json[name] = whole_seconds(text)
        for name, zero in self.always:
            if name not in json:
                json[name] = deepcopy(zero) if isinstance(zero, dict) else zero
        for name, plan, zero in self.objects:
            if name in json:
                nested = json[name]
                if plan is not None:
                    plan.finish(nested)
                if nested == zero:
                    del json[name]
        for name, item_plan in self.lists:
            if name in json:
                for item in json[name]:
                    item_plan.finish(item)
        for name, item_plan in self.maps:
            if name in json:
                for item in json[name].values():
                    item_plan.finish(item)


def whole_seconds(text: str) -> str:
    """Return an RFC 3339 time in UTC in Kubernetes' form: no fraction of a second, `Z`."""
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_PLANS: dict[type, _Plan | None] = {}


def _plan(cls: type[msgspec.Struct]) -> _Plan | None:
    """Return the plan of a class, or None if msgspec's dump needs no correction."""
    try:
        return _PLANS[cls]
    except KeyError:
        pass
    plan = _Plan()
    _PLANS[cls] = plan  # a recursive type finds the plan that is being made
    hints = field_hints(cls)
    keep_all = not getattr(cls, "omit_zero", True)
    for field in msgspec.structs.fields(cls):
        hint = hints[field.name]
        marks = field_metadata(hint)
        shape, inner = _shape(hint)
        always = any(isinstance(mark, Always) for mark in marks)
        if shape is datetime:
            plan.times.append(field.encode_name)
        elif isinstance(shape, type) and issubclass(shape, msgspec.Struct):
            nested = _plan(shape)
            if always:
                plan.always.append((field.encode_name, to_json(shape())))
            keep = always or (keep_all and field.default is None) or any(isinstance(mark, KeepEmpty) for mark in marks)
            if nested is not None or not keep:
                plan.objects.append((field.encode_name, nested, None if keep else to_json(shape())))
        elif shape in (tuple, dict):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and (nested := _plan(inner)) is not None:
                (plan.lists if shape is tuple else plan.maps).append((field.encode_name, nested))
        elif always and field.default not in (None, msgspec.NODEFAULT):  # no null times; msgspec writes what has a factory
            plan.always.append((field.encode_name, field.default))
    if plan.empty:
        _PLANS[cls] = None
        return None
    return plan


@cache
def field_hints(cls: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the types of a model's fields with their `Annotated` metadata."""
    return typing.get_type_hints(cls, include_extras=True)


def encoded_names(cls: type[msgspec.Struct]) -> Iterable[tuple[str, str]]:
    """Return the JSON name of each field of a model, and its attribute, without the types, which are expensive to compute."""
    return zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)


def field_metadata(hint: Any) -> tuple[Any, ...]:
    """Return the `Annotated` metadata of a field's type."""
    return tuple(hint.__metadata__) if get_origin(hint) is Annotated else ()


def without_metadata(hint: Any) -> Any:
    """Return the type below `Annotated`, without `| None`."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif get_origin(hint) in (Union, types.UnionType):
            members = [member for member in get_args(hint) if member is not type(None)]
            if len(members) != 1:
                return hint
            hint = members[0]
        else:
            return hint


def _shape(hint: Any) -> tuple[Any, Any]:
    """Return (datetime | a Struct | tuple | dict | other, the type of its items)."""
    bare = without_metadata(hint)
    origin = get_origin(bare)
    if origin is tuple:
        return tuple, without_metadata(get_args(bare)[0])
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return dict, without_metadata(get_args(bare)[1])
    return bare, None


__all__ = [
    "DecodeError",
    "convert",
    "decode",
    "encode",
    "field_hints",
    "field_metadata",
    "to_json",
    "whole_seconds",
    "without_metadata",
    "without_nulls",
]
