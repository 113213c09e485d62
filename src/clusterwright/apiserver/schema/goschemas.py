"""JSONSchemaProps of CustomResourceDefinitions, decoded as Go does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clusterwright.apiserver.schema.goscalars import SCALARS, decode_bool, decode_string, mismatch

Json = dict[str, Any]
Decoder = Callable[[Any, str, list[str]], Any]
"""A function of a JSON value, its path, and a list for the paths of unknown fields; raises DecodeError."""

_RULE_TEXTS: Final = ("rule", "message", "messageExpression", "fieldPath")
_SCHEMA_TEXTS: Final = frozenset({"id", "$schema", "description", "type", "format", "title", "pattern"})
_SCHEMA_FLAGS: Final = frozenset(
    {"exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}
)
_SCHEMA_POINTERS: Final[dict[str, str]] = {
    "$ref": "string",
    "maximum": "float64",
    "minimum": "float64",
    "multipleOf": "float64",
    "maxLength": "int64",
    "minLength": "int64",
    "maxItems": "int64",
    "minItems": "int64",
    "maxProperties": "int64",
    "minProperties": "int64",
    "x-kubernetes-preserve-unknown-fields": "bool",
    "x-kubernetes-list-type": "string",
    "x-kubernetes-map-type": "string",
    "default": "any",
    "example": "any",
}


def decode_schema(value: Any, path: str, unknown: list[str]) -> Any:
    """Decode an apiextensions.v1.JSONSchemaProps."""
    if value is None:
        return None
    if type(value) is not dict:
        raise mismatch(value, path, "v1.JSONSchemaProps")
    out: Json = {}
    for key, item in value.items():
        here = f"{path}.{key}"
        if key in _SCHEMA_TEXTS or key in _SCHEMA_FLAGS:
            made: Any = decode_string(item, here, unknown) if key in _SCHEMA_TEXTS else decode_bool(item, here, unknown)
            made = made or None
        elif key in _SCHEMA_POINTERS:
            made = None if item is None else SCALARS[_SCHEMA_POINTERS[key]](item, here, unknown)
        elif key in ("properties", "patternProperties", "definitions"):
            made = _map_of_schemas(item, here, unknown)
        elif key in ("allOf", "oneOf", "anyOf"):
            made = _list_of_schemas(item, here, unknown)
        elif key == "not":
            made = decode_schema(item, here, unknown)
        elif key == "items":
            made = _list_of_schemas(item, here, unknown) if type(item) is list else decode_schema(item, here, unknown)
        elif key in ("additionalProperties", "additionalItems"):
            made = item if type(item) is bool else decode_schema(item, here, unknown)
        elif key in ("required", "x-kubernetes-list-map-keys"):
            made = _list_of_texts(item, here, unknown)
        elif key == "enum":
            if item is not None and type(item) is not list:
                raise mismatch(item, here, "[]v1.JSON")
            made = item or None
        elif key == "x-kubernetes-validations":
            made = _rules(item, here, unknown)
        elif key in ("dependencies", "externalDocs"):
            made = item or None
        else:
            unknown.append(here)
            continue
        if made is not None:
            out[key] = made
    return out


def _map_of_schemas(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not dict:
        raise mismatch(value, path, "map[string]v1.JSONSchemaProps")
    return {k: decode_schema(v, f"{path}.{k}", unknown) or {} for k, v in (value or {}).items()} or None


def _list_of_texts(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not list:
        raise mismatch(value, path, "[]string")
    return [decode_string(v, f"{path}[{i}]", unknown) for i, v in enumerate(value or ())] or None


def _list_of_schemas(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not list:
        raise mismatch(value, path, "[]v1.JSONSchemaProps")
    return [decode_schema(v, f"{path}[{i}]", unknown) or {} for i, v in enumerate(value or ())] or None


def _rules(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not list:
        raise mismatch(value, path, "v1.ValidationRules")
    out = []
    for i, rule in enumerate(value or ()):
        if type(rule) is not dict:
            raise mismatch(rule, f"{path}[{i}]", "v1.ValidationRule")
        made: Json = {"rule": ""}
        for key, item in rule.items():
            here = f"{path}[{i}].{key}"
            if key in _RULE_TEXTS:
                text = decode_string(item, here, unknown)
                if text or key == "rule":
                    made[key] = text
            elif key in ("reason", "optionalOldSelf"):
                if item is not None:
                    made[key] = (decode_string if key == "reason" else decode_bool)(item, here, unknown)
            else:
                unknown.append(here)
        out.append(made)
    return out or None
