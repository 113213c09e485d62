"""Check that an `openAPIV3Schema` is structural, that its defaults fit it, and that its rules compile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.apiserver.builtins.internalform import fields_set, shown_rule, shown_schema
from clusterwright.apiserver.schema.celtypes import type_of
from clusterwright.apiserver.schema.rulecosts import cost_errors
from clusterwright.apiserver.schema.rules import RuleSet, compiled_rules, field_path
from clusterwright.apiserver.schema.structural import META_FIELDS, Node, copy_json, prune_value
from clusterwright.apiserver.schema.validation import find_errors
from clusterwright.apiserver.status import FieldError, forbidden, invalid, not_supported, required
from clusterwright.golang.regex import BadPattern, compile_go

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_AT_ROOT: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems "
    "UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations"
)
"""The Go names of the fields that the root of a schema with a status subresource may have."""
_POINTERS: Final = frozenset({"additionalItems", "dependencies", "$ref"})
"""Fields that are written even if they are empty."""
_COMPOSING: Final = frozenset({"anyOf", "allOf", "oneOf", "not"})
Schema = Mapping[str, Any]
_SOUND: Final[set[bytes]] = set()
"""Digests of valid schemas: every write of a CRD contains all of its schemas, and few of them change."""
_MOST_SOUND: Final = 1024


def validate_schema(source: Schema, path: str, has_status: bool) -> list[FieldError]:
    """Return all errors in the schema of a CRD version."""
    digest = sha256(msgspec.json.encode((source, has_status))).digest()
    if digest in _SOUND:
        return []
    errors = _validate_schema(source, path, has_status)
    if not errors:
        if len(_SOUND) >= _MOST_SOUND:
            _SOUND.clear()
        _SOUND.add(digest)
    return errors


def _validate_schema(source: Schema, path: str, has_status: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if has_status:
        errors.extend(_root_with_status(source, path))
    if source.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    shapeless = next((problem for s in every_schema(source) if (problem := _shapeless(s))), "")
    structural = [] if shapeless else sorted([*invariants(source, "root", path), *_completeness(source, path)], key=str)
    node: Node | None = None
    if shapeless or structural:
        errors.extend(structural)
    else:
        node = Node(source)
        defaults = list(default_errors(node, path, root=True))
        errors.extend(defaults)
        if defaults:
            node = None
    problems: list[FieldError] = []
    rules: list[FieldError] = []
    _walk(source, path, _Context(root=True), problems, rules, node)
    costs = cost_errors(node, path, root=True) if node is not None and node.has_rules and not problems else []
    found = [*errors, *problems, *rules, *costs]
    return [invalid(path, "", shapeless)] if shapeless and not found else found


def _root_with_status(source: Schema, path: str) -> Iterator[FieldError]:
    """Return at most one error: the first field from which status cannot be separated."""
    for name in fields_set(source):
        if name == "Type":
            if source["type"] != "object":
                text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
                yield invalid(f"{path}.type", source["type"], text)
                return
        elif name not in _AT_ROOT.split():
            text = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid(path, shown_schema(source), text)
            return


def _shapeless(s: Schema) -> str:
    """Return the fields of a schema (without its inner schemas) that a structural schema may not have."""
    for key in ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"):
        if s.get(key) or (key == "additionalItems" and s.get(key) is not None):
            return f"OpenAPIV3Schema '{'schema' if key == '$schema' else key}' is not supported"
    if s.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return "OpenAPIV3Schema 'items' must be a schema, but is an array" if isinstance(s.get("items"), list) else ""


def every_schema(s: Schema) -> Iterator[Schema]:
    """Yield a schema and all schemas within it."""
    left = [s]
    while left:
        s = left.pop()
        yield s
        children = [c for c in (s.get("items"), s.get("additionalProperties")) if isinstance(c, Mapping)]
        children.extend((s.get("properties") or {}).values())
        if not _COMPOSING.isdisjoint(s):
            children.extend(sub for _, sub in _nested_of(s))
        left.extend(reversed(children))


# ---------------------------------------------------------------- structure


def invariants(s: Schema, level: str, path: str) -> Iterator[FieldError]:
    """Yield the reasons why a schema is not structural. `level` is root, item or field."""
    kind = s.get("type") or ""
    if kind == "array" and not isinstance(s.get("items"), Mapping):
        yield required(f"{path}.items", "must be specified")
    if isinstance(s.get("items"), Mapping):
        yield from invariants(s["items"], "item", f"{path}.items")
    for key, child in (s.get("properties") or {}).items():
        yield from invariants(child, "field", f"{path}.properties[{key}]")
    additional = s.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, Mapping):
            yield from invariants(additional, "field", f"{path}.additionalProperties")
    if s.get("x-kubernetes-int-or-string"):
        for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if s.get(key):
                yield invalid(f"{path}.{key}", True, "must be false if x-kubernetes-int-or-string is true")
    yield from _value_validation(s, path, skip_any_of=s.get("anyOf") == _INT_OR_STRING)
    embedded = bool(s.get("x-kubernetes-embedded-resource"))
    open_type = s.get("x-kubernetes-int-or-string") or s.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    elif not kind and not open_type:
        where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}[level]
        yield required(f"{path}.type", f"must not be empty {where}")
    if embedded and additional is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    properties = s.get("properties") or {}
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
        metadata = properties.get("metadata")
        if metadata is not None:
            yield from _metadata(metadata, f"{path}.properties[metadata]", root=level == "root")
    if embedded and not s.get("x-kubernetes-preserve-unknown-fields") and not properties:
        text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", text)


def _metadata(s: Schema, path: str, *, root: bool) -> Iterator[FieldError]:
    if s.get("type") != "object":
        yield invalid(f"{path}.type", s.get("type") or "", "must be object")
    if root:
        extra = set(fields_set(s)) - {"Type", "Default", "Properties"}
        if extra or not set(s.get("properties") or ()) <= {"name", "generateName"}:
            yield forbidden(path, "must not specify anything other than name and generateName, but metadata is implicitly specified")


_FORBIDDEN_NESTED: Final = (
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
)
"""Fields that are forbidden within alternatives, with their neutral values."""


def _nested_of(s: Schema) -> Iterator[tuple[str, Schema]]:
    for key in ("anyOf", "allOf", "oneOf"):
        for i, sub in enumerate(s.get(key) or ()):
            yield f"{key}[{i}]", sub
    if isinstance(s.get("not"), Mapping):
        yield "not", s["not"]


def _value_validation(s: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    for name, sub in _nested_of(s):
        if skip_any_of and name.startswith("anyOf"):
            continue
        yield from _nested(sub, f"{path}.{name}", skip_any_of=name == "allOf[0]" and sub.get("anyOf") == _INT_OR_STRING)
    pattern = s.get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            compile_go(pattern)
        except BadPattern as e:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {e}")


def _nested(s: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _value_validation(s, path, skip_any_of=skip_any_of)
    if isinstance(s.get("items"), Mapping):
        yield from _nested(s["items"], f"{path}.items")
    for key, child in (s.get("properties") or {}).items():
        yield from _nested(child, f"{path}.properties[{key}]")
    for key, wanted in _FORBIDDEN_NESTED:
        value = None if key == "additionalProperties" and s.get(key) is False else s.get(key)
        if value or (wanted == "undefined" and value is not None):
            yield forbidden(f"{path}.{key}", f"must be {wanted} to be structural")
    if "metadata" in (s.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(s: Schema, path: str) -> Iterator[FieldError]:
    """Yield fields that alternatives at the root mention and the structure lacks."""
    for name, sub in _nested_of(s):
        if name.startswith("anyOf") and s.get("anyOf") == _INT_OR_STRING:
            continue
        yield from _mentioned(sub, s, f"{path}.{name}", path)


def _mentioned(sub: Schema, structure: Schema, path: str, where: str) -> Iterator[FieldError]:
    properties = structure.get("properties") or {}
    for key, child in (sub.get("properties") or {}).items():
        if key in properties:
            yield from _mentioned(child, properties[key], f"{path}.properties[{key}]", f"{where}.properties[{key}]")
        else:
            yield required(f"{where}.properties[{key}]", f"because it is defined in {path}.properties[{key}]")
    if isinstance(sub.get("items"), Mapping):
        if isinstance(structure.get("items"), Mapping):
            yield from _mentioned(sub["items"], structure["items"], f"{path}.items", f"{where}.items")
        else:
            yield required(f"{where}.items", f"because it is defined in {path}.items")
    for name, nested in _nested_of(sub):
        yield from _mentioned(nested, structure, f"{path}.{name}", where)


# ---------------------------------------------------------------- defaults


def default_errors(node: Node, path: str, *, inside_meta: bool = False, root: bool = False) -> Iterator[FieldError]:
    """Yield the errors of a schema's defaults; `root`: it is the schema of a resource."""
    if node.embedded:
        inside_meta = False
    if node.has_default:
        field = f"{path}.default"
        pruned = copy_json(node.default)
        if not inside_meta:
            prune_value(pruned, node)
        if pruned != node.default:
            yield invalid(field, copy_json(node.default), "must not have unknown fields")
        found = find_errors(node, node.default, prefix=field)
        yield from found
        if not found and node.has_rules:
            rules = RuleSet(node)
            yield from (replace(e, field=f"{field}.{e.field}" if e.field else field) for e in rules.validate(copy_json(node.default)))
    if node.items is not None:
        yield from default_errors(node.items, f"{path}.items", inside_meta=inside_meta)
    for key, child in node.properties.items():
        meta = inside_meta or ((root or node.embedded) and key in META_FIELDS)
        yield from default_errors(child, f"{path}.properties[{key}]", inside_meta=meta)


