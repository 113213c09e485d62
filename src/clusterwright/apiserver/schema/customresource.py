"""The handler of a custom resource, built from its CRD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.names import dns_label_1035
from clusterwright.apiserver import metadata
from clusterwright.apiserver.interfaces import Column, DecodeError, KindHandler, NameRule
from clusterwright.apiserver.schema.checks import is_valid
from clusterwright.apiserver.schema.gotypes import decode_metadata
from clusterwright.apiserver.schema.kindschema import KindSchema
from clusterwright.apiserver.schema.rules import UNCHECKED, RuleSet, blocks_rules
from clusterwright.apiserver.schema.structural import Node, apply_defaults, copy_json, prune
from clusterwright.apiserver.schema.validation import ABSENT, find_duplicates, find_errors
from clusterwright.apiserver.status import FieldError, invalid, required, show
from clusterwright.golang.printing import printed

AGE: Final = Column(
    "Age",
    "date",
    description=(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in "
        "happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in "
        "UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    ),
    json_path=".metadata.creationTimestamp",
)
_GO_TYPES: Final = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}", list: "[]interface {}"}


def compile_crd(crd: Json, version: str) -> KindHandler:
    """Return the handler of one version of a valid CRD; shared by all servers with the same CRD."""
    spec = crd["spec"]
    chosen = next(v for v in spec["versions"] if v["name"] == version)
    return _compiled(GroupVersionKind(spec["group"], version, spec["names"]["kind"]), msgspec.json.encode(chosen, order="sorted"))


@lru_cache(maxsize=512)
def _compiled(gvk: GroupVersionKind, version: bytes) -> KindHandler:
    return CustomResource(gvk, msgspec.json.decode(version))


_MANY_RULES: Final = 100


class CustomResource:
    """A `KindHandler` built from one version of a CRD."""

    name_rule: NameRule = "subdomain"

    def __init__(self, gvk: GroupVersionKind, version: Json) -> None:
        source = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self.gvk = gvk
        self.node = Node(source)
        self.schema = KindSchema(node=self.node)
        self._rules: RuleSet | None = None
        self._has_many_rules = (
            self.node.has_rules and str(source).count("x-kubernetes-validations") + str(source).count("'rule'") > _MANY_RULES
        )
        subresources = version.get("subresources") or {}
        self.has_status = "status" in subresources
        self.scale: Json | None = subresources.get("scale")
        self.columns: Sequence[Column] = _columns(version.get("additionalPrinterColumns"))
        self.selectable_fields: Mapping[str, tuple[str, ...]] = {
            f["jsonPath"].removeprefix("."): tuple(f["jsonPath"].removeprefix(".").split("."))
            for f in version.get("selectableFields") or ()
        }
        self._status_node: Node | None = self.node.properties.get("status")
        self._embedded = self.node.has_embedded

    # -- decoding

    @property
    def is_costly(self) -> bool:
        """Whether its rules take long to compile or, by experience, to evaluate, so that other requests would be delayed."""
        return self._has_many_rules if self._rules is None else self._rules.is_costly

    @property
    def rules(self) -> RuleSet:
        """Its rules, compiled on first use, in the request that needs them."""
        if self._rules is None:
            self._rules = RuleSet(self.node)
        return self._rules

    def decode(self, obj: Json, *, subresource: str = "") -> list[str]:
        """Adapt metadata, drop unknown fields and forbidden nulls, in place."""
        unknown = decode_metadata(obj)
        if self._embedded:
            self._decode_embedded(obj, self.node, "", unknown)
        unknown.extend(prune(obj, self.node))
        if len(unknown) > 1:
            unknown.sort()
        return unknown

    def _decode_embedded(self, value: Any, node: Node, path: str, unknown: list[str]) -> None:
        if type(value) is dict:
            if node.embedded:
                for name in ("apiVersion", "kind"):
                    if name in value and not isinstance(value[name], str):
                        raise DecodeError(f"{path}.{name}: Invalid value: {show(value[name])}: must be a string")
                try:
                    unknown.extend(decode_metadata(value, f"{path}.metadata"))
                except DecodeError as e:
                    raise DecodeError(f"{path}.metadata: Invalid value: {show(value['metadata'])}: {e}") from None
            for key, item in value.items():
                child = node.child(key)
                if child is not None and child.has_embedded:
                    self._decode_embedded(item, child, f"{path}.{key}" if path else key, unknown)
        elif type(value) is list and node.items is not None and node.items.has_embedded:
            for i, item in enumerate(value):
                self._decode_embedded(item, node.items, f"{path}[{i}]", unknown)

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place."""
        apply_defaults(obj, self.node)

    # -- strategy

    def prepare_for_create(self, obj: Json) -> None:
        """Drop the status if it has a subresource."""
        if self.has_status:
            obj.pop("status", None)

    def prepare_for_update(self, obj: Json, old: Json, *, subresource: str = "") -> None:
        """Keep the status in writes to the main resource, and everything else in writes to the status."""
        if not self.has_status:
            return
        if subresource == "status":
            keep_all_but_status(obj, old)
        elif "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)

    def reset_fields(self, subresource: str = "") -> Sequence[tuple[str, ...]]:
        """Return the fields of the other subresource."""
        if not self.has_status:
            return ()
        return (("metadata",), ("spec",)) if subresource == "status" else (("status",),)

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object with another version: versions without a conversion webhook differ only in their name."""
        obj["apiVersion"] = api_version
        return obj

    def warnings(self, obj: Json, old: Json | None) -> Sequence[str]:
        """Return no warnings."""
        return ()

    # -- validation

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """Check schema, embedded resources, scale, uniqueness and rules."""
        errors: list[FieldError] = []
        if not is_valid(self.node)(obj):
            errors.extend(find_errors(self.node, obj))
            duplicates = find_duplicates(self.node, obj)
        else:
            duplicates = []
        if self.scale is not None:
            errors.extend(self._scale_errors(obj, status=True))
        if self._embedded:
            self._embedded_errors(obj, self.node, "", errors)
        errors.extend(duplicates)
        self._run_rules(obj, None, errors)
        return errors

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """Check as on create, but ignore errors of unchanged values; writes to the status only validate the status."""
        errors: list[FieldError] = []
        duplicates: list[FieldError] = []
        if subresource == "status":
            node = self._status_node
            if node is not None and "status" in obj and not is_valid(node)(obj["status"]):
                errors.extend(find_errors(node, obj["status"], old=old.get("status", ABSENT), prefix="status"))
                duplicates = find_duplicates(self.node, obj)
        elif not is_valid(self.node)(obj):
            errors.extend(find_errors(self.node, obj, old=old))
            duplicates = find_duplicates(self.node, obj)
        if duplicates and find_duplicates(self.node, old):
            duplicates = []
        if self.scale is not None:
            errors.extend(self._scale_errors(obj, status=True, spec=subresource != "status"))
        if self._embedded and subresource != "status":
            self._embedded_errors(obj, self.node, "", errors)
        errors.extend(duplicates)
        self._run_rules(obj, old, errors)
        return errors

    def _run_rules(self, obj: Json, old: Json | None, errors: list[FieldError]) -> None:
        if not self.node.has_rules:
            return
        if errors and blocks_rules(errors):
            errors.append(UNCHECKED)
        else:
            errors.extend(self.rules.validate(obj, old))

    def _scale_errors(self, obj: Json, *, status: bool, spec: bool = True) -> list[FieldError]:
        assert self.scale is not None
        errors: list[FieldError] = []
        for path, wanted in ((self.scale.get("specReplicasPath"), spec), (self.scale.get("statusReplicasPath"), status)):
            if not path or not wanted:
                continue
            value, problem = _nested(obj, path, int)
            if problem:
                errors.append(invalid(path, 0, problem))
            elif value < 0:
                errors.append(invalid(path, value, "should be a non-negative integer"))
            elif value > 2**31 - 1:
                errors.append(invalid(path, value, "should be less than or equal to 2147483647"))
        selector = self.scale.get("labelSelectorPath")
        if selector and status:
            _, problem = _nested(obj, selector, str)
            if problem:
                errors.append(invalid(selector, "", problem))
        return errors

    def _embedded_errors(self, value: Any, node: Node, path: str, errors: list[FieldError]) -> None:
        if type(value) is dict:
            if node.embedded:
                errors.extend(_embedded(value, path))
            for key, item in value.items():
                child = node.properties.get(key)
                here = f"{path}.{key}" if path else key
                if child is None:
                    child, here = node.additional, f"{path}[{key}]"
                if child is not None and child.has_embedded:
                    self._embedded_errors(item, child, here, errors)
        elif type(value) is list and node.items is not None and node.items.has_embedded:
            for i, item in enumerate(value):
                self._embedded_errors(item, node.items, f"{path}[{i}]", errors)


_check: type[KindHandler] = CustomResource


def keep_all_but_status(obj: Json, old: Json) -> None:
    """Turn a write to `status` into the old object with the new status, in place; managedFields are those of the write."""
    status, meta = obj.get("status"), obj["metadata"]
    has_status = "status" in obj
    obj.clear()
    obj.update({k: v for k, v in old.items() if k != "status"})
    kept = dict(old["metadata"])
    if "managedFields" in meta:
        kept["managedFields"] = meta["managedFields"]
    else:
        kept.pop("managedFields", None)
    obj["metadata"] = kept
    if has_status:
        obj["status"] = status


def _columns(columns: Any) -> tuple[Column, ...]:
    if not columns:
        return (AGE,)
    out = []
    for column in columns:
        path = column["jsonPath"]
        described = column.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        out.append(Column(column["name"], column["type"], column.get("format") or "", described, column.get("priority") or 0, path))
    return tuple(out)


def _nested(obj: Json, path: str, kind: type) -> tuple[Any, str]:
    """Return the number or text at a path (zero if absent), or an error."""
    steps = path.removeprefix(".").split(".")
    value: Any = obj
    for i, step in enumerate(steps):
        if type(value) is not dict:
            shown = ".".join(steps[: i + 1])
            return (
                kind(),
                (
                    f".{shown} accessor error: {printed(value)} is of the type {_GO_TYPES.get(type(value), '<nil>')}, "
                    f"expected map[string]interface{{}}"
                ),
            )
        if step not in value:
            return kind(), ""
        value = value[step]
    if type(value) is not kind:
        wanted = "int64" if kind is int else "string"
        return (
            kind(),
            f".{'.'.join(steps)} accessor error: {printed(value)} is of the type {_GO_TYPES.get(type(value), '<nil>')}, expected {wanted}",
        )
    return value, ""


def _embedded(value: Json, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{key}") for key in ("apiVersion", "kind") if key not in value]
    if "apiVersion" in value:
        api_version = value["apiVersion"]
        field = f"{path}.apiVersion"
        if not isinstance(api_version, str):
            errors.append(invalid(field, copy_json(api_version), "must be a string"))
        elif not api_version:
            errors.append(invalid(field, api_version, "must not be empty"))
        elif api_version.count("/") > 1:
            errors.append(invalid(field, api_version, f"unexpected GroupVersion string: {api_version}"))
    if "kind" in value:
        kind = value["kind"]
        field = f"{path}.kind"
        if not isinstance(kind, str):
            errors.append(invalid(field, copy_json(kind), "must be a string"))
        elif not kind:
            errors.append(invalid(field, kind, "must not be empty"))
        else:
            problems = dns_label_1035(kind.lower())
            if problems:
                errors.append(invalid(field, kind, "may have mixed case, but should otherwise match: " + ",".join(problems)))
    meta = value.get("metadata")
    if type(meta) is dict:
        named = meta if meta.get("name") else {**meta, "name": "fakename"}
        found = metadata.validate_create(named, namespaced=bool(meta.get("namespace")), rule="path", loose=True)
        errors.extend(replace(e, field=f"{path}.{e.field}") for e in found)
    return errors
