"""Render answers in the form that the client accepts: JSON, YAML, protobuf; whole objects, tables or metadata only."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.encoding import printing, protobuf
from clusterwright.apiserver.encoding.negotiation import JSON, PROTOBUF, Form, encode
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.status import StatusError, failure, not_acceptable


class Asked(Protocol):
    """The parts of a request that decide the form of its answer."""

    resource: Resource
    query: dict[str, str]
    form: Form
    warnings: list[str]

    def now(self) -> datetime:
        """Return the time for ages."""


def failed(error: StatusError, form: Form, warnings: tuple[str, ...] = ()) -> Response:
    """Return a failure Status as an answer."""
    headers = {"retry-after": str(error.retry_after)} if error.retry_after is not None else {}
    return write(error.code, error.status, Form(form.media), error.warnings or warnings, headers)


def render(call: Asked, status: int, obj: Json | None, raw: bytes | None) -> Response:
    """Return an answer with an object."""
    if obj is None:
        assert raw is not None
        obj = msgspec.json.decode(raw)
    form = call.form
    if obj.get("kind") == "Status" and obj.get("apiVersion") == "v1":
        return _write(call, status, obj, form)
    if form.render == "Table":
        include = call.query.get("includeObject", "Metadata")
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        obj = printing.table(call.resource.handler, [obj], now=call.now(), include=include, list_metadata=meta)
    elif form.render == "PartialObjectMetadataList":
        if call.resource.custom:
            raise failure(500, "", "content is not a list")
        shown = _go_type(call.resource, call.resource.kind)
        raise not_acceptable(f"you requested PartialObjectMetadataList, but the requested object is not a list ({shown})")
    elif form.render:
        obj = printing.partial(obj)
    return _write(call, status, obj, form)


def render_list(call: Asked, objects: list[Json], list_kind: str, list_meta: Json) -> Response:
    """Return an answer with a list."""
    form, resource = call.form, call.resource
    value: Json
    if form.render == "Table":
        include = call.query.get("includeObject", "Metadata")
        value = printing.table(resource.handler, objects, now=call.now(), include=include, list_metadata=list_meta)
    elif form.render == "PartialObjectMetadata":
        shown = "*unstructured.UnstructuredList" if resource.custom else _go_type(resource, list_kind)
        raise not_acceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({shown})")
    elif form.render:
        value = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_meta,
            "items": [printing.partial(o) for o in objects],
        }
    else:
        if resource.custom:
            list_meta.setdefault("continue", "")
        else:
            objects = [{k: v for k, v in o.items() if k not in {"kind", "apiVersion"}} for o in objects]
        value = {"kind": list_kind, "apiVersion": resource.api_version, "metadata": list_meta, "items": objects}
    return _write(call, 200, value, form)


def _go_type(resource: Resource, kind: str) -> str:
    """Return the internal type of a built-in in kube-apiserver."""
    package = resource.storage.rpartition("/")[0].split(".", 1)[0]
    return f"*{package or 'core'}.{kind}"


def _write(call: Asked, status: int, value: Json, form: Form) -> Response:
    if form.render and form.version == "v1beta1":
        _relabel(value)
    return write(status, value, form, tuple(call.warnings))


def write(status: int, value: Json, form: Form, warnings: tuple[str, ...] = (), headers: dict[str, str] | None = None) -> Response:
    """Return data as an answer. Data without a protobuf encoding is written as JSON, with that content type."""
    body = protobuf.encode(value) if form.media == PROTOBUF else None
    if form.media == PROTOBUF and body is None:
        form = Form(JSON, form.render, form.group, form.version)
    headers = {"content-type": form.content_type, **(headers or {})}
    return Response(status=status, headers=headers, body=encode(value, form) if body is None else body, warnings=warnings)


def _relabel(value: Json) -> None:
    """Set the requested version of meta.k8s.io, also for the metadata inside, in place."""
    if value.get("apiVersion") == "meta.k8s.io/v1":
        value["apiVersion"] = "meta.k8s.io/v1beta1"
    for item in (*(value.get("items") or ()), *(row.get("object") or {} for row in value.get("rows") or ())):
        if item.get("apiVersion") == "meta.k8s.io/v1":
            item["apiVersion"] = "meta.k8s.io/v1beta1"


def bookmark_shape(call: Asked, obj: Json) -> Json:
    """Return the object of a bookmark in the form of the watch."""
    if call.form.render == "Table":
        return printing.table(
            call.resource.handler, [obj], now=call.now(), include=call.query.get("includeObject", "Metadata"),
            list_metadata={"resourceVersion": obj["metadata"]["resourceVersion"]}, columns=False,
        )  # fmt: skip
    if call.form.render:
        return printing.partial(obj)
    return obj
