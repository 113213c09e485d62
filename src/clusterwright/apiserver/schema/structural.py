"""A structural schema: one `Node` per JSON-schema node of a CRD, with the facts for pruning, defaulting and validation.

Everything here is a pure function of plain JSON values. A node is built once per schema and shared by all servers of the process; the
functions below skip subtrees without relevant content (`has_defaults`, `closed`, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class Node:
    """One node of a structural schema. `source` is its JSON schema."""

    __slots__ = (
        "additional",
        "additional_open",
        "all_of",
        "any_of",
        "default",
        "embedded",
        "enum",
        "format",
        "has_default",
        "has_defaults",
        "has_embedded",
        "has_rules",
        "has_unique",
        "int_or_string",
        "items",
        "keys",
        "list_type",
        "map_type",
        "not_",
        "nullable",
        "ok",
        "one_of",
        "preserve",
        "programs",
        "properties",
        "required",
        "source",
        "subtree_all_open",
        "type",
        "types",
    )

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.source = source
        self.type: str = source.get("type") or ""
        self.int_or_string: bool = bool(source.get("x-kubernetes-int-or-string"))
        self.types: tuple[str, ...] = ("integer", "string") if self.int_or_string else ((self.type,) if self.type else ())
        self.nullable: bool = bool(source.get("nullable"))
        self.preserve: bool = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded: bool = bool(source.get("x-kubernetes-embedded-resource"))
        self.list_type: str = source.get("x-kubernetes-list-type") or ""
        self.map_type: str = source.get("x-kubernetes-map-type") or ""
        self.keys: tuple[str, ...] = tuple(source.get("x-kubernetes-list-map-keys") or ())
        self.format: str = source.get("format") or ""
        self.enum: list[Any] | None = source.get("enum")
        self.required: tuple[str, ...] = tuple(source.get("required") or ())
        self.has_default: bool = source.get("default") is not None
        self.default: Any = source.get("default")
        properties = source.get("properties")
        self.properties: dict[str, Node] = {k: Node(v) for k, v in properties.items()} if isinstance(properties, Mapping) else {}
        additional = source.get("additionalProperties")
        self.additional: Node | None = Node(additional) if isinstance(additional, Mapping) else None
        self.additional_open: bool = additional is True
        items = source.get("items")
        self.items: Node | None = Node(items) if isinstance(items, Mapping) else None
        self.all_of = [Node(s) for s in source.get("allOf") or ()]
        self.any_of = [Node(s) for s in source.get("anyOf") or ()]
        self.one_of = [Node(s) for s in source.get("oneOf") or ()]
        not_ = source.get("not")
        self.not_: Node | None = Node(not_) if isinstance(not_, Mapping) else None
        children = [*self.properties.values(), *([self.additional] if self.additional else []), *([self.items] if self.items else [])]
        self.has_defaults: bool = any(c.has_default or c.has_defaults for c in children)
        self.has_embedded: bool = self.embedded or any(c.has_embedded for c in children)
        self.has_unique: bool = self.list_type in ("set", "map") or any(c.has_unique for c in children)
        self.has_rules: bool = bool(source.get("x-kubernetes-validations")) or any(c.has_rules for c in (*children, *self.all_of))
        self.subtree_all_open: bool = self.preserve and not children
        self.programs: Any = None
        self.ok: Any = None

    def child(self, key: str) -> Node | None:
        """Return the schema of a member of an object, or None."""
        return self.properties.get(key) or self.additional


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if type(value) is dict:
        return {k: copy_json(v) for k, v in value.items()}
    if type(value) is list:
        return [copy_json(v) for v in value]
    return value


def prune(obj: dict[str, Any], node: Node) -> list[str]:
    """Drop, in place, the fields of a resource that its schema does not have, and forbidden nulls.

    Returns the paths of unknown fields, sorted. `apiVersion`, `kind` and `metadata` of the resource and of embedded resources are
    never touched. A null that has a default stays: defaulting replaces it.
    """
    unknown: list[str] = []
    _prune_object(obj, node, "", unknown, True, True)
    if len(unknown) > 1:
        unknown.sort()
    return unknown


def prune_value(value: Any, node: Node) -> None:
    """Drop, in place, unknown fields of a value that is not a resource; nulls stay."""
    if node.embedded and type(value) is dict:
        _prune_object(value, node, "", [], True, False)
    else:
        _prune_value(value, node, "value", [], False)


def unknown_fields(value: Any, node: Node, path: str) -> list[str]:
    """Return the paths, sorted, of the fields of a value that its schema does not have; the value is called `path`."""
    unknown: list[str] = []
    _prune_value(copy_json(value), node, path, unknown, False)
    return sorted(unknown)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _prune_object(value: dict[str, Any], node: Node | None, path: str, unknown: list[str], root: bool, nulls: bool) -> None:
    if node is None:
        unknown.extend(_join(path, k) for k in value)
        value.clear()
        return
    if node.subtree_all_open:
        return
    properties = node.properties
    dropped: list[str] | None = None
    skip_meta = root or node.embedded
    for key, item in value.items():
        child = properties.get(key)
        if skip_meta and key in META_FIELDS:
            continue
        if child is None:
            child = node.additional
            if child is None:
                if node.additional_open:
                    if type(item) is dict or type(item) is list:
                        _prune_value(item, None, _join(path, key), unknown, nulls)
                elif not node.preserve:
                    if dropped is None:
                        dropped = []
                    dropped.append(key)
                    if key not in META_FIELDS or path:
                        unknown.append(_join(path, key))
                continue
        kind = type(item)
        if kind is dict:
            _prune_object(item, child, f"{path}.{key}" if path else key, unknown, False, nulls)
        elif kind is list:
            if child.items is not None or not child.preserve:
                _prune_value(item, child, f"{path}.{key}" if path else key, unknown, nulls)
        elif item is None and nulls and not child.nullable and not child.has_default:
            if dropped is None:
                dropped = []
            dropped.append(key)
    if dropped:
        for key in dropped:
            del value[key]


def _prune_value(value: Any, node: Node | None, path: str, unknown: list[str], nulls: bool) -> None:
    if type(value) is dict:
        _prune_object(value, node, path, unknown, False, nulls)
    elif type(value) is list:
        if node is not None and node.preserve and node.items is None:
            return
        items = node.items if node is not None else None
        for i, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                _prune_value(item, items, f"{path}[{i}]", unknown, nulls)


def apply_defaults(value: Any, node: Node) -> None:
    """Fill in defaults, in place; a forbidden null counts as absent."""
    if not node.has_defaults:
        return
    if type(value) is dict:
        properties = node.properties
        for key, child in properties.items():
            if child.has_default and (key not in value or (value[key] is None and not child.nullable)):
                value[key] = copy_json(child.default)
        additional = node.additional
        for key, item in value.items():
            child_ = properties.get(key)
            if child_ is None:
                child_ = additional
                if child_ is None:
                    continue
                if item is None and child_.has_default and not child_.nullable:
                    value[key] = item = copy_json(child_.default)
            if child_.has_defaults:
                apply_defaults(item, child_)
    elif type(value) is list and node.items is not None:
        items = node.items
        for i, item in enumerate(value):
            if item is None and items.has_default and not items.nullable:
                value[i] = item = copy_json(items.default)
            apply_defaults(item, items)
