"""The scale subresource: autoscaling/v1 Scale over two or three paths of an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.meta import Json
from clusterwright.api.selectors import object_selector_text
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.encoding import bodies, negotiation, printing, rendering
from clusterwright.apiserver.interfaces import DecodeError, Scale
from clusterwright.apiserver.managedfields.applying import apply as merge_applied
from clusterwright.apiserver.patchtypes import jsonpatch
from clusterwright.apiserver.schema.gotypes import struct
from clusterwright.apiserver.status import STALE, bad_request, conflict, failure, generic, invalid, invalid_error
from clusterwright.apiserver.storage.store import Entry
from clusterwright.apiserver.verbs import incoming, options, writes


def _steps(path: str) -> list[str]:
    return [s for s in path.split(".") if s]


def _at(obj: Any, steps: Iterable[str]) -> Any:
    for step in steps:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def _set(obj: Json, path: str, value: Any) -> None:
    steps = _steps(path)
    for step in steps[:-1]:
        obj = obj.setdefault(step, {})
    obj[steps[-1]] = value


def scale_of(obj: Json, paths: Scale) -> Json:
    """Return the Scale of an object."""
    meta = {k: obj["metadata"][k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in obj["metadata"]}
    replicas = _at(obj, _steps(paths.spec_replicas_path))
    current = _at(obj, _steps(paths.status_replicas_path))
    status: Json = {"replicas": current if isinstance(current, int) else 0}
    selector = _at(obj, _steps(paths.label_selector_path)) if paths.label_selector_path else None
    if isinstance(selector, dict):  # of a built-in
        selector = object_selector_text(selector)
    if isinstance(selector, str) and selector:
        status["selector"] = selector
    spec: Json = {"replicas": replicas} if isinstance(replicas, int) and replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


async def answer(call: Call) -> Response:
    """Get, replace or patch the scale."""
    paths = call.resource.scale
    assert paths is not None
    verb = call.info.verb
    if verb == "get":
        entry = await writes.current_entry(call, call.info.name)
        await call.server.store.durable(entry.rv)
        call.weigh(entry.raw)
        return _answer(call, await call.off(scale_of, call.load(entry), paths))
    if verb == "update":
        dry_run = options.write_options(call, "UpdateOptions")
        scale, _ = await call.off(incoming.read_body, call)
        _check_replacement(call, scale)
        return await _write(call, lambda _: scale, dry_run=dry_run)
    if verb == "patch":
        dry_run = options.write_options(call, "PatchOptions")
        if call.patch_media == negotiation.APPLY_PATCH:
            return await _apply(call, paths, dry_run=dry_run)
        return await _write(call, lambda current: _patched(call, current, call.patch_media), dry_run=dry_run)
    raise generic(405, "", "", "", "")


def _check_replacement(call: Call, scale: Json) -> None:
    """Check that the body of a PUT is a Scale of this object. Raises StatusError."""
    named = scale.get("kind") or "Scale", scale.get("apiVersion") or "autoscaling/v1"
    try:
        wanted = msgspec.convert(scale, _Wanted)
    except msgspec.ValidationError:
        wanted = None
    if wanted is None or named != ("Scale", "autoscaling/v1"):
        text = (
            "no kind is registered for the type v1.Scale in scheme "
            '"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"'
        )
        raise bad_request(text)
    meta = wanted.metadata or _Meta()
    if not meta.name:
        raise bad_request(f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided")
    if meta.name == call.info.name and (meta.namespace or call.info.namespace) != call.info.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _patched(call: Call, current: Json, media: str) -> Json:
    try:
        value = bodies.decode_json(call.request.body)
    except bodies.Malformed as e:
        raise bad_request(f"error decoding patch: {e}") from None
    if media == negotiation.JSON_PATCH:
        patched = jsonpatch.json_patch(msgspec.json.decode(msgspec.json.encode(current)), value)
    else:
        if not isinstance(value, dict):
            raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")
        patched = merge_patched(current, value)
    if not isinstance(patched, dict):
        raise bad_request("the patched object is not an object")
    problem = incoming.strictness(call, _unknown(patched), [])
    if problem:
        raise invalid_error("", "", "", [invalid("patch", msgspec.json.encode(patched).decode(), problem)])
    return patched


_FIELDS: Final = {"spec": frozenset({"replicas"}), "status": frozenset({"replicas", "selector"})}


def _unknown(scale: Json) -> list[str]:
    """Return the fields that a Scale does not have."""
    found = [field for field in scale if field not in {"apiVersion", "kind", "metadata", *_FIELDS}]
    for part, known in _FIELDS.items():
        inner = scale.get(part)
        found.extend(f"{part}.{field}" for field in inner if field not in known) if isinstance(inner, dict) else None
    return sorted(found)


class _Meta(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Wanted(msgspec.Struct):
    metadata: _Meta | None = None
    spec: _Spec | None = None


def _read(scale: Json) -> _Wanted:
    shown = {k: v for k, v in scale.items() if k not in {"kind", "apiVersion"}}
    try:
        struct("autoscaling.v1.Scale").decode(shown, "", [])
        return msgspec.convert(scale, _Wanted)
    except (DecodeError, msgspec.ValidationError) as e:
        raise invalid_error("", "", "", [invalid("patch", msgspec.json.encode(scale).decode(), str(e))]) from None


async def _write(call: Call, change: Any, *, dry_run: bool) -> Response:
    resource, paths = call.resource, call.resource.scale
    assert paths is not None
    for _ in range(8):
        entry: Entry = await writes.current_entry(call, call.info.name)
        call.weigh(entry.raw)
        old = call.load(entry)
        current = await call.off(scale_of, old, paths)
        wanted = _read(change(current))
        replicas = (wanted.spec.replicas if wanted.spec is not None else 0) or 0
        meta = wanted.metadata or _Meta()
        name = meta.name
        if name not in {None, "", call.info.name}:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
        revision = meta.resource_version
        if replicas < 0 and not resource.custom:
            error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid_error("autoscaling", "Scale", call.info.name, [error])
        obj = call.load(entry)
        _set(obj, paths.spec_replicas_path, replicas)
        if revision not in {None, "", "0"}:
            obj["metadata"]["resourceVersion"] = revision
        uid = meta.uid
        if uid and uid != entry.uid:
            raise writes.other_uid(call, entry.key, entry.name, uid, entry.uid)
        obj = await writes.owned(call, old, obj)
        _settle_owners(obj, old, _steps(paths.spec_replicas_path))
        outcome = await writes.replace_object(call, entry, old, obj, dry_run=dry_run, applied=True)
        if outcome is not None:
            return _answer(call, await call.off(scale_of, outcome[0], paths))
    raise conflict(resource.group, resource.plural, call.info.name, STALE)


def _settle_owners(obj: Json, old: Json, path: Sequence[str]) -> None:
    """Set managedFields as kube-apiserver does: unowned fields stay unowned, entries have no time, and zero replicas are not owned."""
    before, entries = old["metadata"].get("managedFields") or [], obj["metadata"].pop("managedFields", None) or []
    if all(_at(e.get("fieldsV1"), [f"f:{step}" for step in path]) is None for e in before):
        entries = before
    elif not _at(obj, path):
        entries = [e for e in entries if e.get("subresource") != "scale"]
    if entries:
        obj["metadata"]["managedFields"] = [
            {k: v for k, v in e.items() if k != "time"} if e.get("subresource") == "scale" else e for e in entries
        ]


def _applied(call: Call, old: Json, part: Json, versions: Versions) -> Json:
    return merge_applied(
        old,
        part,
        manager=call.query["fieldManager"],
        force=negotiation.boolean(call.query.get("force"), "force"),
        subresource="scale",
        time=call.server.timestamp(),
        handlers=versions,
    )


async def _apply(call: Call, paths: Scale, *, dry_run: bool) -> Response:
    """Answer server-side apply of a Scale: replicas are owned at their path in the object."""
    resource = call.resource
    try:
        applied = await call.off(bodies.decode_yaml, call.request.body)
    except bodies.Malformed as e:
        raise bad_request(f"error decoding YAML: {e}") from None
    if not isinstance(applied, dict) or (applied.get("apiVersion"), applied.get("kind")) != ("autoscaling/v1", "Scale"):
        shown = applied if isinstance(applied, dict) else {}
        group, _, version = str(shown.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={shown.get('kind') or ''}")
    wanted = _read(applied)
    if wanted.metadata is not None and wanted.metadata.name not in {None, "", call.info.name}:
        raise bad_request(f"the name of the object ({wanted.metadata.name}) does not match the name on the URL ({call.info.name})")
    for _ in range(8):
        entry = await writes.current_entry(call, call.info.name)
        old = call.load(entry)
        part: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": call.info.name}}
        if wanted.spec is not None and wanted.spec.replicas is not None:
            _set(part, paths.spec_replicas_path, wanted.spec.replicas)
        obj = await call.versions.settled(lambda versions, old=old, part=part: _applied(call, old, part, versions), call.off)  # type: ignore[misc]
        outcome = await writes.replace_object(call, entry, old, obj, dry_run=dry_run, applied=True)
        if outcome is not None:
            return _answer(call, await call.off(scale_of, outcome[0], paths))
    raise conflict(resource.group, resource.plural, call.info.name, STALE)


def _answer(call: Call, scale: Json) -> Response:
    if call.form.render == "Table":
        raise failure(406, "NotAcceptable", "tables of scales are not supported")
    if call.form.render:
        scale = printing.partial(scale)
    return rendering.write(200, scale, call.form, tuple(call.warnings))
