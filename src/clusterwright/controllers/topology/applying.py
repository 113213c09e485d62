"""Server-side apply that writes only when something of ours would change.

What would change is found by a dry run of what we want; where that differs, by another of what is there, so that defaults which are newer
than the object are no difference. A dry run that found none is remembered for the very object and intent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.jsonvalues import copied
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CONVERSION_DATA_ANNOTATION, TOPOLOGY_DRY_RUN_ANNOTATION
from clusterwright.controllers import field_ownership
from clusterwright.controllers.topology.failures import TopologyFailed
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, Conflict, ConnectionFailed, ServerError
from clusterwright.topology.paths import at, drop

MANAGER: Final = "capi-topology"
_REMEMBERED_FOR: Final = 1800.0
_TRIES: Final = 3
_METADATA: Final = ("name", "namespace", "uid", "labels", "annotations", "ownerReferences")
_NOT_COMPARED: Final = (TOPOLOGY_DRY_RUN_ANNOTATION, CONVERSION_DATA_ANNOTATION)

Paths = Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Change:
    """What an apply would change."""

    any: bool
    spec: bool


NOTHING: Final = Change(False, False)
EVERYTHING: Final = Change(True, True)


def intent_of(desired: Json, current: Json | None, ignore: Paths = ()) -> Json:
    """Return what we have to say about an object. The uid of the one that is there keeps us from making another in its place."""
    out = _filtered(desired)
    metadata = out["metadata"]
    metadata.pop("uid", None)
    if current is not None:
        metadata["uid"] = current["metadata"]["uid"]
    for path in ignore:
        drop(out, *path)
    if "spec" in out:
        out["spec"] = _without_nulls(out["spec"])
    return out


def _without_nulls(value: Any) -> Any:
    """A value whose objects say nothing of what is null: a template that ends in `tag: {{ .tag }}` leaves one where the tag is empty."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _filtered(obj: Json, *, managed_fields: bool = False) -> Json:
    """Return an object without what is not ours to say."""
    allowed = (*_METADATA, "managedFields") if managed_fields else _METADATA
    given = obj["metadata"]
    metadata = {k: copied(given[k]) for k in allowed if given.get(k) not in (None, {}, [], "")}
    spec = copied(obj.get("spec"))
    out: Json = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    if spec is not None:
        out["spec"] = spec
    return out


class Applier:
    """Applies objects as the manager of topologies."""

    def __init__(self, client: Client, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._unchanged: dict[tuple[Any, ...], float] = {}

    async def change(self, current: Json | None, intent: Json, ignore: Paths = ()) -> Change:
        """Return what applying the intent would change; raises TopologyFailed."""
        if current is None:
            return EVERYTHING
        now = self._monotonic()
        key = (
            intent["apiVersion"],
            intent["kind"],
            intent["metadata"].get("namespace", ""),
            intent["metadata"]["name"],
            current["metadata"].get("resourceVersion", ""),
            field_ownership.digest(intent),
        )
        if self._unchanged.get(key, 0.0) > now:
            self._unchanged[key] = now + _REMEMBERED_FOR
            return NOTHING
        change = await self._dry_runs(current, intent, ignore)
        if not change.any:
            self._remember(key, now)
        return change

    def _remember(self, key: tuple[Any, ...], now: float) -> None:
        if len(self._unchanged) > 10_000:
            self._unchanged = {k: until for k, until in self._unchanged.items() if until > now}
        self._unchanged[key] = now + _REMEMBERED_FOR

    async def _dry_runs(self, current: Json, intent: Json, ignore: Paths) -> Change:
        gvk = GroupVersionKind.of(intent["apiVersion"], intent["kind"])
        key = ObjectKey(intent["metadata"].get("namespace", ""), intent["metadata"]["name"])
        try:
            # from the API server: a cache does not keep who owns what
            live = await self._client.live.get(gvk, key)
            _forget_lost_shim(intent, current, dict(live.json))
            modified = await self._dry_run(intent)
        except ApiError as error:
            raise TopologyFailed(f"server side apply dry-run failed for modified object: {error}") from error
        after = _comparable(dict(modified.json), ignore)
        if _comparable(dict(live.json), ignore) == after:
            return NOTHING
        try:
            original = await self._dry_run(intent_of(dict(live.json), dict(live.json)))
        except ApiError as error:
            raise TopologyFailed(f"server side apply dry-run failed for original object: {error}") from error
        owned = {**dict(original.json), "metadata": {**original.json["metadata"], "managedFields": live.at("metadata", "managedFields")}}
        before = _comparable(owned, ignore)
        return Change(before != after, before.get("spec") != after.get("spec"))

    async def _dry_run(self, intent: Json) -> Unstructured:
        """Return what applying would make of an object. It has no effect, so that it is tried again where the way there was bad."""
        marked = copied(intent)
        marked["metadata"].setdefault("annotations", {})[TOPOLOGY_DRY_RUN_ANNOTATION] = ""
        for _ in range(_TRIES - 1):
            with suppress(ConnectionFailed, ServerError, Conflict):
                return await self._client.apply(marked, field_manager=MANAGER, force=True, dry_run=True)
        return await self._client.apply(marked, field_manager=MANAGER, force=True, dry_run=True)

    async def apply(self, intent: Json) -> Json:
        """Apply the intent; raises ApiError."""
        return dict((await self._client.apply(intent, field_manager=MANAGER, force=True)).json)


def _forget_lost_shim(intent: Json, current: Json, live: Json) -> None:
    """Drop, in place, a reference to a Secret that was carried over from `current` and that garbage collection has taken away since.

    Else the two would put it there and take it away forever.
    """
    owners = intent["metadata"].get("ownerReferences")
    if not owners:
        return
    carried = {o.get("uid") for o in current["metadata"].get("ownerReferences") or () if o.get("kind") == "Secret"}
    left = {o.get("uid") for o in live["metadata"].get("ownerReferences") or ()}
    kept = [o for o in owners if o.get("uid") not in carried - left]
    if kept:
        intent["metadata"]["ownerReferences"] = kept
    else:
        del intent["metadata"]["ownerReferences"]


def _comparable(obj: Json, ignore: Paths) -> Json:
    """Return what counts of an object: what is ours to say, and what of it we own."""
    out = _filtered(obj, managed_fields=True)
    metadata = out["metadata"]
    for name in _NOT_COMPARED:
        drop(metadata, "annotations", name)
    entries = [_owned_fields(e) for e in metadata.pop("managedFields", None) or () if _is_ours(e)]
    if entries:
        metadata["managedFields"] = entries
    for path in ignore:
        drop(out, *path)
    return out


def _is_ours(entry: Json) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") == (MANAGER, "Apply", "")


def _owned_fields(entry: Json) -> Json:
    fields = copied(entry.get("fieldsV1") or {})
    for name in _NOT_COMPARED:
        drop(fields, "f:metadata", "f:annotations", f"f:{name}")
    return {"apiVersion": entry.get("apiVersion"), "fieldsV1": fields}


def endpoint_paths(desired: Json) -> list[tuple[str, ...]]:
    """Return the parts of an endpoint that the template leaves open: others fill them in."""
    endpoint = at(desired, "spec", "controlPlaneEndpoint")
    if not isinstance(endpoint, dict):
        return []
    empty = [name for name, value in (("host", ""), ("port", 0)) if name in endpoint and endpoint[name] == value]
    return [("spec", "controlPlaneEndpoint", name) for name in empty]
