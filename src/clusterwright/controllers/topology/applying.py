"""Server-side apply that sends a write only if it would change a field of ours.

A dry run of the intent finds the change; if it differs, a dry run of the present object is compared too, so that defaults newer than the
object are not differences. A dry run without change is remembered for that object and intent.
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
    """The change that an apply would make."""

    any: bool
    spec: bool


NOTHING: Final = Change(False, False)
EVERYTHING: Final = Change(True, True)


def intent_of(desired: Json, current: Json | None, ignore: Paths = ()) -> Json:
    """Return the intent for an object. The UID of an existing one prevents a new object in its place."""
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
    """Return a value without null fields: a template that ends in `tag: {{ .tag }}` yields null for an empty tag."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _filtered(obj: Json, *, managed_fields: bool = False) -> Json:
    """Return an object with only the fields that we may set."""
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
        """Return the result of applying as a dry run. It has no effect, so it is repeated after connection errors."""
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
    """Remove, in place, a reference to a shim Secret that came from `current` and was garbage collected since.

    Otherwise it would be written and collected again forever.
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
    """Return the comparable part of an object: the fields that we set or own."""
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
    """Return the endpoint fields that the template leaves open: other controllers set them."""
    endpoint = at(desired, "spec", "controlPlaneEndpoint")
    if not isinstance(endpoint, dict):
        return []
    empty = [name for name, value in (("host", ""), ("port", 0)) if name in endpoint and endpoint[name] == value]
    return [("spec", "controlPlaneEndpoint", name) for name in empty]
