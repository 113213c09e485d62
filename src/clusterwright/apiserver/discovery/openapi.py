"""OpenAPI v3 documents: the schemas of all kinds and of their lists; `operations` adds their paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.discovery import operations
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.schema.gotypes import json_fields, table

_PACKAGES: Final = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_NAMED: Final[dict[str, str]] = {
    "time": "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "microtime": "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "intstr": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "raw": "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
"""Scalars with component names that generated clients use."""
_SCALARS: Final[dict[str, Json]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "byte": {"type": "integer", "format": "int32"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intstr": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "raw": {"type": "object"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_DESCRIPTIONS: Final = {
    "apiVersion": "APIVersion defines the group and version that the object is written in.",
    "kind": "The kind of the object.",
    "metadata": "Standard object's metadata: name, namespace, labels, annotations and what the system keeps.",
    "creationTimestamp": "CreationTimestamp is a timestamp of the moment at which the server made the object.",
    "spec": "What is wanted.",
    "status": "What is observed.",
}


def component_of(name: str) -> str:
    """Return the component name of a built-in type."""
    package, version, kind = name.split(".")
    return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{version}.{kind}"


def component_of_kind(resource: Resource) -> str:
    """Return the component name of a served kind."""
    go_type = getattr(resource.handler.schema, "go_type", "")
    if go_type:
        return component_of(go_type)
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def document(group: str, version: str, resources: Sequence[Resource]) -> Json:
    """Return the OpenAPI v3 document of one group version."""
    schemas: Json = {}
    paths: Json = {}
    for resource in resources:
        name = component_of_kind(resource)
        schemas[name] = _kind_schema(resource, schemas)
        listed = name
        if "list" in resource.verbs:
            listed = f"{name.rpartition('.')[0]}.{_list_kind(resource)}"
            schemas[listed] = _list_schema(resource, name, schemas)
        paths.update(operations.paths(resource, _ref(name), _ref(listed), partial(_plain_reference, schemas)))
    paths.update(operations.root(group, version, partial(_plain_reference, schemas), custom=all(r.custom for r in resources)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _gvk(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _kind_schema(resource: Resource, schemas: Json) -> Json:
    schema = resource.handler.schema
    go_type = getattr(schema, "go_type", "")
    if go_type:
        out = _struct_schema(go_type, schemas)
        out["properties"] = {"apiVersion": _described("apiVersion"), "kind": _described("kind"), **out.get("properties", {})}
    else:
        out = _custom_schema(getattr(schema, "source", None) or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, schemas)
    out["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return out


def _list_kind(resource: Resource) -> str:
    return resource.list_kind or f"{resource.kind}List"


def _list_schema(resource: Resource, name: str, schemas: Json) -> Json:
    return {
        "type": "object",
        "description": f"A list of {resource.kind} objects.",
        "required": ["items"],
        "properties": {
            "apiVersion": _described("apiVersion"),
            "items": {"type": "array", "description": "The objects.", "items": {"allOf": [_ref(name)], "default": {}}},
            "kind": _described("kind"),
            "metadata": {**_reference("meta.v1.ListMeta", schemas), "description": "The state that the list shows, and where it goes on."},
        },
        "x-kubernetes-group-version-kind": [{**_gvk(resource), "kind": _list_kind(resource)}],
    }


def _ref(component: str) -> Json:
    return {"$ref": f"#/components/schemas/{component}"}


def _plain_reference(schemas: Json, name: str) -> Json:
    return dict(_reference(name, schemas)["allOf"][0])


def _described(name: str) -> Json:
    return {"type": "string", "description": _DESCRIPTIONS[name]}


def _reference(name: str, schemas: Json) -> Json:
    component = component_of(name)
    if component not in schemas:
        schemas[component] = {}  # breaks cycles
        schemas[component] = _struct_schema(name, schemas)
    return {"allOf": [_ref(component)], "default": {}}


def _struct_schema(name: str, schemas: Json) -> Json:
    properties: Json = {}
    needed: list[str] = []
    for key, field in json_fields(name).items():
        properties[key] = _field_schema(key, field, schemas)
        if field.get("r") and not field["t"].startswith("*") and "." not in field["t"]:
            needed.append(key)
    out: Json = {"type": "object", "description": f"{name.rsplit('.', 1)[-1]} of {name.rsplit('.', 1)[0]}."}
    if properties:
        out["properties"] = properties
    if needed:
        out["required"] = needed
    if table()[name].get("atomic"):
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _field_schema(key: str, field: Mapping[str, Any], schemas: Json) -> Json:
    out = _type_schema(field["t"].lstrip("*"), schemas)
    out["description"] = _DESCRIPTIONS.get(key, _words(key))
    if "d" in field:
        out["default"] = field["d"]
    if field.get("l"):
        out["x-kubernetes-list-type"] = field["l"]
    if field.get("k"):
        out["x-kubernetes-list-map-keys"] = field["k"]
    if field.get("ps"):
        out["x-kubernetes-patch-strategy"] = field["ps"]
    if field.get("pk"):
        out["x-kubernetes-patch-merge-key"] = field["pk"]
    if field.get("atomic"):
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _words(name: str) -> str:
    """Return a field name as words: `restartPolicy` becomes `Restart policy.`."""
    spaced = "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))
    return f"{spaced[:1].upper()}{spaced[1:]}."


def _type_schema(kind: str, schemas: Json) -> Json:
    if kind.startswith("[]"):
        return {"type": "array", "items": _type_schema(kind[2:].lstrip("*"), schemas)}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _type_schema(kind[2:].lstrip("*"), schemas)}
    if kind in table():
        return _reference(kind, schemas)
    if kind in _NAMED:
        schemas[_NAMED[kind]] = {**_SCALARS[kind], "description": f"{_NAMED[kind].rsplit('.', 1)[-1]} of the API machinery."}
        return {"allOf": [_ref(_NAMED[kind])]}
    return dict(_SCALARS[kind])


def _custom_schema(source: Mapping[str, Any], schemas: Json) -> Json:
    """Return a CRD's schema for clients: its metadata is ObjectMeta."""
    out = dict(source)
    properties = dict(out.get("properties") or {})
    for name in ("apiVersion", "kind"):
        properties.setdefault(name, {"type": "string"})
        properties[name] = {"description": _DESCRIPTIONS[name], **properties[name]}
    properties["metadata"] = {**_reference("meta.v1.ObjectMeta", schemas), "description": _DESCRIPTIONS["metadata"]}
    out["properties"] = properties
    return out
