"""Create and update: from a body to a stored object."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver import metadata
from clusterwright.apiserver.attributes import Attributes
from clusterwright.apiserver.auth import escalation, rbac
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.managedfields import updating
from clusterwright.apiserver.status import (
    STALE,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    failure,
    forbidden_error,
    invalid,
    invalid_error,
    not_found,
)
from clusterwright.apiserver.storage.store import Entry, object_key
from clusterwright.apiserver.system import namespaces
from clusterwright.apiserver.verbs import incoming, lifecycle, options, storing
from clusterwright.golang.numbers import parse_uint

_encode = msgspec.json.Encoder().encode
_decode_raw = msgspec.json.Decoder().decode
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
ATTEMPTS: Final = 8
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
"""Metadata fields that are ignored on create."""


async def create(call: Call) -> Response:
    """Answer POST to a collection."""
    dry_run = options.write_options(call, "CreateOptions")
    obj = await call.off(incoming.read, call)
    stored, raw = await create_object(call, obj, dry_run=dry_run)
    return call.answer(201, stored, raw)


async def create_object(call: Call, obj: Json, *, dry_run: bool, applied: bool = False) -> tuple[Json, bytes]:
    """Store a decoded and defaulted new object; return it as answered. Raises StatusError."""
    server, resource = call.server, call.resource
    meta = incoming.meta_of(obj)
    for field in _SYSTEM_FIELDS:
        meta.pop(field, None)
    incoming.match_namespace(call, meta)
    _require_kind(call, obj)
    call.warnings.extend(metadata.dedup_owner_references(meta))
    if not applied:
        time, versions = server.timestamp(), call.versions
        await call.off(updating.update, None, obj, manager=call.manager, subresource="", time=time, handlers=versions)
    namespaces.check_open(server, resource, call.info.namespace, meta.get("name") or "")
    obj = await _mutate(call, "CREATE", obj, None, dry_run=dry_run)
    meta = obj["metadata"]
    if not meta.get("name") and meta.get("generateName"):
        for _ in range(ATTEMPTS):  # draw again if the name is taken
            meta["name"] = meta["generateName"][: 63 - 5] + "".join(server.random.choice(_SUFFIX) for _ in range(5))
            if object_key(meta.get("namespace") or "", meta["name"]) not in call.table.objects:
                break
    revision = str(meta.pop("resourceVersion", None) or "0")
    if resource.generation or resource.custom:  # other kinds keep the generation that was sent
        meta.pop("generation", None)
    meta["uid"] = server.new_uid()
    meta["creationTimestamp"] = server.timestamp()
    if (resource.group, resource.plural) in server.terminating:
        text = "create not allowed while custom resource definition is terminating"
        raise forbidden_error(resource.group, resource.plural, meta.get("name") or "", text)
    await call.metered(_judge_new, call, obj)
    meta = obj["metadata"]
    if call.heavy:  # others had their turns meanwhile
        namespaces.check_open(server, resource, call.info.namespace, meta["name"])
    if resource.group == rbac.GROUP:
        escalation.check_size(resource.kind, obj, None)
        escalation.check_grants(server, call.user, resource.plural, call.info.namespace, obj, None)
    if call.info.verb != "create":  # the right to change an object is not the right to create it
        server.demand(call.user, replace(call.info, verb="create"))
    await _validate(call, "CREATE", obj, None, dry_run=dry_run)
    _allocate(call, obj, None, dry_run=dry_run)
    if dry_run and revision != "0":
        meta["resourceVersion"] = revision
    elif revision != "0" and _is_revision(revision):
        raise failure(500, "", "resourceVersion should not be set on objects to be created")
    written = await storing.to_storage(call, obj)
    key = object_key(meta.get("namespace") or "", meta["name"])
    existing = call.table.objects.get(key)
    if existing is not None:
        error = already_exists(resource.group, resource.plural, meta["name"])
        if _decode_raw(existing.raw)["metadata"].get("deletionTimestamp"):
            error.status["message"] = "object is being deleted: " + error.status["message"]
        raise error
    return await storing.store_object(call, written, dry_run=dry_run)


def _allocate(call: Call, obj: Json, old: Json | None, *, dry_run: bool) -> None:
    """Fill in the fields that only the server can choose. Raises StatusError."""
    allocator = call.server.allocators.get(call.table.name)
    if allocator is not None and not call.info.subresource and (errors := allocator.fill(obj, old, dry_run=dry_run)):
        raise _invalid(call.resource, obj, list(errors))


def _judge_new(call: Call, obj: Json) -> None:
    """Check a new object, and add warnings. Raises StatusError."""
    resource = call.resource
    resource.handler.prepare_for_create(obj)
    meta = obj["metadata"]
    if resource.generation:
        meta["generation"] = 1
    loose = not resource.checks.finalizers
    errors = metadata.validate_create(meta, namespaced=resource.namespaced, rule=resource.handler.name_rule, loose=loose)
    errors.extend(resource.handler.validate_create(obj))
    if errors:
        raise _invalid(resource, obj, errors)
    if resource.custom:
        call.warnings.extend(metadata.finalizer_warnings(meta.get("finalizers") or (), ()))
    call.warnings.extend(resource.handler.warnings(obj, None))


async def update(call: Call) -> Response:
    """Answer PUT of an object or of a subresource that has its shape."""
    dry_run = options.write_options(call, "UpdateOptions")
    obj = await call.off(incoming.read, call)
    meta = incoming.meta_of(obj)
    name = meta.get("name")
    if not name:
        raise bad_request(f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided")
    if name != call.info.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
    incoming.match_namespace(call, meta)
    key, uid = object_key(call.info.namespace if call.resource.namespaced else "", name), meta.get("uid")
    entry = call.table.objects.get(key)
    if entry is None:
        if call.resource.create_on_update and not call.info.subresource:
            if uid:
                raise other_uid(call, key, name, uid, "")
            stored, raw = await create_object(call, obj, dry_run=dry_run)
            return call.answer(201, stored, raw)
        raise not_found(call.resource.group, call.resource.plural, name)
    if uid and uid != entry.uid:
        raise other_uid(call, key, name, uid, entry.uid)
    if not call.is_plain:
        await call.prepare((entry,))
    snapshot = _encode(obj)
    for _ in range(ATTEMPTS):
        call.weigh(entry.raw)
        outcome = await replace_object(call, entry, call.load(entry), obj, dry_run=dry_run)
        if outcome is not None:
            return call.answer(200, *outcome)
        entry, obj = await current_entry(call, name), _decode_raw(snapshot)
    raise conflict(call.resource.group, call.resource.plural, name, STALE)


def other_uid(call: Call, key: str, name: str, uid: str, found: str) -> StatusError:
    """Return the error (409) for an update with another UID than that of the stored object; `found` is empty if there is none."""
    text = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{_registry_path(call.resource)}/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
    )
    return conflict(call.resource.group, call.resource.plural, name, text)


def _is_revision(text: str) -> bool:
    try:
        return parse_uint(text) != 0
    except ValueError:
        return False


def _registry_path(resource: Resource) -> str:
    return f"{resource.group}/{resource.plural}" if resource.custom else resource.plural


async def current_entry(call: Call, name: str) -> Entry:
    """Return the stored object of that name, prepared for loading. Raises StatusError (404)."""
    entry = stored_entry(call, name)
    if not call.is_plain:
        await call.prepare((entry,))
    return entry


def stored_entry(call: Call, name: str) -> Entry:
    """Return the stored object of that name in the call's namespace. Raises StatusError (404)."""
    entry = call.table.objects.get(object_key(call.info.namespace if call.resource.namespaced else "", name))
    if entry is None:
        raise not_found(call.resource.group, call.resource.plural, name)
    return entry


