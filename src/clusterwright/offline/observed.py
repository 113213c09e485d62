"""A client with the faults of the Observation. It keeps a journal of every write that changed something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from clusterwright.api.contract import pluralize
from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of as _gvk
from clusterwright.offline.observation import Faults, Refusal
from clusterwright.runtime import errors
from clusterwright.runtime.client import Client, Original, PatchType, Query, Reader

_NAMED_ERRORS = {"NotFound": 404, "AlreadyExists": 409, "Conflict": 409, "Forbidden": 403}


@dataclass(frozen=True, slots=True)
class Action:
    """One write that took effect."""

    verb: str
    kind: str
    namespace: str
    name: str

    def to_json(self) -> Json:
        """Return the form of an answer's `actions`."""
        return {"verb": self.verb, "kind": self.kind, "namespace": self.namespace, "name": self.name}


@dataclass(slots=True)
class Journal:
    """All effective writes of a pass in order, over all clusters, and the objects to read afterwards."""

    actions: list[Action] = field(default_factory=list)
    touched: dict[tuple[int, GroupVersionKind, ObjectKey], Client] = field(default_factory=dict)

    def note(self, client: Client, verb: str, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Remember a write to a whole object."""
        self.actions.append(Action(verb, gvk.kind, *key))
        self.touched[id(client), gvk, key] = client


def _gvk_and_key(obj: Object | Json) -> tuple[GroupVersionKind, ObjectKey]:
    if isinstance(obj, Object):
        return _gvk(type(obj)), obj.key
    unstructured = Unstructured(obj)
    return unstructured.gvk, unstructured.key


Serve = Callable[[GroupVersionKind, bool], None]
"""Makes a server serve a kind; True: the kind is namespaced."""


class ObservedClient:
    """A `Client` of one offline cluster."""

    def __init__(
        self, inner: Client, faults: Faults, journal: Journal, serve: Callable[[GroupVersionKind, bool], None] | None = None
    ) -> None:
        self.inner = inner
        self._faults = faults
        self._journal = journal
        self._serve = serve

    def _need(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Serve a kind before it is used: a bundle does not record the kinds of a workload cluster."""
        if self._serve is not None:
            self._serve(gvk, bool(key.namespace))

    @property
    def live(self) -> Reader:
        """Return this client: there is no cache offline."""
        return self

    # ------------------------------------------------------------------------------------------------ reads

    def _check_read(self, kind: str, key: ObjectKey) -> None:
        for target in self._faults.unreadable:
            if target.covers(kind, *key):
                raise errors.ServerError(target.error or f"{kind} {key} cannot be read")

    async def get(self, kind: Any, key: ObjectKey) -> Any:
        """Do the same as `Reader.get`."""
        self._check_read(_gvk(kind).kind, key)
        return await self.inner.get(kind, key)

    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Do the same as `Reader.find`."""
        self._check_read(_gvk(kind).kind, key)
        self._need(_gvk(kind), key)
        return await self.inner.find(kind, key)

    async def read(self, kind: Any, key: ObjectKey) -> Original[Any] | None:
        """Do the same as `Reader.read`."""
        self._check_read(_gvk(kind).kind, key)
        return await self.inner.read(kind, key)

    async def list(self, kind: Any, *, namespace: str = "", labels: str | Mapping[str, str] = "", fields: str = "", owner: str = "") -> Any:
        """Do the same as `Reader.list`."""
        for target in self._faults.unlistable:
            if target.kind == _gvk(kind).kind:
                raise errors.ServerError(target.error or f"{target.kind} cannot be listed")
        return await self.inner.list(kind, namespace=namespace, labels=labels, fields=fields, owner=owner)

    async def raw_get(self, path: str, *, query: Query = (), accept: str = "", timeout: float | None = None) -> bytes:
        """Do the same as `Client.raw_get`."""
        return await self.inner.raw_get(path, query=query, accept=accept, timeout=timeout)

    # ----------------------------------------------------------------------------------------------- writes

    def _check_write(self, verb: str, gvk: GroupVersionKind, key: ObjectKey) -> None:
        for refusal in self._faults.unwritable:
            if refusal.covers(verb, gvk.kind, *key):
                raise _refused(refusal, verb, gvk, key)

    async def create(self, obj: Object | Json, *, field_manager: str = "") -> Unstructured:
        """Do the same as `Writer.create`."""
        gvk, key = _gvk_and_key(obj)
        self._check_write("create", gvk, key)
        self._need(gvk, key)
        created = await self.inner.create(obj, field_manager=field_manager)
        self._journal.note(self, "create", gvk, created.key)
        return created

    async def update(self, obj: Object | Json, *, subresource: str = "") -> Unstructured:
        """Do the same as `Writer.update`."""
        gvk, key = _gvk_and_key(obj)
        self._check_write("patch", gvk, key)
        before = await self._content(gvk, key)
        updated = await self.inner.update(obj, subresource=subresource)
        self._note_change("update", gvk, before, updated)
        return updated

    async def patch(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        patch: Json | Sequence[Json],
        *,
        type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
    ) -> Unstructured:
        """Do the same as `Writer.patch`."""
        gvk = _gvk(kind)
        self._check_write("patch", gvk, key)
        before = await self._content(gvk, key)
        patched = await self.inner.patch(kind, key, patch, type=type, subresource=subresource, field_manager=field_manager)
        self._note_change("patch", gvk, before, patched)
        return patched

    async def apply(
        self, obj: Object | Json, *, field_manager: str, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Unstructured:
        """Do the same as `Writer.apply`. An apply that creates the object counts as its creation."""
        gvk, key = _gvk_and_key(obj)
        self._need(gvk, key)
        before = await self._content(gvk, key)
        verb = "create" if before is None else "patch"
        self._check_write(verb, gvk, key)
        applied = await self.inner.apply(obj, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run)
        if not dry_run:
            self._note_change(verb, gvk, before, applied)
        return applied

    async def delete(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Literal["", "Background", "Foreground", "Orphan"] = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Do the same as `Writer.delete`."""
        gvk = _gvk(kind)
        self._check_write("delete", gvk, key)
        before = await self.inner.live.find(gvk, key)
        await self.inner.delete(
            kind, key, uid=uid, resource_version=resource_version, propagation=propagation, grace_period_seconds=grace_period_seconds
        )
        if before is not None and before.metadata.deletion_timestamp is None:
            self._journal.note(self, "delete", gvk, key)

    def known(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> bytes | None:
        """Do the same as `Client.known`."""
        return self.inner.known(kind, key)

    def turn(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """Do the same as `Client.turn`."""
        return self.inner.turn(kind, key)

    async def create_subresource(self, kind: type[Object] | GroupVersionKind, key: ObjectKey, subresource: str, body: Json) -> Json:
        """Do the same as `Writer.create_subresource`. An eviction counts as the creation of an Eviction."""
        what = str(body.get("kind") or subresource.capitalize())
        self._check_write("create", GroupVersionKind("", "v1", what), key)
        answer = await self.inner.create_subresource(kind, key, subresource, body)
        self._journal.actions.append(Action("create", what, *key))
        return answer

    async def _content(self, gvk: GroupVersionKind, key: ObjectKey) -> Json | None:
        before = await self.inner.live.find(gvk, key)
        return None if before is None else _content(before.json)

    def _note_change(self, verb: str, gvk: GroupVersionKind, before: Json | None, after: Unstructured) -> None:
        if _content(after.json) != before:
            self._journal.note(self, verb, gvk, after.key)


def _content(json: Mapping[str, Any]) -> Json:
    """Return the content of an object, without the bookkeeping of the server, such as the owners of fields."""
    metadata = {k: v for k, v in json["metadata"].items() if k not in {"managedFields", "resourceVersion"} and v not in (None, [], {})}
    return {**json, "metadata": metadata}


def _refused(refusal: Refusal, verb: str, gvk: GroupVersionKind, key: ObjectKey) -> errors.ApiError:
    if refusal.status:
        status: Json = {"kind": "Status", "apiVersion": "v1", "status": "Failure", **refusal.status}
        if "causes" in status:
            status["details"] = {**status.get("details", {}), "causes": status.pop("causes")}
        return errors.from_response(int(status.get("code", 500)), msgspec.json.encode(status))
    if refusal.error in _NAMED_ERRORS:
        code = _NAMED_ERRORS[refusal.error]
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": refusal.error, "code": code}
        details = {"name": key.name, "group": gvk.group, "kind": pluralize(gvk.kind.lower())}
        return errors.from_response(
            code, msgspec.json.encode({**status, "message": f"{gvk.kind} {key}: {refusal.error}", "details": details})
        )
    return errors.ServerError(refusal.error or f"{verb} {gvk.kind} {key} is refused")
