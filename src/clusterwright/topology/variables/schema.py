"""The compiled schema of a variable, for defaulting, validation and CEL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.schema.rules import RuleSet
from clusterwright.apiserver.schema.structural import Node

VALUE: Final = "variableValue"
"""The key of the value in an object that wraps it for pruning, defaulting and CEL, which accept only objects."""

_PLAIN: Final = (
    "type",
    "required",
    "maxProperties",
    "minProperties",
    "maxItems",
    "minItems",
    "format",
    "maxLength",
    "minLength",
    "pattern",
    "maximum",
    "minimum",
)
_FLAGS: Final = (
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
)
_ONE: Final = ("additionalProperties", "items", "not")
_MANY: Final = ("oneOf", "anyOf", "allOf")
_RULE: Final = ("rule", "message", "messageExpression", "reason", "fieldPath")


def structural(props: Mapping[str, Any]) -> Json:
    """Return the JSON schema for a variable's `openAPIV3Schema`: unsupported parts are dropped; a null default or enum counts as absent."""
    out: Json = {k: props[k] for k in _PLAIN if props.get(k) is not None}
    out.update({k: True for k in _FLAGS if props.get(k)})
    out.update({k: props[k] for k in ("default", "example") if props.get(k) is not None})
    if props.get("enum"):
        out["enum"] = [e for e in props["enum"] if e is not None]
    out.update({k: structural(props[k]) for k in _ONE if isinstance(props.get(k), Mapping)})
    if props.get("properties"):
        out["properties"] = {k: structural(v or {}) for k, v in props["properties"].items()}
    out.update({k: [structural(s or {}) for s in props[k]] for k in _MANY if props.get(k)})
    rules = props.get("x-kubernetes-validations")
    if rules:
        out["x-kubernetes-validations"] = [{k: r[k] for k in _RULE if r.get(k)} for r in (rule or {} for rule in rules)]
    return out


class VariableSchema:
    """A variable's schema. `node` is for the value itself, `wrapped` for an object with it as its only property."""

    def __init__(self, source: Json) -> None:
        self.source = source
        self.node = Node(source)
        self.wrapped = Node({"type": "object", "properties": {VALUE: source}})

    @cached_property
    def rules(self) -> RuleSet:
        """Return the CEL rules for the wrapped value. Invalid unchanged values are refused too: values are not ratcheted."""
        return RuleSet(self.wrapped, ratcheting=False)


def compiled(definition: Mapping[str, Any]) -> VariableSchema:
    """Return the schema of one definition, `{schema: {openAPIV3Schema}}`; equal ones are compiled once."""
    props = (definition.get("schema") or {}).get("openAPIV3Schema") or {}
    return _compiled(msgspec.json.encode(props))


@lru_cache(maxsize=4096)
def _compiled(props: bytes) -> VariableSchema:
    return VariableSchema(structural(msgspec.json.decode(props)))
