"""Server-side apply: merge a configuration into an object, and set its managers."""

from __future__ import annotations

from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.interfaces import KindHandler
from clusterwright.apiserver.managedfields.managers import (
    MAXIMUM_MANAGERS,
    STRIPPED,
    Comparisons,
    Conflicts,
    Entry,
    Identity,
    Managers,
    NotInVersion,
    bare,
    decode,
    encode,
    take,
    type_of,
    versioned,
    written,
    zero_object,
)
from clusterwright.apiserver.managedfields.merging import SchemaMismatch, check, field_set, merge, remove
from clusterwright.apiserver.managedfields.sets import (
    Set,
    difference,
    intersection,
    union,
    with_named_fields,
    without,
)
from clusterwright.apiserver.schema.mergetypes import MergeType
from clusterwright.apiserver.status import bad_request, failure

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def apply(
    live: Json | None,
    applied: Json,
    *,
    manager: str,
    force: bool,
    subresource: str,
    time: str,
    handlers: Versions,
) -> Json:
    """Return the applied object with its managedFields; `live` None means create. Raises StatusError."""
    api_version = str(applied.get("apiVersion") or "")
    handler = handlers.get(api_version)
    if handler is None or applied.get("kind") != handler.gvk.kind:
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={applied.get('kind') or ''}")
    meta = applied.get("metadata")
    if type(meta) is dict and "managedFields" in meta:
        if meta["managedFields"] is not None:
            raise bad_request("metadata.managedFields must be nil")
        # null means nothing, so that it alone does not change the object
        applied = {**applied, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}
    kind = type_of(handler)
    try:
        check(applied, kind)
    except SchemaMismatch as e:
        raise failure(500, "", f"failed to create typed patch object ({named(applied)}; {go_gvk(handler)}): {e}") from None
    kept = live["metadata"].get("managedFields") if live is not None else None
    base = bare(versioned(live, api_version, handlers) or {}) if live is not None else zero_object(handler)
    managers = decode(kept) or {}
    _check_versions(managers, (manager, "Apply", "", subresource), handlers)
    if not managers and live is not None:
        # fields from before the first apply get a manager
        compared = Comparisons(zero_object(handler), base, handlers, subresource).of(api_version)
        before = difference(compared[1], STRIPPED) if compared is not None else {}
        if before:
            identity: Identity = ("before-first-apply", "Update", api_version, subresource)
            managers[identity] = Entry(identity[0], "Update", api_version, subresource, time, before)
    try:
        result, managers = _apply(base, applied, kind, api_version, managers, manager, force, subresource, handlers)
    except NotInVersion as e:
        raise failure(500, "", str(e)) from None
    except Conflicts as conflicts:
        if manager != "kubectl" or not _allowed_by_last_applied(conflicts, base, handler):
            raise conflicts.status() from None
        result, managers = _apply(base, applied, kind, api_version, managers, manager, True, subresource, handlers)
    actor: Identity = (manager, "Apply", "", subresource)
    entry = managers.get(actor)
    if entry is not None:
        # an apply that only changes owners keeps the time
        entry.time = time if result != base else entry.time
    meta = dict(result.get("metadata") or {})
    entries = written(managers)
    if len(entries) > max(MAXIMUM_MANAGERS, len(kept or ())):
        raise bad_request(
            f"the object has {len(entries) - 1} field managers, which is the limit: remove some of metadata.managedFields first"
        )
    meta.pop("managedFields", None)
    if entries:
        meta["managedFields"] = entries
    result["metadata"] = meta
    _refresh_last_applied(result, applied, manager)
    return result


def _check_versions(managers: Managers, actor: Identity, versions: Versions) -> None:
    """Check that the versions of all managers of a custom resource are served. Raises StatusError."""
    if versions.converter is None:
        return
    for identity, entry in sorted(managers.items(), key=lambda item: item[0] == actor):
        if entry.api_version not in versions:
            problem = f"request to convert CR to an invalid group/version: {entry.api_version}"
            own = "failed to prune fields: failed to convert merged object to last applied version: "
            raise failure(500, "", (own if identity == actor else "failed to convert old object: ") + problem)


def named(applied: Json) -> str:
    """Return namespace and name of a configuration, as far as it has them."""
    meta = applied.get("metadata")
    given = [meta.get(k) for k in ("namespace", "name")] if type(meta) is dict else [None, None]
    return "/".join(g if isinstance(g, str) else "" for g in given)


