"""OpenAPI v3 documents: enough for `kubectl explain`, `apply`, `create` and `diff` to know every kind.

A document has the schemas of its kinds under `components/schemas` and one path per resource with the operations that clients look
for: they carry the kind (`x-kubernetes-group-version-kind`) and the query parameters, `fieldValidation` among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.schema.gotypes import json_fields, table

_PACKAGES: Final = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
}
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
    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
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
_WRITE_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation")


def component_of(name: str) -> str:
    """The component name of a built-in type."""
    package, version, kind = name.split(".")
    return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{version}.{kind}"


def component_of_kind(resource: Resource) -> str:
    """The component name of a served kind."""
    go_type = getattr(resource.handler.schema, "go_type", "")
    if go_type:
        return component_of(go_type)
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def document(group: str, version: str, resources: Sequence[Resource]) -> Json:
    """The OpenAPI v3 document of one group version."""
    schemas: Json = {}
    paths: Json = {}
    for resource in resources:
        name = component_of_kind(resource)
        schemas[name] = _kind_schema(resource, schemas)
        paths.update(_paths(resource, name, schemas))
    prefix = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    paths.setdefault(prefix, {"get": {"description": "get available resources", "responses": {"200": {"description": "OK"}}}})
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


def _described(name: str) -> Json:
    return {"type": "string", "description": _DESCRIPTIONS[name]}


def _reference(name: str, schemas: Json) -> Json:
    component = component_of(name)
    if component not in schemas:
        schemas[component] = {}  # breaks cycles
        schemas[component] = _struct_schema(name, schemas)
    return {"allOf": [{"$ref": f"#/components/schemas/{component}"}], "default": {}}


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
    """`restartPolicy` is `Restart policy.`."""
    spaced = "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))
    return f"{spaced[:1].upper()}{spaced[1:]}."


def _type_schema(kind: str, schemas: Json) -> Json:
    if kind.startswith("[]"):
        return {"type": "array", "items": _type_schema(kind[2:].lstrip("*"), schemas)}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _type_schema(kind[2:].lstrip("*"), schemas)}
    if kind in table():
        return _reference(kind, schemas)
    return dict(_SCALARS[kind])


def _custom_schema(source: Mapping[str, Any], schemas: Json) -> Json:
    """A CRD's schema as clients read it: metadata is ObjectMeta."""
    out = dict(source)
    properties = dict(out.get("properties") or {})
    for name in ("apiVersion", "kind"):
        properties.setdefault(name, {"type": "string"})
        properties[name] = {"description": _DESCRIPTIONS[name], **properties[name]}
    properties["metadata"] = {**_reference("meta.v1.ObjectMeta", schemas), "description": _DESCRIPTIONS["metadata"]}
    out["properties"] = properties
    return out


# ---------------------------------------------------------------- paths


_PARAMETERS: Final[dict[str, tuple[str, str]]] = {
    # clients that compare documents with a cluster's expect these two word for word
    "fieldValidation": (
        "string",
        (
            "fieldValidation instructs the server on how to handle objects in the request (POST/PUT/PATCH) containing unknown or duplicate "
            "fields. Valid values are: - Ignore: This will ignore any unknown fields that are silently dropped "
            "from the object, and will ignore "
            "all but the last duplicate field that the decoder encounters. This is the default behavior prior to "
            "v1.23. - Warn: This will send a "
            "warning via the standard warning response header for each unknown field that is dropped from the "
            "object, and for each duplicate "
            "field that is encountered. The request will still succeed if there are no other errors, and will only persist the last of any "
            "duplicate fields. This is the default in v1.23+ - Strict: This will fail the request with a "
            "BadRequest error if any unknown fields "
            "would be dropped from the object, or if any duplicate fields are present. The error returned from the server will contain all "
            "unknown and duplicate fields encountered."
        ),
    ),
    "force": (
        "boolean",
        (
            'Force is going to "force" Apply requests. It means user will re-acquire conflicting fields owned by '
            "other people. Force flag must be "
            "unset for non-apply patch requests."
        ),
    ),
    "dryRun": ("string", "All: run every stage of the request, but store nothing."),
    "fieldManager": ("string", "Who makes the change; the program in User-Agent if not given."),
    "labelSelector": ("string", "Only objects with these labels."),
    "fieldSelector": ("string", "Only objects with these fields."),
    "limit": ("integer", "At most so many objects; the rest is behind `continue`."),
    "continue": ("string", "Where the last page ended."),
    "watch": ("boolean", "Changes as they happen, instead of a list."),
    "gracePeriodSeconds": ("integer", "Seconds before the object is gone."),
    "propagationPolicy": ("string", "Orphan, Background or Foreground: what becomes of dependents."),
}


def _parameter(name: str) -> Json:
    kind, description = _PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _operation(resource: Resource, action: str, name: str, *, query: Sequence[str] = (), body: Sequence[str] = ()) -> Json:
    out: Json = {
        "tags": [f"{resource.group or 'core'}_{resource.version}"],
        "description": f"{action} {resource.kind}",
        "operationId": f"{action}{resource.group.replace('.', '').title() or 'Core'}{resource.version.title()}{resource.kind}",
        **({"parameters": [_parameter(q) for q in query]} if query else {}),  # an empty list does not survive Go's reading and writing
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        reference = {"$ref": f"#/components/schemas/{name}"}
        out["requestBody"] = {"content": {m: {"schema": reference} for m in body}, "required": True}
    return out


def _paths(resource: Resource, name: str, schemas: Json) -> Json:
    del schemas
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced:
        base += "/namespaces/{namespace}"
    collection = f"{base}/{resource.plural}"
    verbs = set(resource.verbs)
    whole: Json = {}
    if "list" in verbs:
        whole["get"] = _operation(resource, "list", name, query=("labelSelector", "fieldSelector", "limit", "continue", "watch"))
    if "create" in verbs:
        whole["post"] = _operation(resource, "post", name, query=_WRITE_QUERY, body=("application/json", "application/yaml"))
    if "deletecollection" in verbs:
        whole["delete"] = _operation(resource, "deletecollection", name)
    out: Json = {collection: whole}
    one: Json = {}
    if "get" in verbs:
        one["get"] = _operation(resource, "get", name)
    if "update" in verbs:
        one["put"] = _operation(resource, "put", name, query=_WRITE_QUERY, body=("application/json", "application/yaml"))
    if "patch" in verbs:
        media = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
        if not resource.custom:
            media.insert(2, "application/strategic-merge-patch+json")
        one["patch"] = _operation(resource, "patch", name, query=(*_WRITE_QUERY, "force"), body=media)
    if "delete" in verbs:
        one["delete"] = _operation(resource, "delete", name, query=("dryRun", "gracePeriodSeconds", "propagationPolicy"))
    if one:
        out[f"{collection}/{{name}}"] = one
    if resource.status:
        out[f"{collection}/{{name}}/status"] = {k: v for k, v in one.items() if k in ("get", "put", "patch")}
    return out