async def replace_object(
    call: Call, entry: Entry, old: Json, obj: Json, *, dry_run: bool, applied: bool = False
) -> tuple[Json, bytes] | None:
    """Store a changed object over `entry`; return it as answered. `applied`: its managedFields are set already.

    Return None if the object changed meanwhile and the request named no resourceVersion. Raises StatusError.
    """
    server, resource = call.server, call.resource
    meta, before = obj["metadata"], old["metadata"]
    revision = str(meta.get("resourceVersion") or "")
    if revision in {"", "0"}:
        if not resource.unconditional_update:
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid_error(resource.group, resource.plural, call.info.name, [error])
    elif revision != str(entry.rv):
        try:
            parse_uint(revision)
        except ValueError as e:
            raise failure(500, "", str(e)) from None
        raise conflict(resource.group, resource.plural, call.info.name, STALE)
    _require_kind(call, obj)
    meta["resourceVersion"] = before["resourceVersion"]
    for field in ("creationTimestamp", "generation", "uid", "namespace"):
        _inherit(meta, before, field, only_if_absent=field == "uid")
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        _inherit(meta, before, field, only_if_absent=True)
    meta.pop("selfLink", None)
    call.warnings.extend(metadata.dedup_owner_references(meta))
    if not applied:
        obj = await owned(call, old, obj)
        meta = obj["metadata"]
    obj = await _mutate(call, "UPDATE", obj, old, dry_run=dry_run)
    await call.metered(_judge_change, call, obj, old)
    meta = obj["metadata"]
    if resource.group == rbac.GROUP:
        escalation.check_size(resource.kind, obj, old)
        escalation.check_grants(server, call.user, resource.plural, call.info.namespace, obj, old)
    await _validate(call, "UPDATE", obj, old, dry_run=dry_run)
    _allocate(call, obj, old, dry_run=dry_run)
    written = await storing.to_storage(call, obj)
    is_unchanged = await call.off(storing.is_unchanged, call, entry, written, old)
    if call.heavy:  # others may have taken the same meanwhile
        _allocate(call, obj, old, dry_run=dry_run)
    if call.table.objects.get(entry.key) is not entry:
        if revision in {"", "0", str(entry.rv)}:
            return None
        raise conflict(resource.group, resource.plural, call.info.name, STALE)
    if is_unchanged:
        await server.store.durable(entry.rv)
        return old, call.raw(entry)
    released = meta.get("deletionTimestamp") and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
    if released and lifecycle.may_vanish(resource, obj):
        if not dry_run:
            await server.store.durable(server.remove_system(call.table, entry))
        return written.answered, _encode(written.answered)
    return await storing.store_object(call, written, dry_run=dry_run)


