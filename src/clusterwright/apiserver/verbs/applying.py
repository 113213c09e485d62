"""Server-side apply."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.encoding import bodies
from clusterwright.apiserver.encoding.negotiation import boolean
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.managedfields.applying import apply as merge_applied
from clusterwright.apiserver.managedfields.applying import go_gvk, named
from clusterwright.apiserver.schema.gotypes import decode_metadata
from clusterwright.apiserver.schema.structural import copy_json
from clusterwright.apiserver.status import STALE, bad_request, conflict, failure, not_found
from clusterwright.apiserver.storage.store import object_key
from clusterwright.apiserver.verbs import incoming, writes


def _applied(call: Call, old: Json | None, applied: Json, versions: Versions) -> Json:
    return merge_applied(
        old,
        copy_json(applied),
        manager=call.query["fieldManager"],
        force=boolean(call.query.get("force"), "force") if "force" in call.query else False,
        subresource=call.info.subresource,
        time=call.server.timestamp(),
        handlers=versions,
    )


def _fit(call: Call, obj: Json, applied: Json) -> None:
    """Decode and default the merged object, in place."""
    resource = call.resource
    try:
        if resource.custom:  # a merged custom resource already fits its schema
            decode_metadata(obj)
        else:
            resource.handler.decode(obj, subresource=call.info.subresource)
    except DecodeError as e:
        kind = go_gvk(resource.handler)
        text = f"to proper version: unable to convert unstructured object to {kind}: {e.converting}"
        raise failure(500, "", f"failed to convert new object ({named(applied)}; {kind}) {text}") from None
    resource.handler.default(obj)


async def apply(call: Call, *, dry_run: bool) -> Response:
    """Answer PATCH with an apply patch; create the object if it does not exist."""
    resource = call.resource
    try:
        body = call.request.body
        applied, repeated = await call.off(bodies.decode_yaml_strictly, body, free=resource.custom)
    except bodies.Malformed as e:
        raise bad_request(f"error decoding YAML: {e}") from None
    if applied is None:
        applied = {}
    if not isinstance(applied, dict):
        raise bad_request(f"error decoding YAML: cannot unmarshal into {resource.kind}")
    key = object_key(call.info.namespace if resource.namespaced else "", call.info.name)
    _check_kind(call, applied)
    for _ in range(writes.ATTEMPTS):
        call.begin()
        entry = call.table.objects.get(key)
        if entry is None and call.info.subresource:
            raise not_found(resource.group, resource.plural, call.info.name)
        if entry is not None:
            if not call.is_plain:
                await call.prepare((entry,))
            call.weigh(entry.raw)
        old = call.load(entry) if entry is not None else None
        obj = await call.versions.settled(lambda versions, old=old: _applied(call, old, applied, versions), call.off)  # type: ignore[misc]
        problem = incoming.strictness(call, [], repeated)
        if problem:
            said = problem.removeprefix("strict decoding error: ")
            raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {said}")
        await call.off(_fit, call, obj, applied)
        _check_name(call, incoming.meta_of(obj))
        if entry is None or old is None:
            if uid := obj["metadata"].get("uid"):
                text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(resource.group, resource.plural, call.info.name, text)
            obj["metadata"].pop("resourceVersion", None)
            stored, raw = await writes.create_object(call, obj, dry_run=dry_run, applied=True)
            return call.answer(201, stored, raw)
        outcome = await writes.replace_object(call, entry, old, obj, dry_run=dry_run, applied=True)
        if outcome is not None:
            return call.answer(200, *outcome)
    raise conflict(resource.group, resource.plural, call.info.name, STALE)


def _check_kind(call: Call, applied: Json) -> None:
    """Check that an apply patch has the kind of the path. Raises StatusError."""
    resource = call.resource
    if applied.get("metadata") is None:
        applied["metadata"] = {}
    version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
    if version != resource.api_version or kind != resource.kind:
        group, _, bare = version.rpartition("/") if isinstance(version, str) else ("", "", "")
        raise bad_request(f"invalid object type: {group}/{bare}, Kind={kind}")


def _check_name(call: Call, meta: Json) -> None:
    """Check that the applied object is the one of the path. Raises StatusError."""
    name, namespace = meta.get("name"), meta.get("namespace")
    if not name:
        raise bad_request(f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided")
    if name != call.info.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
    if call.resource.namespaced and namespace not in {None, "", call.info.namespace}:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
