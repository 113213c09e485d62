"""The OpenAPI v2 document: all kinds in one, derived from the schemas of v3, as JSON or in gnostic's protobuf form.

Alternatives, negation and null are left out, because v2 does not have them. If a schema would then refuse values that the server
accepts (nullable values, unknown fields that are kept), its inner schemas are left out, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import yaml

from clusterwright.api.meta import Json
from clusterwright.apiserver.discovery import openapi
from clusterwright.apiserver.interfaces import Resource
from clusterwright.streams.protobuf import tagged, tagged_number

_KIND: Final = "x-kubernetes-group-version-kind"
_V3: Final = "#/components/schemas/"
_DROPPED: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations", "x-kubernetes-int-or-string"})
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_FLOATS: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_WHOLE: Final = {
    "exclusiveMaximum": 8, "exclusiveMinimum": 10, "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "uniqueItems": 16,
    "maxProperties": 17, "minProperties": 18, "readOnly": 27,
}  # fmt: skip


def document(version: str, resources: Iterable[Resource]) -> Json:
    """Return the OpenAPI v2 document of these resources."""
    groups: dict[tuple[str, str], list[Resource]] = {}
    for resource in resources:
        groups.setdefault((resource.group, resource.version), []).append(resource)
    definitions: Json = {}
    paths: Json = {}
    for (group, group_version), members in sorted(groups.items()):
        whole = openapi.document(group, group_version, members)
        definitions.update({name: schema(s) for name, s in whole["components"]["schemas"].items()})
        paths.update({path: _path(item) for path, item in whole["paths"].items()})
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def schema(source: Mapping[str, Any]) -> Json:
    """Convert a schema from v3 to v2."""
    references: list[Json] = source.get("allOf") or []
    target = source.get("$ref") or (references[0].get("$ref") if len(references) == 1 else None)
    if target:
        described = {"description": source["description"]} if source.get("description") else {}
        return {"$ref": target.replace(_V3, "#/definitions/"), **described}
    out = {key: value for key, value in source.items() if key not in _DROPPED}
    if source.get("format") == "int-or-string" or source.get("x-kubernetes-int-or-string"):
        out.update(type="string", format="int-or-string")
    elif "oneOf" in source and "type" not in source:  # a quantity
        out["type"] = "string"
    if source.get("nullable"):
        for key in ("type", "items", "properties", "additionalProperties"):
            out.pop(key, None)
    if source.get("x-kubernetes-preserve-unknown-fields"):
        if _KIND in source:  # clients refuse unknown fields if there are properties
            return {"type": "object", _KIND: source[_KIND]}
        for key in ("items", "properties"):
            out.pop(key, None)
        if out.get("type") == "object":
            del out["type"]
    if out.get("type") == "array" and "items" not in out:  # clients cannot read it
        del out["type"]
    if isinstance(out.get("properties"), dict):
        if nullable := {key for key, value in out["properties"].items() if value.get("nullable")}:
            out["required"] = [key for key in out.get("required") or () if key not in nullable]
        out["properties"] = {key: schema(value) for key, value in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = schema(out[key])
    return out


def _path(item: Json) -> Json:
    operations = {method: _operation(one) for method, one in item.items() if method != "parameters"}
    return operations | ({"parameters": _parameters(item)} if "parameters" in item else {})


def _parameters(source: Json) -> list[Json]:
    return [{**{k: v for k, v in p.items() if k != "schema"}, **p.get("schema", {})} for p in source.get("parameters") or ()]


def _operation(source: Json) -> Json:
    out = {key: value for key, value in source.items() if key not in {"requestBody", "responses", "parameters"}}
    out["parameters"] = _parameters(source)
    body = (source.get("requestBody") or {}).get("content") or {}
    if body:
        out["consumes"] = list(body)
        required = {"required": True} if source["requestBody"].get("required") else {}
        out["parameters"].append({"name": "body", "in": "body", **required, "schema": schema(next(iter(body.values()))["schema"])})
    out["produces"] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
    out["responses"] = {code: _response(response) for code, response in source["responses"].items()}
    return out


def _response(source: Json) -> Json:
    content = source.get("content") or {}
    shown = {"schema": schema(next(iter(content.values()))["schema"])} if content else {}
    return {"description": source["description"], **shown}


def text(version: str, resources: Iterable[Resource]) -> bytes:
    """Return the document as JSON. Its parts are encoded one by one, because encoding blocks other threads."""
    made = document(version, resources)
    for part in ("paths", "definitions"):
        made[part] = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in made[part].items()}
    return msgspec.json.encode(made)


# ---------------------------------------------------------------- protobuf


def protobuf(version: str, resources: Iterable[Resource]) -> bytes:
    """Return the document as a gnostic.openapi.v2.Document: its definitions, which is what clients read; paths are in the JSON form."""
    made = document(version, resources)
    info = tagged(1, made["info"]["title"].encode()) + tagged(2, made["info"]["version"].encode())
    definitions = b"".join(_named(name, _schema(s)) for name, s in made["definitions"].items())
    return tagged(1, made["swagger"].encode()) + tagged(2, info) + tagged(8, b"") + tagged(9, definitions)


def _named(name: str, message: bytes) -> bytes:
    return tagged(1, tagged(1, name.encode()) + tagged(2, message))


def _any(value: Any) -> bytes:
    return tagged(2, yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").encode())


def _schema(source: Json) -> bytes:
    out = b""
    for key, value in source.items():
        if key in _TEXTS:
            out += tagged(_TEXTS[key], str(value).encode())
        elif key in _FLOATS:
            out += bytes([_FLOATS[key] << 3 | 1]) + struct.pack("<d", value)
        elif key in _WHOLE:
            out += tagged_number(_WHOLE[key], int(value))
        elif key == "default":
            out += tagged(5, _any(value))
        elif key == "required":
            out += b"".join(tagged(19, name.encode()) for name in value)
        elif key == "enum":
            out += b"".join(tagged(20, _any(item)) for item in value)
        elif key == "additionalProperties":
            out += tagged(21, tagged_number(2, int(value)) if isinstance(value, bool) else tagged(1, _schema(value)))
        elif key == "type":
            out += tagged(22, tagged(1, value.encode()))
        elif key == "items":
            out += tagged(23, tagged(1, _schema(value)))
        elif key == "properties":
            out += tagged(25, b"".join(_named(name, _schema(s)) for name, s in value.items()))
        elif key.startswith("x-"):
            out += tagged(31, tagged(1, key.encode()) + tagged(2, _any(value)))
    return out
