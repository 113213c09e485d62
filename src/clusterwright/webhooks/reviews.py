"""Decode the API server's requests to webhooks and encode our answers: AdmissionReview and ConversionReview, both version v1."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from clusterwright import conversion
from clusterwright.admission.hook import Access, Hook, Request
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wire import UNREADABLE
from clusterwright.apiserver.status import StatusError
from clusterwright.webhooks.definitions import Definitions, NotKnownYet

ADMISSION: Final = "admission.k8s.io/v1"
CONVERSION: Final = "apiextensions.k8s.io/v1"


class BadReview(ValueError):
    """A body is not a review: 400."""


def read(body: bytes, api_version: str, kind: str) -> Json:
    """Return the `request` of a review; raises BadReview."""
    try:
        review = msgspec.json.decode(body)
    except UNREADABLE as error:
        raise BadReview(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict) or (review.get("apiVersion"), review.get("kind")) != (api_version, kind):
        raise BadReview(f"expected {kind} of {api_version}")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise BadReview("the review has no request with a uid")
    for name in ("kind", "object", "oldObject"):
        if not isinstance(request.get(name), dict | None):
            raise BadReview(f"request.{name} is not an object")
    return request


async def admit(request: Json, hook: Hook, *, mutating: bool, gates: Mapping[str, bool], access: Access) -> Json:
    """Return the whole answer to an AdmissionReview."""
    response: Json = {"uid": request["uid"], "allowed": True}
    asked = _request(request)
    before = copy.deepcopy(asked.object) if mutating else None
    try:
        if mutating:
            await hook.default(asked, gates, access)
        else:
            await hook.validate(asked, gates, access)
    except StatusError as refusal:
        response["allowed"] = False
        response["status"] = _bare(refusal.status)
    else:
        if mutating and asked.object is not None and asked.object != before:
            operations = difference(before, asked.object)
            response["patch"] = base64.b64encode(msgspec.json.encode(operations)).decode()
            response["patchType"] = "JSONPatch"
    if asked.warnings:
        response["warnings"] = asked.warnings
    return {"apiVersion": ADMISSION, "kind": "AdmissionReview", "response": response}


def _request(request: Json) -> Request:
    kind = request.get("kind") or {}
    operation: Any = request.get("operation") or ""
    return Request(
        operation=operation,
        kind=GroupVersionKind(str(kind.get("group", "")), str(kind.get("version", "")), str(kind.get("kind", ""))),
        subresource=request.get("subResource") or "",
        namespace=request.get("namespace") or "",
        name=request.get("name") or "",
        object=request.get("object"),
        old_object=request.get("oldObject"),
        dry_run=bool(request.get("dryRun")),
    )


def _bare(status: Json) -> Json:
    """Return a refusal without the prefix that the API server adds."""
    _, mark, text = str(status.get("message", "")).partition(" denied the request: ")
    return {**status, "message": text if mark else status.get("message", "")}


def difference(before: Any, after: Any, path: str = "") -> list[Json]:
    """Return the JSON patch from `before` to `after`; lists are replaced whole."""
    if before == after and type(before) is type(after):
        return []
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [{"op": "replace", "path": path, "value": after}]
    operations: list[Json] = [{"op": "remove", "path": f"{path}/{_pointer(key)}"} for key in before if key not in after]
    for key, value in after.items():
        here = f"{path}/{_pointer(key)}"
        operations += difference(before[key], value, here) if key in before else [{"op": "add", "path": here, "value": value}]
    return operations


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


async def convert(request: Json, definitions: Definitions) -> Json:
    """Return the whole answer to a ConversionReview: every object, or none and why."""
    response: Json = {"uid": request["uid"]}
    objects, wanted = request.get("objects"), request.get("desiredAPIVersion")
    try:
        if not isinstance(objects, list) or not isinstance(wanted, str):
            raise conversion.ConversionFailed("the request has no objects or no desiredAPIVersion")
        response["convertedObjects"] = [await _convert(obj, wanted, definitions) for obj in objects]
        response["result"] = {"status": "Success"}
    except conversion.ConversionFailed as error:
        response.pop("convertedObjects", None)
        response["result"] = {"status": "Failure", "message": f"failed to convert object: {error}"}
    return {"apiVersion": CONVERSION, "kind": "ConversionReview", "response": response}


async def _convert(obj: Any, wanted: str, definitions: Definitions) -> Json:
    if not isinstance(obj, dict):
        raise conversion.ConversionFailed("not an object")
    versions = conversion.versions_from_crds(definitions.known)
    while True:
        try:
            return conversion.convert(obj, wanted, versions)
        except NotKnownYet as missing:
            await definitions.learn(missing.name)
