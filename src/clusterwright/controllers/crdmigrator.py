"""The storage-version migrator: objects are rewritten in the stored version, and owners of versions that are gone forgotten.

A CRD whose `status.storedVersions` names more than its storage version has objects that are kept in an older one; no version
can be dropped while that is so. For each of ours: every object is written once more, the status is cleared, and entries of
`managedFields` in versions that are no longer served, which would make every later write fail, are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, get_args

from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import Conflict, Invalid, NotFound
from clusterwright.runtime.reconcile import Result

Phase = Literal["StorageVersionMigration", "CleanupManagedFields"]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
MANAGER: Final = "crdmigrator"
_REMEMBERED: Final = 3600.0
_ATTEMPTS: Final = 5
_CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def is_due(old: CustomResourceDefinitionMeta | None, new: CustomResourceDefinitionMeta | None) -> bool:
    """Whether a change of a CRD is news to the migrator."""
    return new is not None and new.metadata.annotations.get(CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION) != str(new.metadata.generation)


class CrdMigrator:
    """Brings the objects of our own CRDs up to date, once per generation of the CRD."""

    def __init__(self, client: Client, time: Callable[[], float], skip: Collection[Phase] = ()) -> None:
        self._client = client
        self._time = time
        self._skip = frozenset(skip)
        self._names = frozenset(crd["metadata"]["name"] for crd in crds())
        self._done: dict[tuple[str, str, int], float] = {}
        """What was rewritten already, by CRD, key and generation: an attempt that failed half-way does not begin anew."""

    async def reconcile(self, key: ObjectKey) -> Result:
        """One CRD."""
        if key.name not in self._names or self._skip >= set(PHASES):
            return Result.await_change()
        found = await self._client.live.find(_CRD, key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return Result.await_change()
        metadata, spec = found.metadata, found.json["spec"]
        if metadata.annotations.get(CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION) == str(metadata.generation):
            return Result.await_change()
        storage = next(version for version in spec["versions"] if version.get("storage"))
        kind = GroupVersionKind(spec["group"], storage["name"], spec["names"]["kind"])
        stored = list(found.at("status", "storedVersions") or ())
        migrate = "StorageVersionMigration" not in self._skip and stored != [storage["name"]]
        served = {f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("served")}
        if migrate or "CleanupManagedFields" not in self._skip:
            objects = await self._client.live.list(kind)
            if migrate:
                await self._rewrite(found, kind, objects, at_status="status" in (storage.get("subresources") or {}))
            if "CleanupManagedFields" not in self._skip:
                for obj in objects:
                    await self._forget_owners(kind, obj, served)
        await self._client.patch(
            _CRD, key, {"metadata": {"annotations": {CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION: str(metadata.generation)}}}
        )
        return Result.await_change()

    async def _rewrite(self, crd: Unstructured, kind: GroupVersionKind, objects: Iterable[Unstructured], *, at_status: bool) -> None:
        """An empty apply changes nothing but the version that is stored; at the status no webhook can refuse it."""
        now, generation = self._time(), crd.metadata.generation
        self._done = {entry: until for entry, until in self._done.items() if until > now}
        for obj in objects:
            entry = (crd.metadata.name, str(obj.key), generation)
            if entry in self._done:
                continue
            meta = obj.metadata
            identity: Json = {"name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version}
            if meta.namespace:
                identity["namespace"] = meta.namespace
            empty = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": identity}
            with suppress(NotFound, Conflict):  # gone, or written by somebody else meanwhile: in the new version either way
                await self._client.apply(empty, field_manager=MANAGER, subresource="status" if at_status else "")
            self._done[entry] = now + _REMEMBERED
        status = {"metadata": {"resourceVersion": crd.metadata.resource_version}, "status": {"storedVersions": [kind.version]}}
        await self._client.patch(_CRD, crd.key, status, subresource="status")

    async def _forget_owners(self, kind: GroupVersionKind, obj: Unstructured, served: Collection[str]) -> None:
        """Remove owners whose version is gone; somebody must be left, or ownership would be computed anew."""
        for _ in range(_ATTEMPTS):
            entries = obj.at("metadata", "managedFields") or []
            kept = [entry for entry in entries if entry.get("apiVersion") in served]
            if len(kept) == len(entries):
                return
            version = obj.metadata.resource_version
            patch: list[Json] = [
                {"op": "replace", "path": "/metadata/managedFields", "value": kept or [_heir(entries[0], kind)]},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            ]
            try:
                await self._client.patch(kind, obj.key, patch, type="json")
                return
            except NotFound:
                return
            except (Conflict, Invalid):
                current = await self._client.live.find(kind, obj.key)
                if current is None:
                    return
                if current.metadata.resource_version == version:
                    raise  # not somebody else's write was in the way
                obj = current


def _heir(first: Mapping[str, Any], kind: GroupVersionKind) -> Json:
    named: Json = {"f:metadata": {"f:name": {}}}
    kept = {key: first[key] for key in ("manager", "operation", "time") if key in first}
    return {**kept, "apiVersion": kind.api_version, "fieldsType": "FieldsV1", "fieldsV1": named}
