"""Parts of a CustomResourceDefinition as kube-apiserver's errors show them: in its internal form, with every field, by the names in Go."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.status import Verbatim

Form = Callable[[Any], Any]


def _text(value: Any) -> Any:
    return value or ""


def _flag(value: Any) -> Any:
    return bool(value)


def _as_is(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    return value or 0


def _each(form: Form) -> Form:
    return lambda values: None if values is None else [form(value) for value in values]


def _named(form: Form) -> Form:
    return lambda values: None if values is None else {key: form(values[key]) for key in sorted(values)}


def _struct(*fields: tuple[str, str, Form]) -> Form:
    return lambda value: None if value is None else {name: form(value.get(key)) for name, key, form in fields}


def _schema(value: Any) -> Any:
    return None if value is None else {name: form(value.get(key)) for name, key, form in _SCHEMA}


def _items(value: Any) -> Any:
    if value is None:
        return None
    many = isinstance(value, Sequence)
    return {"Schema": None if many else _schema(value), "JSONSchemas": [_schema(item) for item in value] if many else None}


def _schema_or_flag(value: Any) -> Any:
    if value is None:
        return None
    whole = isinstance(value, Mapping)
    return {"Allows": whole or bool(value), "Schema": _schema(value) if whole else None}


def _dependency(value: Any) -> Any:
    whole = isinstance(value, Mapping)
    return {"Schema": _schema(value) if whole else None, "Property": None if whole else value}


_RULE: Final = _struct(
    ("Rule", "rule", _text),
    ("Message", "message", _text),
    ("MessageExpression", "messageExpression", _text),
    ("Reason", "reason", _as_is),
    ("FieldPath", "fieldPath", _text),
    ("OptionalOldSelf", "optionalOldSelf", _as_is),
)
_SCHEMA: Final[tuple[tuple[str, str, Form], ...]] = (
    ("ID", "id", _text),
    ("Schema", "$schema", _text),
    ("Ref", "$ref", _as_is),
    ("Description", "description", _text),
    ("Type", "type", _text),
    ("Nullable", "nullable", _flag),
    ("Format", "format", _text),
    ("Title", "title", _text),
    ("Default", "default", _as_is),
    ("Maximum", "maximum", _as_is),
    ("ExclusiveMaximum", "exclusiveMaximum", _flag),
    ("Minimum", "minimum", _as_is),
    ("ExclusiveMinimum", "exclusiveMinimum", _flag),
    ("MaxLength", "maxLength", _as_is),
    ("MinLength", "minLength", _as_is),
    ("Pattern", "pattern", _text),
    ("MaxItems", "maxItems", _as_is),
    ("MinItems", "minItems", _as_is),
    ("UniqueItems", "uniqueItems", _flag),
    ("MultipleOf", "multipleOf", _as_is),
    ("Enum", "enum", _as_is),
    ("MaxProperties", "maxProperties", _as_is),
    ("MinProperties", "minProperties", _as_is),
    ("Required", "required", _as_is),
    ("Items", "items", _items),
    ("AllOf", "allOf", _each(_schema)),
    ("OneOf", "oneOf", _each(_schema)),
    ("AnyOf", "anyOf", _each(_schema)),
    ("Not", "not", _schema),
    ("Properties", "properties", _named(_schema)),
    ("AdditionalProperties", "additionalProperties", _schema_or_flag),
    ("PatternProperties", "patternProperties", _named(_schema)),
    ("Dependencies", "dependencies", _named(_dependency)),
    ("AdditionalItems", "additionalItems", _schema_or_flag),
    ("Definitions", "definitions", _named(_schema)),
    ("ExternalDocs", "externalDocs", _struct(("Description", "description", _text), ("URL", "url", _text))),
    ("Example", "example", _as_is),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", _as_is),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", _flag),
    ("XIntOrString", "x-kubernetes-int-or-string", _flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", _as_is),
    ("XListType", "x-kubernetes-list-type", _as_is),
    ("XMapType", "x-kubernetes-map-type", _as_is),
    ("XValidations", "x-kubernetes-validations", _each(_RULE)),
)
_SCALE: Final = _struct(
    ("SpecReplicasPath", "specReplicasPath", _text),
    ("StatusReplicasPath", "statusReplicasPath", _text),
    ("LabelSelectorPath", "labelSelectorPath", _as_is),
)
_COLUMN: Final = _struct(
    ("Name", "name", _text),
    ("Type", "type", _text),
    ("Format", "format", _text),
    ("Description", "description", _text),
    ("Priority", "priority", _number),
    ("JSONPath", "jsonPath", _text),
)
_VERSION: Final = _struct(
    ("Name", "name", _text),
    ("Served", "served", _flag),
    ("Storage", "storage", _flag),
    ("Deprecated", "deprecated", _flag),
    ("DeprecationWarning", "deprecationWarning", _as_is),
    ("Schema", "schema", _struct(("OpenAPIV3Schema", "openAPIV3Schema", _schema))),
    ("Subresources", "subresources", _struct(("Status", "status", _as_is), ("Scale", "scale", _SCALE))),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", _each(_COLUMN)),
    ("SelectableFields", "selectableFields", _each(_struct(("JSONPath", "jsonPath", _text)))),
)


def fields_set(schema: Mapping[str, Any]) -> list[str]:
    """Return the Go names of the fields that a schema sets itself, in Go's order."""
    return [name for name, key, form in _SCHEMA if (schema.get(key) if form in (_text, _flag) else schema.get(key) is not None)]


def shown_schema(schema: Mapping[str, Any]) -> Verbatim:
    """Return a schema."""
    return _shown(_schema(schema))


def shown_rule(rule: Mapping[str, Any]) -> Verbatim:
    """Return a validation rule."""
    return _shown(_RULE(rule))


def shown_versions(versions: Sequence[Json] | None, shared: Sequence[str]) -> Verbatim:
    """Return versions without the parts that all of them share, which are at the top of the spec."""
    if versions is None:
        return _shown(None)
    return _shown([_VERSION({key: value for key, value in version.items() if key not in shared}) for version in versions])


def _shown(value: Any) -> Verbatim:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Verbatim(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
