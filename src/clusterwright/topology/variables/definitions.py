"""Definitions of variables in a ClusterClass: names, metadata, schemas, rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins.structure import default_errors, invariants
from clusterwright.apiserver.metadata import validate_annotations, validate_labels
from clusterwright.apiserver.schema.celtypes import type_of
from clusterwright.apiserver.schema.rulecosts import cost_errors
from clusterwright.apiserver.schema.rules import RuleSet, compiled_rules, field_path
from clusterwright.apiserver.schema.structural import Node, copy_json
from clusterwright.apiserver.schema.validation import find_errors
from clusterwright.apiserver.status import FieldError, Verbatim, forbidden, invalid, not_supported, required
from clusterwright.golang.quoting import quote
from clusterwright.topology.variables.schema import VALUE, structural

BUILTIN: Final = "builtin"
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
_MESSAGE_MAXIMUM: Final = 2048


def validate_definitions(variables: Sequence[Json], field: str) -> list[FieldError]:
    """Return all errors of the variables of a ClusterClass, or of those that an extension reported."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for variable in variables:
        name = variable.get("name") or ""
        if name in seen:
            text = f"variable name must be unique. Variable with name {quote(name)} is defined more than once"
            errors.append(invalid(f"{field}[{name}].name", name, text))
        seen.add(name)
    for variable in variables:
        name = variable.get("name") or ""
        here = f"{field}[{name}]"
        props = (variable.get("schema") or {}).get("openAPIV3Schema") or {}
        schema = f"{here}.schema.openAPIV3Schema"
        errors.extend(_name(name, f"{here}.name"))
        errors.extend(_metadata(variable.get("deprecatedV1Beta1Metadata"), f"{here}.deprecatedV1Beta1Metadata"))
        errors.extend(_schema_metadata(props, schema))
        errors.extend(_schema(structural(props), schema))
    return errors


def _name(name: str, field: str) -> Iterator[FieldError]:
    if not name:
        yield required(field, "variable name must be defined")
    if name == BUILTIN:
        yield invalid(field, name, f"{quote(BUILTIN)} is a reserved variable name")
    if "." in name:
        yield invalid(field, name, 'variable name cannot contain "."')


def _metadata(metadata: Json | None, field: str) -> Iterator[FieldError]:
    yield from validate_labels((metadata or {}).get("labels") or {}, f"{field}.labels")
    yield from validate_annotations((metadata or {}).get("annotations") or {}, f"{field}.annotations")


