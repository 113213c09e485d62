"""Write one object of a topology: create it, change it in place, replace its template, delete it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL, UPGRADE_STEP_ANNOTATION
from clusterwright.controllers.refusals import may_have_taken_effect
from clusterwright.controllers.topology.applying import Applier, Paths, intent_of
from clusterwright.controllers.topology.compatibility import check_compatible
from clusterwright.controllers.topology.failures import TopologyFailed, creation_failure, failing, shown
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.topology import names, objects
from clusterwright.topology.objects import own_labels
from clusterwright.topology.paths import at

Record = Callable[[Json, str, str], None]
"""Record an Event about an object: object, reason, message."""
Rotated = Callable[[str, Json], None]
"""Note that the template of a slot was replaced by this one."""


def gvk_of(obj: Json) -> GroupVersionKind:
    """Return the kind of an object."""
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def key_of(obj: Json) -> ObjectKey:
    """Return namespace and name of an object."""
    return ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def own(obj: Json) -> str:
    """Return an object with its kind, for messages."""
    return f"{obj['kind']} {shown(obj)}"


class ObjectWriter:
    """Writes objects of one Cluster. Every method raises TopologyFailed."""

    def __init__(self, client: Client, applier: Applier, cluster: Json, record: Record, rotated: Rotated) -> None:
        self._client = client
        self._applier = applier
        self._cluster = cluster
        self._record = record
        self._rotated = rotated
        self._is_cluster_alive = False

    # ------------------------------------------------------------------------------------------------------ create

    async def require_cluster(self) -> None:
        """Fail if the Cluster is being deleted: its objects may leave our cache before the deletion shows."""
        if self._is_cluster_alive:
            return
        with failing(f"failed to read Cluster {shown(self._cluster)}"):
            found = await self._client.live.find(gvk_of(self._cluster), key_of(self._cluster))
        uid = self._cluster["metadata"].get("uid", "")
        if found is None or found.metadata.deletion_timestamp is not None or found.metadata.uid != uid:
            raise TopologyFailed(f"Cluster {shown(self._cluster)} is being deleted")
        self._is_cluster_alive = True

    async def create(self, desired: Json, ignore: Paths = (), replaces: str = "") -> None:
        """Create an object."""
        intent = intent_of(desired, None, ignore)
        await self.require_cluster()
        try:
            await self._applier.apply(intent)
        except ApiError as error:
            raise creation_failure(intent, error) from error
        text = f'Created {intent["kind"]} "{shown(intent)}"'
        if replaces:
            text += f' as a replacement for "{replaces}" (template rotation)'
        self._record(self._cluster, "TopologyCreate", text)

    # ------------------------------------------------------------------------------------------------------ change

    async def change(self, current: Json, desired: Json, ignore: Paths = (), version: tuple[str, ...] = ()) -> None:
        """Change an object in place, if a field of ours would change; `version` is the path of a version for the Event."""
        intent = intent_of(desired, current, ignore)
        with failing(f"failed to create patch helper for {own(current)}"):
            if not (await self._applier.change(current, intent, ignore)).any:
                return
        await self._apply(current, intent, _version_change(current, desired, version))

    async def change_cluster(self, desired: Json) -> None:
        """Write the topology's fields of its Cluster: the two references, our labels, and the step of an upgrade."""
        patch = cluster_patch(self._cluster, desired)
        if patch is None:
            return
        with failing(f"failed to patch {own(self._cluster)}"):
            await self._client.patch(gvk_of(self._cluster), key_of(self._cluster), patch)
        self._record(self._cluster, "TopologyUpdate", f'Updated Cluster "{shown(self._cluster)}"')

    async def _apply(self, current: Json, intent: Json, words: str = "") -> None:
        with failing(f"failed to patch {own(current)}"):
            await self._applier.apply(intent)
        self._record(self._cluster, "TopologyUpdate", f'Updated {current["kind"]} "{shown(current)}"{words}')

    async def put(self, current: Json | None, desired: Json, ignore: Paths = (), version: tuple[str, ...] = ()) -> bool:
        """Create an object, or change it in place; return whether it was created."""
        if current is None:
            await self.create(desired, ignore)
            return True
        check_compatible(current, desired, strictly=True)
        await self.change(current, desired, ignore, version)
        return False

    # --------------------------------------------------------------------------------------------------- templates

    async def put_template(self, current: Json | None, desired: Json, prefix: str, slot: str, *, any_kind: bool = False) -> bool:
        """Create a template, change its metadata in place, or replace it; return whether one was created.

        A template whose spec must change gets a new name, in `desired` too; the old template is not touched.
        """
        if current is None:
            await self.create(desired)
            return True
        check_compatible(current, desired, strictly=False, any_kind=any_kind)
        if (current["kind"], objects.group_of(current)) == (desired["kind"], objects.group_of(desired)):
            intent = intent_of(desired, current)
            with failing(f"failed to create patch helper for {own(current)}"):
                change = await self._applier.change(current, intent)
            if change.any and not change.spec:
                await self._apply(current, intent, " (metadata changes)")
            if not change.spec:
                return False
        old = current["metadata"]["name"]
        uid = self._cluster["metadata"].get("uid", "")
        desired["metadata"]["name"] = names.rotated(prefix, uid, slot, old, desired.get("spec"))
        await self.create(desired, replaces=old)
        self._rotated(slot, desired)
        return True

    async def take_back(self, created: Sequence[Json], holder: Json, error: TopologyFailed) -> None:
        """Delete templates to which no object refers; ignore failures.

        After a failure that may have taken effect, keep them: the object that refers to them would be stuck without them, and the next pass
        derives the same names.
        """
        for template in created if await self._was_refused(created, holder, error) else ():
            with suppress(ApiError):
                await self._client.delete(gvk_of(template), key_of(template))

    async def _was_refused(self, created: Sequence[Json], holder: Json, error: TopologyFailed) -> bool:
        """Return whether the object certainly refers to none of them: the connection held, and the API server shows no reference."""
        if may_have_taken_effect(error):
            return False
        try:
            live = await self._client.live.find(gvk_of(holder), key_of(holder)) if created else None
        except ApiError:
            return False
        return live is None or not any(_names(live.json.get("spec"), template) for template in created)

    # ------------------------------------------------------------------------------------------------ health checks

    async def put_health_check(self, current: Json | None, desired: Json | None) -> None:
        """Create, change or delete a health check."""
        if desired is None:
            await self.delete_health_check(current)
            return
        intent = intent_of(desired, current)
        if current is None:
            with failing(f"failed to create {own(desired)}"):
                made = await self._applier.apply(intent)
            self._record(made, "TopologyCreate", f'Created MachineHealthCheck "{shown(made)}"')
            return
        with failing(f"failed to create patch helper for {own(desired)}"):
            if not (await self._applier.change(current, intent)).any:
                return
        with failing(f"failed to patch {own(desired)}"):
            made = await self._applier.apply(intent)
        self._record(made, "TopologyUpdate", f'Updated MachineHealthCheck "{shown(made)}"')

    async def delete_health_check(self, check: Json | None) -> None:
        """Delete a health check, if it exists and belongs to the topology."""
        if check is not None and TOPOLOGY_OWNED_LABEL in (check["metadata"].get("labels") or {}):
            await self.delete(check, f"failed to delete {own(check)}")
            self._record(check, "TopologyDelete", f'Deleted MachineHealthCheck "{shown(check)}"')

    # ------------------------------------------------------------------------------------------------------ delete

    async def delete(self, obj: Json, context: str) -> None:
        """Delete an object; a missing one is not a failure."""
        with failing(context), suppress(NotFound):
            await self._client.delete(gvk_of(obj), key_of(obj))

    def record(self, reason: str, message: str) -> None:
        """Record an Event of the Cluster."""
        self._record(self._cluster, reason, message)