def go_gvk(handler: KindHandler) -> str:
    """Return a kind as Go prints it."""
    gvk = handler.gvk
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _apply(
    base: Json,
    applied: Json,
    kind: MergeType,
    api_version: str,
    managers: Managers,
    manager: str,
    force: bool,
    subresource: str,
    handlers: Versions,
) -> tuple[Json, Managers]:
    actor: Identity = (manager, "Apply", "", subresource)
    managers = dict(managers)
    last = managers.get(actor)
    merged: Json = merge(base, applied, kind)
    handler = handlers[api_version]
    fields = without(field_set(applied, kind), list(handler.reset_fields(subresource)))
    managers[actor] = Entry(manager, "Apply", api_version, subresource, last.time if last is not None else None, fields)
    if last is not None and last.fields:
        merged = _prune(merged, managers, last, api_version, handlers)
    managers = take(managers, Comparisons(base, merged, handlers, subresource), actor, force=force)
    own = difference(fields, STRIPPED)
    if own:
        managers[actor] = Entry(manager, "Apply", api_version, subresource, last.time if last is not None else None, own)
    else:
        managers.pop(actor, None)
    return merged, managers


def _prune(merged: Json, managers: Managers, last: Entry, api_version: str, handlers: Versions) -> Json:
    """Remove fields that the applier owned, no longer applies, and shares with no other manager."""
    version = last.api_version
    handler = handlers.get(version)
    converted = versioned(merged, version, handlers)
    if handler is None or converted is None:
        return merged
    kind = type_of(handler)
    owned_before = with_named_fields(last.fields, kind)
    pruned = remove(converted, owned_before, kind)
    by_version: dict[str, Set] = {}
    for entry in managers.values():
        by_version[entry.api_version] = union(by_version.get(entry.api_version, {}), entry.fields)
    ordered = [version, *(v for v in by_version if v != version)]
    present_here = with_named_fields(field_set(converted, kind), kind)
    whole, current = converted, pruned
    for each in ordered:
        owned = by_version.get(each)
        if owned is None or each not in handlers:
            continue
        whole_there, current_there = versioned(whole, each, handlers), versioned(current, each, handlers)
        if whole_there is None or current_there is None:
            continue
        there = type_of(handlers[each])
        is_here = whole_there is converted and there is kind
        present = present_here if is_here else with_named_fields(field_set(whole_there, there), there)
        remaining = with_named_fields(field_set(current_there, there), there)
        cut = difference(present, union(remaining, with_named_fields(owned, there)))
        whole, current = whole_there, remove(whole_there, cut, there)
    back = versioned(current, version, handlers)
    if back is None:
        return merged
    remaining = with_named_fields(field_set(back, kind), kind)
    result = remove(converted, intersection(difference(present_here, remaining), owned_before), kind)
    final = versioned(result, api_version, handlers)
    return final if final is not None else result


def _allowed_by_last_applied(conflicts: Conflicts, base: Json, handler: KindHandler) -> bool:
    """Return whether client-side `kubectl apply` set all conflicting fields, so that the applier may take them over."""
    text = ((base.get("metadata") or {}).get("annotations") or {}).get(_LAST_APPLIED)
    if not text:
        return False
    try:
        last = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    if type(last) is not dict:
        return False
    allowed = field_set(last, type_of(handler))
    allowed = union(allowed, {"f:metadata": {"f:annotations": {f"f:{_LAST_APPLIED}": {".": {}}}}})
    remaining: list[Set] = [difference(fields, allowed) for _, fields in conflicts.found.values()]
    return not any(remaining)


def _refresh_last_applied(result: Json, applied: Json, manager: str) -> None:
    """Update the annotation of client-side apply, as kubectl's server-side apply needs it."""
    annotations = result["metadata"].get("annotations")
    if manager != "kubectl" or type(annotations) is not dict or not annotations.get(_LAST_APPLIED):
        return
    meta = dict(applied.get("metadata") or {})
    if type(meta.get("annotations")) is dict:
        rest = {k: v for k, v in meta["annotations"].items() if k != _LAST_APPLIED}
        meta["annotations"] = rest
        if not rest:
            del meta["annotations"]
    text = encode({**applied, "metadata": meta}).decode() + "\n"
    result["metadata"]["annotations"] = {**annotations, _LAST_APPLIED: text}
