"""Delete and deletecollection: options, preconditions, finalizers, propagation."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver import metadata
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding import bodies, negotiation, protobuf
from clusterwright.apiserver.encoding.negotiation import integer
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.goscalars import json_type
from clusterwright.apiserver.status import (
    FieldError,
    bad_request,
    conflict,
    forbidden_error,
    invalid,
    invalid_error,
    not_found,
    not_supported,
)
from clusterwright.apiserver.storage.store import Entry, object_key
from clusterwright.apiserver.system.definitions import TABLE as CRD_TABLE
from clusterwright.apiserver.verbs import lifecycle, reads
from clusterwright.apiserver.verbs.storing import put, to_storage
from clusterwright.apiserver.verbs.writes import attributes_of

_PROTECTED: Final = frozenset({"default", "kube-system", "kube-public"})
_TURN: Final = 25
"""How many objects of a collection are deleted before other requests are served."""
_OWN_WAY: Final = frozenset({"namespaces", CRD_TABLE})
"""Tables whose objects kube-apiserver deletes with special code: no grace period, no new generation."""
_ORPHANED: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_OTHER_KINDS: Final[dict[str, frozenset[str]]] = {
    "v1": frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}),
    "meta.k8s.io/v1": frozenset(
        {"CreateOptions", "GetOptions", "ListOptions", "PartialObjectMetadata", "PartialObjectMetadataList", "PatchOptions", "Table"}
        | {"TableOptions", "UpdateOptions"}
    ),
}
"""Kinds that kube-apiserver decodes in place of DeleteOptions, and then refuses."""


def options_of(call: Call) -> Json:
    """Return the DeleteOptions of the body or the query. Raises StatusError."""
    request, query = call.request, call.query
    options: Json = {}
    if request.body:
        media = negotiation.body_media(request.headers.get("content-type", ""))
        try:
            value: Any = (
                protobuf.decode(request.body)
                if media == negotiation.PROTOBUF
                else bodies.decode_json(request.body)
                if media == negotiation.JSON
                else bodies.decode_yaml(request.body)
            )
        except (bodies.Malformed, DecodeError) as e:
            raise bad_request(f"couldn't get version/kind; json parse error: {e}") from None
        options = bodies.as_object(value, "", request.body)
        _check_kind(str(options.get("kind") or "DeleteOptions"), str(options.get("apiVersion") or "meta.k8s.io/v1"))
    else:
        for name in ("propagationPolicy", "dryRun", "gracePeriodSeconds", "orphanDependents"):
            if name in query:
                options[name] = query[name]
        if "gracePeriodSeconds" in options:
            options["gracePeriodSeconds"] = integer(options["gracePeriodSeconds"])
        if "orphanDependents" in options:
            options["orphanDependents"] = negotiation.boolean(options["orphanDependents"], "orphanDependents")
        if "dryRun" in options:
            options["dryRun"] = [v for k, v in request.query if k == "dryRun"]
    return check_options(options)


def _check_kind(kind: str, version: str) -> None:
    if version.count("/") > 1:
        raise bad_request(f"unexpected GroupVersion string: {version}")
    if kind == "DeleteOptions":
        return
    if kind in _OTHER_KINDS.get(version, ()):
        raise bad_request(f"converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
    scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
    raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"')


def check_options(options: Json) -> Json:
    """Return the options if they are valid. Raises StatusError."""
    _check_types(options)
    errors: list[FieldError] = []
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphan is not None:
        errors.append(invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    dry = options.get("dryRun") or []
    if any(v != "All" for v in dry):
        errors.append(not_supported("dryRun", dry, ["All"]))
    if errors:
        raise invalid_error("meta.k8s.io", "DeleteOptions", "", errors)
    return options


def _check_types(options: Json) -> None:
    kinds: dict[str, tuple[type, str]] = {
        "propagationPolicy": (str, "v1.DeletionPropagation"), "orphanDependents": (bool, "bool"), "dryRun": (list, "[]string"),
        "gracePeriodSeconds": (int, "int64"), "preconditions": (dict, "v1.Preconditions"),
    }  # fmt: skip
    for name, (expected, go_type) in kinds.items():
        value = options.get(name)
        if value is not None and (not isinstance(value, expected) or (expected is int and isinstance(value, bool))):
            given = json_type(value)
            raise bad_request(f"json: cannot unmarshal {given} into Go struct field DeleteOptions.{name} of type {go_type}")
    for name, value in (options.get("preconditions") or {}).items():
        if name in {"uid", "resourceVersion"} and not isinstance(value, str | None):
            raise bad_request(f"json: cannot unmarshal into Go struct field Preconditions.preconditions.{name} of type string")


async def delete(call: Call) -> Response:
    """Answer DELETE of one object."""
    options = await call.off(options_of, call)
    _warn(call, options)
    resource, info = call.resource, call.info
    if resource.plural == "namespaces" and not resource.group and info.name in _PROTECTED:
        raise forbidden_error("", "namespaces", info.name, "this namespace may not be deleted")
    key = object_key(info.namespace if resource.namespaced else "", info.name)
    for _ in range(8):
        entry = call.table.objects.get(key)
        if entry is None:
            raise not_found(resource.group, resource.plural, info.name)
        outcome = await delete_entry(call, entry, options)
        if outcome is not None:
            gone, obj, raw = outcome
            if gone and not _answers_object(call, obj):
                return call.answer(200, _success(call, obj["metadata"].get("uid", "")))
            return call.answer(200, obj, raw)
    raise conflict(resource.group, resource.plural, info.name, "the object has been modified; please try again")


def _warn(call: Call, options: Json) -> None:
    """Warn that the Pods of a Job stay if the request names no propagation policy."""
    if (
        call.resource.kind == "Job"
        and call.resource.orphans
        and options.get("propagationPolicy") is options.get("orphanDependents") is None
    ):
        call.warnings.append(_ORPHANED)


def _answers_object(call: Call, obj: Json) -> bool:
    return call.resource.returns_deleted


def _success(call: Call, uid: str) -> Json:
    details: Json = {"name": call.info.name}
    if call.resource.group:
        details["group"] = call.resource.group
    details["kind"] = call.resource.plural
    details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def delete_entry(call: Call, entry: Entry, options: Json) -> tuple[bool, Json, bytes] | None:
    """Start or finish the deletion of an object; return None if it changed meanwhile. The answer tells whether it is gone."""
    server, resource = call.server, call.resource
    if not call.is_plain:
        await call.prepare((entry,))
    obj = call.load(entry)
    _preconditions(call, entry, options)
    dry_run = bool(options.get("dryRun"))
    chain = server.admission
    if chain:
        attributes = attributes_of(call, "DELETE", None, obj, dry_run=dry_run)
        attributes.options = options
        for link in chain:
            await link.mutate(attributes)
        for link in chain:
            await link.validate(attributes)
        if call.table.objects.get(entry.key) is not entry:
            return None
    meta = obj["metadata"]
    finalizers = _finalizers_for(call, meta, options)
    if not meta.get("deletionTimestamp"):
        finalizers.extend(f for f in lifecycle.deletion_finalizers(resource) if f not in finalizers)
    grace = lifecycle.grace_period(resource, obj, options)
    if finalizers != (meta.get("finalizers") or []):
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
    must_wait = bool(finalizers) or not lifecycle.may_vanish(resource, obj)
    if not must_wait and grace <= 0:
        if resource.grace:
            if not meta.get("deletionTimestamp"):
                meta["deletionTimestamp"] = server.timestamp()
                if meta.get("generation"):
                    meta["generation"] += 1
            meta["deletionGracePeriodSeconds"] = 0
        if not dry_run:
            rv = server.remove_system(call.table, entry)
            await server.store.durable(rv)
            if resource.returns_deleted:
                meta["resourceVersion"] = str(rv)
        return True, obj, msgspec.json.encode(obj)
    changed = _mark(call, meta, grace)
    changed = lifecycle.mark_deleting(resource, obj, server.timestamp()) or changed
    began = changed and not call.load(entry)["metadata"].get("deletionTimestamp")
    if began and resource.generation and resource.storage_key not in _OWN_WAY:
        meta["generation"] = (meta.get("generation") or 0) + 1
    if obj == call.load(entry):
        await server.store.durable(entry.rv)
        return False, obj, call.raw(entry)
    if dry_run:
        return False, obj, msgspec.json.encode(obj)
    written = await to_storage(call, obj)
    if call.table.objects.get(entry.key) is not entry:
        return None
    new = put(call, written)
    await server.store.durable(new.rv)
    if not call.is_plain:
        await call.prepare((new,))
    return False, obj, call.raw(new)


def _mark(call: Call, meta: Json, grace: int) -> bool:
    now = call.server.now()
    if meta.get("deletionTimestamp"):
        current = meta.get("deletionGracePeriodSeconds") or 0
        if grace < current:
            meta["deletionGracePeriodSeconds"] = grace
            return True
        return False
    meta["deletionTimestamp"] = metadata.rfc3339(now + timedelta(seconds=grace))
    if call.resource.storage_key not in _OWN_WAY:
        meta["deletionGracePeriodSeconds"] = grace
    return True


def _preconditions(call: Call, entry: Entry, options: Json) -> None:
    wanted = options.get("preconditions") or {}
    resource = call.resource
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    text = ""
    if uid is not None and uid != entry.uid:
        text = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({entry.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif version is not None and version != str(entry.rv):
        text = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({entry.rv}). "
            "The object might have been modified"
        )
    if text and resource.storage_key == "namespaces":  # kube-apiserver checks them with other code
        text = (
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
            if uid is not None and uid != entry.uid
            else f"Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {entry.rv}"
        )
        raise conflict(resource.group, resource.plural, entry.name, text)
    if text:
        raise conflict(resource.group, resource.kind, entry.name, text)


def _finalizers_for(call: Call, meta: Json, options: Json) -> list[str]:
    current: list[str] = list(meta.get("finalizers") or [])
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is None and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    if policy is None and call.resource.orphans:
        policy = "Orphan"
    if policy is None:
        return current
    result = [f for f in current if f not in {"orphan", "foregroundDeletion"}]
    if policy == "Orphan":
        result.append("orphan")
    elif policy == "Foreground":
        result.append("foregroundDeletion")
    return result


async def delete_collection(call: Call) -> Response:
    """Delete all objects of a collection that match the selectors, in slices with other requests in between."""
    reads.check_options(call, watch=False)
    selects = reads.selection(call)
    options = await call.off(options_of, call)
    _warn(call, options)
    limit = max(0, integer(call.query["limit"])) if call.query.get("limit") else 0
    entries, list_meta = await reads.snapshot(call, selects, limit, paged=True)
    for number, entry in enumerate(entries, 1):
        current = call.table.objects.get(entry.key)
        if current is not None:
            await delete_entry(call, current, options)
        if not number % _TURN:
            call.server.drain()
            await asyncio.sleep(0)
    return await reads.render_list(call, entries, list_meta)