def cluster_patch(current: Json, desired: Json) -> Json | None:
    """Return a merge patch with the differences of a Cluster; None if there are none. All other fields are left alone."""
    metadata = {
        "labels": _differing(current["metadata"], desired["metadata"], "labels", own_labels(current)),
        "annotations": _differing(current["metadata"], desired["metadata"], "annotations", (UPGRADE_STEP_ANNOTATION,)),
    }
    spec = _differing(current, desired, "spec", ("infrastructureRef", "controlPlaneRef"))
    if not spec and not any(metadata.values()):
        return None
    patch: Json = {"metadata": {"uid": current["metadata"].get("uid", ""), **{k: v for k, v in metadata.items() if v}}}
    return {**patch, "spec": spec} if spec else patch


def _differing(current: Json, desired: Json, field: str, names: Collection[str]) -> Json:
    """Return the desired values of the entries of a field that differ; None for one to remove."""
    before, after = current.get(field) or {}, desired.get(field) or {}
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _names(value: Any, target: Json) -> bool:
    """Return whether a value contains a reference to an object."""
    if isinstance(value, Mapping):
        is_it = value.get("kind") == target["kind"] and value.get("name") == target["metadata"]["name"]
        return is_it or any(_names(part, target) for part in value.values())
    return isinstance(value, list) and any(_names(part, target) for part in value)


def _version_change(before: Json, after: Json, path: tuple[str, ...]) -> str:
    old, new = (at(o, *path) for o in (before, after)) if path else (None, None)
    return f" with version change from {old} to {new}" if old and new and old != new else ""