# ---------------------------------------------------------------- everything else


@dataclass(frozen=True, slots=True)
class _Context:
    root: bool = False
    inside_meta: bool = False
    no_defaults: str = ""
    uncorrelatable: str = ""


def _walk(s: Schema, path: str, context: _Context, errors: list[FieldError], rules: list[FieldError], node: Node | None) -> None:
    before = len(errors)
    errors.extend(_standard(s, path, context))
    if s.get("uniqueItems"):
        errors.append(forbidden(f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
    plain = replace(context, root=False)
    additional = s.get("additionalProperties")
    if additional is not None:
        if s.get("properties") and additional is not True:
            errors.append(forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"))
        if isinstance(additional, Mapping):
            inner = replace(plain, no_defaults="inside additionalProperties applying to object metadata") if context.inside_meta else plain
            _walk(additional, f"{path}.additionalProperties", inner, errors, rules, node.additional if node else None)
    for key, child in (s.get("properties") or {}).items():
        inner = plain
        if (context.root or s.get("x-kubernetes-embedded-resource")) and key in META_FIELDS:
            inner = replace(inner, inside_meta=True, no_defaults=f"in top-level {key}" if context.root else inner.no_defaults)
        _walk(child, f"{path}.properties[{key}]", inner, errors, rules, node.properties.get(key) if node else None)
    for name, sub in _nested_of(s):
        _walk(sub, f"{path}.{name}", plain, errors, rules, None)
    for key in ("definitions", "dependencies"):
        for name, sub in (s.get(key) or {}).items():
            if isinstance(sub, Mapping):
                _walk(sub, f"{path}.{key}[{name}]", plain, errors, rules, None)
    items, inner = s.get("items"), plain
    if s.get("x-kubernetes-list-type") != "map" and not inner.uncorrelatable:
        inner = replace(inner, uncorrelatable=path)
    if isinstance(items, Mapping):
        _walk(items, f"{path}.items", inner, errors, rules, node.items if node else None)
    for i, item in enumerate(items if isinstance(items, list) else ()):
        _walk(item, f"{path}.items[{i}]", inner, errors, rules, None)
    if s.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    errors.extend(_map_and_list_types(s, path))
    errors.extend(_rule_forms(s, path))
    if node is not None and len(errors) == before and s.get("x-kubernetes-validations"):
        rules.extend(_rule_programs(s, path, context, node))


def _standard(s: Schema, path: str, context: _Context) -> Iterator[FieldError]:
    kind = s.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if s.get("default") is not None and context.no_defaults:
        yield forbidden(f"{path}.default", f"must not be set {context.no_defaults}")
    for key in ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        if s.get(key) or (key in _POINTERS and s.get(key) is not None):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(s.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if context.inside_meta and s.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _map_and_list_types(s: Schema, path: str) -> Iterator[FieldError]:
    kind = s.get("type") or ""
    map_type, list_type = s.get("x-kubernetes-map-type"), s.get("x-kubernetes-list-type")
    keys = s.get("x-kubernetes-list-map-keys") or []
    items = s.get("items") if isinstance(s.get("items"), Mapping) else None
    if map_type is not None and kind != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None and kind != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    elif list_type == "set" and items is not None:
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
            yield invalid(f"{path}.items.x-kubernetes-list-type", items.get("x-kubernetes-list-type"), text)
        elif items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), text)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        field = f"{path}.x-kubernetes-list-type"
        yield required(field, text) if list_type is None else invalid(field, list_type, text)
    if list_type == "map":
        yield from _map_list(s, items, keys, path)
    if items is not None and list_type in ("set", "map"):
        if items.get("nullable"):
            yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
        if list_type == "map":
            yield from _key_rules(items, keys, path)


def _map_list(s: Schema, items: Any, keys: list[str], path: str) -> Iterator[FieldError]:
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if s.get("items") is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items is None:
        yield invalid(f"{path}.items", s.get("items"), "must only have a single schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        yield invalid(f"{path}.items.type", items.get("type") or "", "must be object if parent array's x-kubernetes-list-type is map")
        return
    seen: set[str] = set()
    for key in keys:
        found = (items.get("properties") or {}).get(key)
        if found is None:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif found.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", items.get("type"), text)
        if key in seen:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        seen.add(key)


def _key_rules(items: Schema, keys: list[str], path: str) -> Iterator[FieldError]:
    needed = set(items.get("required") or ())
    for key in keys:
        found = (items.get("properties") or {}).get(key)
        if found is None:
            continue
        here = f"{path}.items.properties[{key}]"
        if key not in needed and found.get("default") is None:
            yield required(
                f"{here}.default", "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
        if found.get("nullable"):
            yield forbidden(f"{here}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")


_LINE_BREAK: Final = re.compile(r"[\n\r]")


def _rule_forms(s: Schema, path: str) -> Iterator[FieldError]:
    for i, rule in enumerate(s.get("x-kubernetes-validations") or ()):
        here = f"{path}.x-kubernetes-validations[{i}]"
        text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
        if not text:
            yield required(f"{here}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{here}.message", message, "must be non-empty if specified")
        elif _LINE_BREAK.search(message.strip()):
            yield invalid(f"{here}.message", message, "must not contain line breaks")
        elif _LINE_BREAK.search(text) and not message.strip():
            yield required(f"{here}.message", "message must be specified if rule contains line breaks")
        expression = str(rule.get("messageExpression") or "")
        if expression and not expression.strip():
            yield required(f"{here}.messageExpression", "messageExpression must be non-empty if specified")
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield not_supported(f"{here}.reason", reason, _REASONS)
        where = str(rule.get("fieldPath") or "")
        if where:
            if not where.strip():
                yield invalid(f"{here}.fieldPath", where, "must be non-empty if specified")
            if _LINE_BREAK.search(where):
                yield invalid(f"{here}.fieldPath", where, "must not contain line breaks")
            try:
                if not any(_shapeless(inner) for inner in every_schema(s)):
                    field_path(where, Node(s))
            except ValueError:
                yield invalid(f"{here}.fieldPath", where, "must be a valid path")


def _rule_programs(s: Schema, path: str, context: _Context, node: Node) -> Iterator[FieldError]:
    kind, _ = type_of(node, root=context.root or node.embedded)
    for i, rule in enumerate(compiled_rules(node, kind)):
        here = f"{path}.x-kubernetes-validations[{i}]"
        if rule.problem:
            yield invalid(f"{here}.rule", shown_rule(rule.source), rule.problem)
            continue
        if rule.message_problem:
            yield invalid(f"{here}.messageExpression", shown_rule(rule.source), rule.message_problem)
        if rule.uses_old:
            if context.uncorrelatable:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelatable}"
                yield invalid(f"{here}.rule", rule.source.get("rule"), text)
        elif rule.source.get("optionalOldSelf") is not None:
            yield invalid(f"{here}.optionalOldSelf", rule.source["optionalOldSelf"], "may not be set if oldSelf is not used in rule")
