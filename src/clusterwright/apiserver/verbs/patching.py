"""PATCH: JSON patch, merge patch and strategic merge patch; `applying` has server-side apply."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding import bodies, negotiation
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.patchtypes import jsonpatch, strategic
from clusterwright.apiserver.schema.goscalars import json_type, mismatch
from clusterwright.apiserver.status import STALE, StatusError, bad_request, conflict, invalid, invalid_error
from clusterwright.apiserver.verbs import applying, incoming, options, writes
from clusterwright.golang.printing import printed


async def patch(call: Call) -> Response:
    """Answer PATCH in any of its four forms."""
    media = call.patch_media
    dry_run = options.write_options(call, "PatchOptions")
    if media == negotiation.APPLY_PATCH:
        return await applying.apply(call, dry_run=dry_run)
    writes.stored_entry(call, call.info.name)  # 404 comes before errors of the patch
    value, duplicates = await call.off(_read, call, media)
    for _ in range(writes.ATTEMPTS):
        entry = await writes.current_entry(call, call.info.name)
        call.weigh(entry.raw)
        old = call.load(entry)
        call.begin()
        obj = await call.off(_changed, call, media, call.load(entry), value, duplicates)
        value = None  # its parts are part of the object now, so that a retry decodes it again
        meta = incoming.meta_of(obj)
        name = meta.get("name")
        if name != call.info.name:
            if not name:
                raise _nameless(call)
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
        incoming.match_namespace(call, meta)
        outcome = await writes.replace_object(call, entry, old, obj, dry_run=dry_run)
        if outcome is not None:
            return call.answer(200, *outcome)
    raise conflict(call.resource.group, call.resource.plural, call.info.name, STALE)


def _read(call: Call, media: str) -> tuple[Any, list[str]]:
    """Return the patch and the messages about its repeated fields."""
    value = _patch_value(call, media)
    duplicates = [] if call.query.get("fieldValidation") == "Ignore" else bodies.duplicate_fields(call.request.body, value)
    if media == negotiation.JSON_PATCH:
        duplicates = [f"json patch {text}" for text in (*duplicates, *jsonpatch.unknown_members(value))]
    return value, duplicates


def _changed(call: Call, media: str, fresh: Json, value: Any, duplicates: list[str]) -> Json:
    """Return the patched object, decoded and defaulted. `fresh` is changed."""
    obj = _patched(call, media, fresh, value)
    if not isinstance(obj, dict):
        raise bad_request("the patched object is not an object")
    if media == negotiation.STRATEGIC_PATCH:
        _convert_merged(call, obj, duplicates)
    else:
        _decode_patched(call, obj, duplicates)
    call.resource.handler.default(obj)
    return obj


def _patch_value(call: Call, media: str) -> Any:
    try:
        value = bodies.decode_json(call.request.body, free=call.resource.custom)
    except bodies.Malformed as e:
        raise bad_request(f"error decoding patch: {e}") from None
    if media == negotiation.MERGE_PATCH and value is None:
        raise bad_request("Invalid JSON Patch")
    if media != negotiation.JSON_PATCH and not isinstance(value, dict):
        problem = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {problem}" if media == negotiation.MERGE_PATCH else problem)
    return value


def _patched(call: Call, media: str, fresh: Json, value: Any) -> Any:
    """Apply the patch to `fresh`, which is changed; decode the patch again if `value` is None."""
    if value is None:
        value = bodies.decode_json(call.request.body, free=call.resource.custom)
    if media == negotiation.JSON_PATCH:
        return jsonpatch.json_patch(fresh, value)
    if media == negotiation.MERGE_PATCH:
        return merge_patched(fresh, value)
    merged = strategic.merge(fresh, _whole_numbers(value), call.resource.handler.schema)
    if isinstance(merged, dict):  # kube-apiserver adds the kind that is patched
        merged = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, **merged}
    return merged


def _whole_numbers(value: Any) -> Any:
    """Return data with whole numbers as integers, as kube-apiserver converts them."""
    if isinstance(value, dict):
        return {k: _whole_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _convert_merged(call: Call, obj: Json, duplicates: list[str]) -> None:
    """Decode the result of a strategic merge. Errors name the patch, not the object. Raises StatusError."""
    resource = call.resource
    problem = ""
    if obj.get("metadata") is None:
        raise _nameless(call)
    if not isinstance(obj["metadata"], dict):
        problem = mismatch(obj["metadata"], "", "v1.ObjectMeta").converting
    elif wrong := [name for name in ("kind", "apiVersion") if not isinstance(obj.get(name), str)]:
        problem = mismatch(obj[wrong[0]], "", "string").converting
    else:
        try:
            unknown = resource.handler.decode(obj, subresource=call.info.subresource)
        except DecodeError as e:
            problem = e.converting
        else:
            problem = incoming.strictness(call, sorted(unknown), duplicates)
    if problem:
        shown = printed(bodies.decode_json(call.request.body))
        raise invalid_error("", "", "", [invalid("patch", shown, problem)])
    if obj["apiVersion"] != resource.api_version or obj["kind"] != resource.kind:
        raise _other_kind(obj)


def _nameless(call: Call) -> StatusError:
    return bad_request(f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided")


def _other_kind(obj: Json) -> StatusError:
    scheme = "pkg/api/legacyscheme/scheme.go:30"
    return _bad_patch(obj, f'no kind "{obj.get("kind")}" is registered for version "{obj.get("apiVersion")}" in scheme "{scheme}"')


def _decode_patched(call: Call, obj: Json, duplicates: list[str]) -> None:
    resource = call.resource
    if not resource.custom and not isinstance(obj.get("kind"), str | None):
        raise _bad_patch(obj, incoming.unnamed_kind("kind", obj["kind"]))
    if not resource.custom and (obj.get("apiVersion") != resource.api_version or obj.get("kind") != resource.kind):
        raise _other_kind(obj)
    if resource.custom and not (obj.get("kind") and obj.get("apiVersion")):
        missing = "apiVersion" if obj.get("kind") else "Kind"
        raise _bad_patch(obj, f"Object '{missing}' is missing in '{msgspec.json.encode(obj, order='sorted').decode()}'")
    is_nameless = not isinstance(obj.get("metadata"), dict)
    if is_nameless:
        if not resource.custom and obj.get("metadata") is not None:
            found = json_type(obj["metadata"])
            raise _bad_patch(obj, f"json: cannot unmarshal {found} into Go struct field {resource.kind}.metadata of type v1.ObjectMeta")
        obj["metadata"] = {}  # report what else is wrong first
    try:
        unknown = resource.handler.decode(obj, subresource=call.info.subresource)
    except DecodeError as e:
        raise _bad_patch(obj, str(e)) from None
    if not resource.custom:
        unknown.sort()  # kube-apiserver reads patched objects with sorted keys
    problem = incoming.strictness(call, unknown, duplicates)
    if problem:
        raise _bad_patch(obj, problem)
    if is_nameless:
        raise _nameless(call)


def _bad_patch(obj: Json, problem: str) -> StatusError:
    return invalid_error("", "", "", [invalid("patch", msgspec.json.encode(obj).decode(), problem)])
