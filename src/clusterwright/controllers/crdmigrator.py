"""The storage-version migrator: rewrites objects in the stored version, and removes field owners of removed versions.

A CRD whose `status.storedVersions` names more than its storage version has objects that are stored in an older one; until they are
rewritten, no version can be dropped. For each of our CRDs a pass writes every object once more, clears the status, and removes entries of
`managedFields` in versions that are no longer served: with such an entry every later write would fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from clusterwright.api.copying import replace
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wellknown import CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import PassTools
from clusterwright.runtime.errors import Conflict, Invalid, NotFound
from clusterwright.runtime.reconcile import Reconciler

Phase = Literal["StorageVersionMigration", "CleanupManagedFields"]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
MANAGER: Final = "crdmigrator"
SHAPE: Final = Shape(kind=CustomResourceDefinitionMeta, owned=(), main=False)
_REMEMBERED: Final = 3600.0
_ATTEMPTS: Final = 5
_CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def is_due(old: CustomResourceDefinitionMeta | None, new: CustomResourceDefinitionMeta | None) -> bool:
    """Return whether a change of a CRD starts a pass: the CRD has a generation that no pass has finished yet."""
    return new is not None and new.metadata.annotations.get(CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION) != str(new.metadata.generation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Snapshot[CustomResourceDefinitionMeta]):
    """A CRD as the API server has it now. `object` is the cached part."""

    crd: Unstructured

    @property
    def storage(self) -> Json:
        """The version in which objects are stored."""
        found: Json = next(version for version in self.crd.json["spec"]["versions"] if version.get("storage"))
        return found

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind that the CRD defines, in its storage version."""
        spec = self.crd.json["spec"]
        return GroupVersionKind(spec["group"], self.storage["name"], spec["names"]["kind"])

    @property
    def is_mixed(self) -> bool:
        """Whether some objects may be stored in another version."""
        return list(self.crd.at("status", "storedVersions") or ()) != [self.storage["name"]]

    @property
    def served(self) -> frozenset[str]:
        """The API versions that are served."""
        spec = self.crd.json["spec"]
        return frozenset(f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("served"))


def make(tools: PassTools, skip: Collection[Phase] = ()) -> Reconciler:
    """Return the reconciler of our CRDs; it skips the phases in `skip`."""
    return KindReconciler(tools, SHAPE, CrdMigrator(tools, skip))


class CrdMigrator(Kind[CustomResourceDefinitionMeta, Unowned, Definition, Definition]):
    """Migrates the objects of our own CRDs, once per generation of the CRD."""

    def __init__(self, tools: PassTools, skip: Collection[Phase]) -> None:
        self._client = tools.client
        self._clock = tools.clock
        self._phases = frozenset(PHASES) - frozenset(skip)
        self._names = frozenset(crd["metadata"]["name"] for crd in crds())
        self._done: dict[tuple[str, str, int], float] = {}
        """The objects already rewritten, by CRD, key and generation: a pass after a failure continues with the others."""

    def concerns(self, obj: CustomResourceDefinitionMeta) -> bool:
        """Return whether the CRD is ours and a phase is left to do."""
        return obj.metadata.name in self._names and bool(self._phases)

    async def owner(self, obj: CustomResourceDefinitionMeta) -> Unowned:
        """Return no owner."""
        return Unowned()

    async def observe(self, obj: CustomResourceDefinitionMeta, owner: Unowned) -> Definition | None:
        """Read the whole CRD; None if it is being deleted, or a pass has finished its generation."""
        found = await self._client.live.find(_CRD, obj.key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        observed = found.metadata.annotations.get(CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION)
        return None if observed == str(found.metadata.generation) else Definition(now=self._clock.now(), object=obj, crd=found)

    async def act(self, run: Pass[CustomResourceDefinitionMeta, Definition, Definition]) -> None:
        """Run the phases."""
        seen = run.seen
        migrates, cleans = "StorageVersionMigration" in self._phases and seen.is_mixed, "CleanupManagedFields" in self._phases
        objects = await self._client.live.list(seen.gvk) if migrates or cleans else ()
        if migrates:
            await self._rewrite(seen.crd, seen.gvk, objects, at_status="status" in (seen.storage.get("subresources") or {}))
        for obj in objects if cleans else ():
            await self._forget_owners(seen.gvk, obj, seen.served)

    def conclude(self, run: Pass[CustomResourceDefinitionMeta, Definition, Definition]) -> None:
        """Record the generation on the CRD, unless a phase failed."""
        if not run.errors:
            metadata = run.object.metadata
            noted = {CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION: str(run.seen.crd.metadata.generation)}
            run.become(replace(run.object, metadata=replace(metadata, annotations={**metadata.annotations, **noted})))

    async def _rewrite(self, crd: Unstructured, kind: GroupVersionKind, objects: Iterable[Unstructured], *, at_status: bool) -> None:
        """Send an empty patch for each object, which only changes the stored version. It goes to the status: no webhook refuses that."""
        now, generation = self._clock.monotonic(), crd.metadata.generation
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
            with suppress(NotFound, Conflict):  # gone, or written meanwhile by another client, in the new version
                await self._client.patch(kind, obj.key, empty, subresource="status" if at_status else "", field_manager=MANAGER)
            self._done[entry] = now + _REMEMBERED
        status = {"metadata": {"resourceVersion": crd.metadata.resource_version}, "status": {"storedVersions": [kind.version]}}
        await self._client.patch(_CRD, crd.key, status, subresource="status")

    async def _forget_owners(self, kind: GroupVersionKind, obj: Unstructured, served: Collection[str]) -> None:
        """Remove field owners of removed versions. Keep at least one entry, or the API server would compute all owners again."""
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
                    raise  # the object did not change meanwhile, so that another attempt would fail, too
                obj = current


def _heir(first: Mapping[str, Any], kind: GroupVersionKind) -> Json:
    named: Json = {"f:metadata": {"f:name": {}}}
    kept = {key: first[key] for key in ("manager", "operation", "time") if key in first}
    return {**kept, "apiVersion": kind.api_version, "fieldsType": "FieldsV1", "fieldsV1": named}
