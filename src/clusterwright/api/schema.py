"""OpenAPI v3 schemas from models: structural, as CustomResourceDefinitions carry them, for custom and built-in kinds alike.

Strategic-merge directives of built-ins are in `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from clusterwright.api.codec import encoded_names, field_hints, field_metadata, without_metadata
from clusterwright.api.constraints import (
    ATOMIC,
    ATOMIC_MAP,
    EMBEDDED,
    METADATA_REQUIRED,
    OPEN,
    PRESERVE,
    QUANTITY,
    REQUIRED,
    SET,
    Cel,
    Default,
    Doc,
    Each,
    Format,
    IntOrString,
    Items,
    Len,
    ListMap,
    OneOf,
    Pattern,
    Props,
    Quantity,
    Range,
)
from clusterwright.api.meta import Json, Object

_SCALARS: Mapping[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    bytes: {"type": "string", "format": "byte"},
}
_QUANTITY_MEMBERS = frozenset(get_args(Quantity))
_INT_OR_STRING_MEMBERS = frozenset(get_args(IntOrString))


def schema_of(model: type[msgspec.Struct]) -> Json:
    """Return the structural schema of a kind or of a part of it.

    `metadata` of the kind itself is an open object, as in every CRD; that of templates inside it is spelled out.
    """
    schema = _object(model, frozenset())
    if issubclass(model, Object):
        schema["properties"]["metadata"] = {"type": "object"}  # kube-apiserver accepts nothing more here, not even a description
    return schema


def value_schema(hint: Any) -> Json:
    """Return the schema of a field by its type hint, with everything below it."""
    return _value(hint, frozenset())


def _object(model: type[msgspec.Struct], above: frozenset[type]) -> Json:
    hints = field_hints(model)
    properties: Json = {}
    required: list[str] = []
    for name, attribute in sorted(encoded_names(model)):
        hint = hints[attribute]
        properties[name] = _value(hint, above | {model})
        if REQUIRED in field_metadata(hint):
            required.append(name)
    schema: Json = {"type": "object"}
    if properties:
        schema["properties"] = properties
    constraints: tuple[object, ...] = getattr(model, "constraints", ())
    if METADATA_REQUIRED in constraints:
        required.append("metadata")
    if required:
        schema["required"] = sorted(required)
    if issubclass(model, Object) and model.__doc__:
        schema["description"] = model.__doc__.strip().split("\n")[0]
    _constrain(schema, constraints)
    return schema


def _value(hint: Any, above: frozenset[type]) -> Json:
    """Return the schema of a field; `above` are the enclosing models (a recursive model becomes plain JSON)."""
    marks = list(field_metadata(hint))
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    inner = _without_none(bare)
    while get_origin(inner) is Annotated:  # Annotated[Int32 | None, ...]
        marks = [*inner.__metadata__, *marks]
        inner = _without_none(get_args(inner)[0])
    schema = _type(inner, marks, above)
    _constrain(schema, marks)
    return schema


def _without_none(hint: Any) -> Any:
    members = [member for member in get_args(hint) if member is not type(None)]
    if type(None) in get_args(hint):
        return members[0] if len(members) == 1 else Union[tuple(members)]  # noqa: UP007
    return hint


def _type(hint: Any, marks: Iterable[Any], above: frozenset[type]) -> Json:
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if hint is Any:
        return {"x-kubernetes-preserve-unknown-fields": True}
    origin, arguments = get_origin(hint), get_args(hint)
    each = [constraint for mark in marks if isinstance(mark, Each) for constraint in mark.constraints]
    if origin is tuple:
        item = _value(arguments[0], above)
        _constrain(item, each)
        if item.get("type") == "array" and (deeper := [mark for mark in each if isinstance(mark, Each)]):
            _constrain(item["items"], deeper[0].constraints)
        return {"type": "array", "items": item}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = _value(arguments[1], above)
        _constrain(value, each)
        return {"type": "object", "additionalProperties": value}
    if arguments and (members := frozenset(arguments)) in (_INT_OR_STRING_MEMBERS, _QUANTITY_MEMBERS):
        schema: Json = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        if members == _QUANTITY_MEMBERS:
            _constrain(schema, [QUANTITY])
        return schema
    model = without_metadata(hint)
    if model in above:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _object(model, above)


def _constrain(schema: Json, marks: Iterable[Any]) -> None:
    for mark in marks:
        match mark:
            case Len(min=low, max=high):
                _bounds(schema, "Length", low, high)
            case Items(min=low, max=high):
                _bounds(schema, "Items", low, high)
            case Props(min=low, max=high):
                _bounds(schema, "Properties", low, high)
            case Range(min=low, max=high):
                if low is not None:
                    schema["minimum"] = low
                if high is not None:
                    schema["maximum"] = high
            case Pattern(regex=regex):
                schema["pattern"] = regex
            case OneOf():
                schema["enum"] = list(mark.values)
            case Default(value=value):
                schema["default"] = value
            case Format(name=name):
                schema["format"] = name
            case Doc(text=text):
                schema["description"] = text
            case ListMap():
                schema["x-kubernetes-list-type"] = "map"
                schema["x-kubernetes-list-map-keys"] = list(mark.keys)
            case Cel(rule=rule, message=message):
                schema.setdefault("x-kubernetes-validations", []).append({"rule": rule, "message": message})
            case _:
                schema.update(_MARKERS.get(getattr(mark, "name", ""), {}))


_MARKERS: Mapping[str, Json] = {
    ATOMIC.name: {"x-kubernetes-list-type": "atomic"},
    SET.name: {"x-kubernetes-list-type": "set"},
    ATOMIC_MAP.name: {"x-kubernetes-map-type": "atomic"},
    PRESERVE.name: {"x-kubernetes-preserve-unknown-fields": True},
    OPEN.name: {"x-kubernetes-preserve-unknown-fields": True},
    EMBEDDED.name: {"x-kubernetes-embedded-resource": True},
}


def _bounds(schema: Json, noun: str, low: int | None, high: int | None) -> None:
    if low is not None:
        schema[f"min{noun}"] = low
    if high is not None:
        schema[f"max{noun}"] = high