def _judge_change(call: Call, obj: Json, old: Json) -> None:
    """Check a changed object, and add warnings. Raises StatusError."""
    resource, subresource, before = call.resource, call.info.subresource, old["metadata"]
    resource.handler.prepare_for_update(obj, old, subresource=subresource)
    meta = obj["metadata"]
    if resource.generation:
        _settle_generation(resource, obj, old, subresource)
    errors = metadata.validate_update(meta, before, resource.checks)
    if errors and resource.trusts_stored:
        known = metadata.validate_update(before, before, resource.checks)
        errors = [error for error in errors if error not in known]
    errors.extend(resource.handler.validate_update(obj, old, subresource=subresource))
    if errors:
        raise _invalid(resource, obj, errors)
    if resource.custom:
        call.warnings.extend(metadata.finalizer_warnings(meta.get("finalizers") or (), before.get("finalizers") or ()))
    call.warnings.extend(resource.handler.warnings(obj, old))


def _inherit(meta: Json, before: Json, field: str, *, only_if_absent: bool) -> None:
    if only_if_absent and meta.get(field) is not None:
        return
    if field in before:
        meta[field] = before[field]
    else:
        meta.pop(field, None)


def _settle_generation(resource: Resource, obj: Json, old: Json, subresource: str) -> None:
    ignored = {"metadata", "apiVersion", "kind"} | ({"status"} if resource.status else set())
    generation = old["metadata"].get("generation") or 0
    if subresource != "status":
        before = {k: v for k, v in old.items() if k not in ignored}
        noted = any((obj["metadata"].get(f) or {}) != (old["metadata"].get(f) or {}) for f in resource.generation_fields)
        if noted or {k: v for k, v in obj.items() if k not in ignored} != before:
            generation += 1
    if generation:
        obj["metadata"]["generation"] = generation
    else:
        obj["metadata"].pop("generation", None)


async def owned(call: Call, old: Json, obj: Json) -> Json:
    """Return the object with its managedFields after a write other than apply."""

    def update(versions: Versions) -> Json:
        new = obj if versions.immediate else {**obj, "metadata": dict(obj["metadata"])}  # the update may run again
        now = call.server.timestamp()
        updating.update(old, new, manager=call.manager, subresource=call.info.subresource, time=now, handlers=versions)
        return new

    return await call.versions.settled(update, call.off)


def _require_kind(call: Call, obj: Json) -> None:
    resource = call.resource
    if obj.get("kind") == resource.kind and obj.get("apiVersion") == resource.api_version:
        return
    errors = []
    if obj.get("kind") != resource.kind:
        errors.append(invalid("kind", obj.get("kind"), f"must be {resource.kind}"))
    if obj.get("apiVersion") != resource.api_version:
        errors.append(invalid("apiVersion", obj.get("apiVersion"), f"must be {resource.api_version}"))
    raise _invalid(resource, obj, errors)


def _invalid(resource: Resource, obj: Json, errors: list[Any]) -> StatusError:
    storage = resource.storage or resource.api_version
    group, kind = storage.rpartition("/")[0], resource.kind  # events.k8s.io Events are validated as core ones
    if resource.custom:
        kind = str(obj.get("kind"))
        group = str(obj.get("apiVersion")).rpartition("/")[0]
    return invalid_error(group, kind, obj["metadata"].get("name") or "", errors)


async def _mutate(call: Call, operation: Any, obj: Json, old: Json | None, *, dry_run: bool) -> Json:
    chain = call.server.admission
    if not chain:
        return obj
    attributes = attributes_of(call, operation, obj, old, dry_run=dry_run)
    for link in chain:
        await link.mutate(attributes)
    assert attributes.object is not None
    call.warnings.extend(metadata.dedup_owner_references(attributes.object["metadata"]))
    return attributes.object


async def _validate(call: Call, operation: Any, obj: Json, old: Json | None, *, dry_run: bool) -> None:
    chain = call.server.admission
    if not chain:
        return
    attributes = attributes_of(call, operation, obj, old, dry_run=dry_run)
    for link in chain:
        await link.validate(attributes)


def attributes_of(call: Call, operation: Any, obj: Json | None, old: Json | None, *, dry_run: bool) -> Attributes:
    """Return the write in the form for admission."""
    return Attributes(
        operation=operation,
        resource=call.resource,
        subresource=call.info.subresource,
        namespace=call.info.namespace,
        name=call.info.name or ((obj or old or {}).get("metadata") or {}).get("name") or "",
        object=obj,
        old_object=old,
        user=call.user,
        dry_run=dry_run,
        warnings=call.warnings,
        server=call.server,
    )
