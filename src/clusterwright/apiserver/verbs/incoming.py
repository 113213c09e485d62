"""Bodies of writes: decoded, checked for the kind in the path, adapted to its schema, with metadata that matches the path."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver import metadata
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding import bodies, negotiation, protobuf
from clusterwright.apiserver.interfaces import DecodeError, Resource
from clusterwright.apiserver.schema.goscalars import json_type
from clusterwright.apiserver.status import StatusError, bad_request
from clusterwright.golang.quoting import quote

T = TypeVar("T", bound=msgspec.Struct)


def read(call: Call) -> Json:
    """Return the object of the body: of the path's kind, adapted to its schema and defaulted. Raises StatusError."""
    obj, duplicates = read_body(call)
    check_kind(call, obj)
    decode(call, obj, duplicates)
    call.resource.handler.default(obj)
    return obj


def check_kind(call: Call, obj: Json) -> None:
    """Check that a body has the path's kind; set kind and apiVersion that built-ins may omit. Raises StatusError."""
    resource = call.resource
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str | None) or not isinstance(api_version, str | None):
        field = "kind" if not isinstance(kind, str | None) else "apiVersion"
        raise bodies.unrecognized(resource.kind, unnamed_kind(field, obj[field]), call.request.body)
    if resource.custom:
        if not kind:
            shown = call.request.body.decode("utf-8", "replace")
            raise bodies.unrecognized(resource.kind, f"Object 'Kind' is missing in '{shown}'", call.request.body)
        api_version = api_version or ""
    else:
        obj["kind"] = kind = kind or resource.kind
        obj["apiVersion"] = api_version = api_version or resource.api_version
    if api_version != resource.api_version:
        group = api_version.rpartition("/")[0]
        if resource.custom and group == resource.group and kind == resource.kind:
            served = {v.rpartition("/")[2] for v in call.versions}
            if api_version.rpartition("/")[2] not in served:
                call.warnings.extend(f'unknown field "{k}"' for k in obj if k not in {"apiVersion", "kind", "metadata"})
        if not resource.custom and call.server.registry.by_kind(group, api_version.rpartition("/")[2], kind) is None:
            raise _no_such_kind(resource, kind, api_version)
        text = f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
        raise bad_request(text)
    if kind != resource.kind and not resource.custom:
        other = call.server.registry.by_kind(resource.group, resource.version, kind)
        if other is None:
            raise _no_such_kind(resource, kind, api_version)
        internal = resource.group.split(".", 1)[0] or "core"
        shown = f"converting ({resource.version}.{kind}) to ({internal}.{resource.kind}): unknown conversion"
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {shown}')


def unnamed_kind(field: str, value: Any) -> str:
    """Return the message about an object whose kind or apiVersion is not a string."""
    found = json_type(value)
    return f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{field} of type string"


def _no_such_kind(resource: Resource, kind: str, api_version: str) -> StatusError:
    shown = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {shown}')


def decode(call: Call, obj: Json, duplicates: list[str]) -> None:
    """Adapt a body to its kind: prune it, and warn or refuse. Raises StatusError."""
    resource = call.resource
    try:
        unknown = resource.handler.decode(obj, subresource=call.info.subresource)
    except DecodeError as e:
        raise undecodable(resource, obj.get("kind") or resource.kind, str(e)) from None
    problem = strictness(call, unknown, duplicates)
    if problem:
        raise undecodable(resource, obj.get("kind") or resource.kind, problem)


def meta_of(obj: Json) -> Json:
    """Return the object's metadata in normal form; add it if there is none."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        meta = obj["metadata"] = {}
    metadata.normalize(meta)
    return meta


def match_namespace(call: Call, meta: Json) -> None:
    """Set the namespace of the path; drop that of cluster-scoped objects. Raises StatusError if the object names another."""
    if not call.resource.namespaced:
        meta.pop("namespace", None)
        return
    namespace = call.info.namespace
    if not meta.get("namespace"):
        meta["namespace"] = namespace
    elif meta["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def read_body(call: Call) -> tuple[Json, list[str]]:
    """Return the object of a create or update body, and the messages about its repeated fields."""
    body, kind = call.request.body, call.resource.kind
    media = negotiation.body_media(call.request.headers.get("content-type", ""))
    duplicates: list[str] = []
    if media == negotiation.PROTOBUF:
        if not body.startswith(b"k8s\0"):
            problem = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            raise bodies.unrecognized(kind, problem, body)
        try:
            value: Any = protobuf.decode(body)
        except DecodeError as e:
            raise bad_request(f"{kind} in version {quote(call.resource.version)} cannot be handled as a {kind}: {e}") from None
    else:
        try:
            if media == negotiation.JSON:
                value = bodies.decode_json(body, free=call.resource.custom)
            else:
                value, duplicates = bodies.decode_yaml_strictly(body, free=call.resource.custom)
        except bodies.Malformed as e:
            raise bodies.unrecognized(kind, f"couldn't get version/kind; json parse error: {e}", body) from None
        if media == negotiation.JSON and call.query.get("fieldValidation") != "Ignore":
            duplicates = bodies.duplicate_fields(body, value)
    return bodies.as_object(value, kind, body), duplicates


def read_shape(call: Call, shape: type[T]) -> T:
    """Return the body of a subresource with objects of another kind, as far as the server uses it."""
    obj, _ = read_body(call)
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as e:
        raise bad_request(f"json: cannot unmarshal into Go value: {e}") from None


def strictness(call: Call, unknown: list[str], duplicates: list[str]) -> str:
    """Warn about unknown and repeated fields, or return the text of the strict decoding error."""
    directive = call.query.get("fieldValidation", "") or "Warn"
    if directive == "Ignore" or not (unknown or duplicates):
        return ""
    of_yaml = [d.removeprefix(bodies.REPEATED_IN_YAML) for d in duplicates if d.startswith(bodies.REPEATED_IN_YAML)]
    repeated = [d for d in duplicates if not d.startswith(bodies.REPEATED_IN_YAML)]
    if call.resource.custom:  # kube-apiserver reads metadata first, with another decoder
        unknown = sorted(unknown, key=lambda path: not path.startswith("metadata."))
    if call.resource.custom or call.info.verb == "patch":  # kube-apiserver finds repeated fields first, then unknown ones
        others = [*repeated, *(f'unknown field "{p}"' for p in unknown)]
    else:
        others = bodies.in_order(call.request.body, repeated, unknown)
    if directive == "Warn":
        call.warnings.extend([*of_yaml, *others])
        return ""
    texts = [bodies.REPEATED_IN_YAML + "\n  ".join(of_yaml), *others] if of_yaml else others
    return "strict decoding error: " + ", ".join(texts)


def undecodable(resource: Resource, kind: str, problem: str) -> StatusError:
    """Return the error (400) for an object that does not fit its kind."""
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}')