def _schema_metadata(props: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    yield from _metadata(props.get("x-metadata"), f"{field}.x-metadata")
    children = [(k, props[k]) for k in ("additionalProperties", "items") if isinstance(props.get(k), Mapping)]
    children.extend((f"properties[{k}]", v) for k, v in (props.get("properties") or {}).items())
    for name, child in children:
        yield from _schema_metadata(child, f"{field}.{name}")


def _schema(source: Json, field: str) -> list[FieldError]:
    """Return the errors of the structure, else of the defaults, else of the rest: the first stage with errors counts."""
    found = list(invariants(source, "field", field))
    if found:
        return found
    node = Node(source)
    found = list(default_errors(node, field))
    if found:
        return found
    schema_errors, rule_errors = _walk(source, field, node, "", root=True)
    return [*schema_errors, *rule_errors, *([] if schema_errors else cost_errors(node, field, messages=True))]


_Findings = tuple[list[FieldError], list[FieldError]]
"""The errors of a schema, and the errors of its rules, which are checked only if the schema is valid."""


def _walk(source: Json, field: str, node: Node | None, uncorrelatable: str, *, root: bool = False) -> _Findings:
    """Check a schema; `node` is None where rules do not compile: below `not`, `allOf`, `oneOf`, `anyOf`."""
    kind = source.get("type") or ""
    if kind and kind not in _TYPES:
        return [not_supported(f"{field}.type", kind, _TYPES)], []
    errors: list[FieldError] = []
    rule_errors: list[FieldError] = []
    for name, value in _samples(source):
        errors.extend(find_errors(Node(source), value, prefix=f"{field}.{name}", ranges=False))
    if source.get("additionalProperties") and source.get("properties"):
        errors.append(forbidden(field, "additionalProperties and properties are mutually exclusive"))
    inside = uncorrelatable or (f"{field}.items" if "items" in source else "")
    for name, child, child_node, where in _children(source, node, uncorrelatable, inside):
        found = _walk(child, f"{field}.{name}", child_node, where)
        errors.extend(found[0])
        rule_errors.extend(found[1])
    rules = source.get("x-kubernetes-validations") or ()
    for i, rule in enumerate(rules):
        errors.extend(_rule_form(rule, f"{field}.x-kubernetes-validations[{i}]", Node(source)))
    if rules and node is not None and not errors:
        rule_errors.extend(_rule_programs(source, field, node, uncorrelatable if root else inside))
        if not rule_errors:
            rule_errors.extend(_judged_samples(source, field))
    return errors, rule_errors


def _children(source: Json, node: Node | None, outside: str, inside: str) -> Iterator[tuple[str, Json, Node | None, str]]:
    if "additionalProperties" in source:
        yield "additionalProperties", source["additionalProperties"], node.additional if node else None, outside
    for key, child in (source.get("properties") or {}).items():
        yield f"properties[{key}]", child, node.properties[key] if node else None, outside
    if "items" in source:
        yield "items", source["items"], node.items if node else None, inside
    if "not" in source:
        yield "not", source["not"], None, inside
    for name in ("allOf", "oneOf", "anyOf"):
        for i, child in enumerate(source.get(name) or ()):
            yield f"{name}[{i}]", child, None, inside


def _samples(source: Json) -> Iterator[tuple[str, Any]]:
    """Yield the example and the values of the enumeration, which must fit the schema."""
    if "example" in source:
        yield "example", source["example"]
    for i, value in enumerate(source.get("enum") or ()):
        yield f"enum[{i}]", value


def _judged_samples(source: Json, field: str) -> Iterator[FieldError]:
    rules = RuleSet(Node({"type": "object", "properties": {VALUE: source}}))
    for name, value in _samples(source):
        for error in rules.validate({VALUE: copy_json(value)}):
            yield FieldError(error.type, f"{field}.{name}{error.field.removeprefix(VALUE)}", error.value, error.detail)


def _rule_form(rule: Json, field: str, node: Node) -> Iterator[FieldError]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        yield required(f"{field}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{field}.message", message, "message must be non-empty if specified")
    elif len(message.encode()) > _MESSAGE_MAXIMUM:
        yield invalid(f"{field}.message", f"{message[:10]}...", f"message must have a maximum length of {_MESSAGE_MAXIMUM} characters")
    elif _LINE_BREAK.search(message.strip()):
        yield invalid(f"{field}.message", message, "message must not contain line breaks")
    elif _LINE_BREAK.search(text) and not message.strip():
        yield required(f"{field}.message", "message must be specified if rule contains line breaks")
    expression = str(rule.get("messageExpression") or "")
    if expression and not expression.strip():
        yield required(f"{field}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason and reason not in _REASONS:
        yield not_supported(f"{field}.reason", reason, _REASONS)
    path = str(rule.get("fieldPath") or "")
    if not path:
        return
    if not path.strip():
        yield invalid(f"{field}.fieldPath", path, "fieldPath must be non-empty if specified")
    if _LINE_BREAK.search(path):
        yield invalid(f"{field}.fieldPath", path, "fieldPath must not contain line breaks")
    try:
        field_path(path, node)
    except ValueError as e:
        yield invalid(f"{field}.fieldPath", path, f"fieldPath must be a valid path: {e}")


def _rule_programs(source: Json, field: str, node: Node, uncorrelatable: str) -> Iterator[FieldError]:
    kind, _ = type_of(node)
    for i, rule in enumerate(compiled_rules(node, kind)):
        here = f"{field}.x-kubernetes-validations[{i}]"
        shown = _dumped(source["x-kubernetes-validations"][i])
        if rule.problem:
            yield invalid(f"{here}.rule", shown, rule.problem)
        if rule.message_problem:
            yield invalid(f"{here}.messageExpression", shown, rule.message_problem)
        if rule.uses_old and uncorrelatable:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            yield invalid(f"{here}.rule", rule.source.get("rule"), text)


def _dumped(rule: Json) -> Verbatim:
    """Return a whole rule in the form of errors: with upstream's internal field names."""
    texts = {name: rule.get(name[0].lower() + name[1:]) or "" for name in ("Rule", "Message", "MessageExpression", "FieldPath")}
    others = {name: rule.get(name[0].lower() + name[1:]) for name in ("Reason", "OptionalOldSelf")}
    ordered = {name: (texts | others)[name] for name in ("Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf")}
    return Verbatim(msgspec.json.encode(ordered).decode())
