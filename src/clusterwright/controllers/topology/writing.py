"""Making the difference between what there is and what there should be go away, in an order that leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CLUSTER_SECRET_TYPE, TOPOLOGY_OWNED_LABEL
from clusterwright.controllers.refusals import may_have_taken_effect
from clusterwright.controllers.topology.applying import Applier, Paths, endpoint_paths, intent_of
from clusterwright.controllers.topology.compatibility import check_compatible
from clusterwright.controllers.topology.current import MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_POOL
from clusterwright.controllers.topology.failures import TopologyFailed, creation_failure, shown
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.topology import names, objects
from clusterwright.topology.desired import machine_prefix, worker_prefix
from clusterwright.topology.model import Current, CurrentWorker, Desired, DesiredWorker, Progress, WorkersProgress
from clusterwright.topology.paths import at

SECRET = GroupVersionKind.of("v1", "Secret")

Record = Callable[[Json, str, str], None]
"""Record an Event: of which object, reason, message."""


def gvk_of(obj: Json) -> GroupVersionKind:
    """The kind of an object."""
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def key_of(obj: Json) -> ObjectKey:
    """Namespace and name of an object."""
    return ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


class Writer:
    """Writes one topology. Every method raises TopologyFailed."""

    def __init__(
        self,
        client: Client,
        applier: Applier,
        record: Record,
        current: Current,
        desired: Desired,
        progress: Progress,
        rotated: Callable[[str, Json], None] = lambda _slot, _template: None,
    ) -> None:
        self._client = client
        self._rotated = rotated
        self._applier = applier
        self._record = record
        self._current = current
        self._desired = desired
        self._progress = progress
        self._cluster = current.cluster
        self._is_cluster_alive = False

    # -------------------------------------------------------------------------------------------------------- shim

    async def shim(self) -> None:
        """A Secret owns what the Cluster does not refer to yet, so that garbage collection finds it if that never happens."""
        current, name = self._current, objects.shim_name(self._cluster)
        key = ObjectKey(self._cluster["metadata"].get("namespace", ""), name)
        if current.infrastructure_cluster is None or current.control_plane is None:
            owner = await self._made_shim(key)
            for made in (self._desired.infrastructure_cluster, self._desired.control_plane):
                owners = [o for o in made["metadata"].get("ownerReferences") or () if o.get("uid") != owner["uid"]]
                made["metadata"]["ownerReferences"] = [*owners, owner]
            return
        parts = (current.infrastructure_cluster, current.control_plane)
        has_shim = any(objects.shim_owners(self._cluster, part) for part in parts)
        if has_shim and all(self._is_owned_by_cluster(part) for part in parts):
            try:
                shim = await self._client.live.find(SECRET, key)
                if shim is not None and self._is_shim(shim):
                    with suppress(NotFound):
                        await self._client.delete(SECRET, key, uid=shim.metadata.uid)
            except ApiError as error:
                raise TopologyFailed(f"failed to delete the cluster shim object: {error}") from error

    def _is_shim(self, secret: Unstructured) -> bool:
        """Return whether a Secret with the name of the shim is the shim: empty, of our type and owned by this Cluster."""
        owners = secret.metadata.owner_references
        owned = any(o.kind == "Cluster" and o.uid == self._cluster["metadata"].get("uid") for o in owners)
        return owned and secret.json.get("type") == CLUSTER_SECRET_TYPE and not secret.json.get("data")

    async def _made_shim(self, key: ObjectKey) -> Json:
        await self._require_cluster()
        shim = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [objects.owner_reference(self._cluster)]},
            "type": CLUSTER_SECRET_TYPE,
        }
        try:
            made = await self._client.create(shim)
        except AlreadyExists:
            try:
                made = await self._client.live.get(SECRET, key)
            except ApiError as error:
                raise TopologyFailed(f"failed to read the cluster shim object: {error}") from error
            if not self._is_shim(made):
                text = f"Secret {key} is in the way: it is not the shim of this Cluster. Delete it, or use another name for the Cluster"
                raise TopologyFailed(text) from None
        except ApiError as error:
            raise TopologyFailed(f"failed to create the cluster shim object: {error}") from error
        return {"apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": made.metadata.uid}

    def _is_owned_by_cluster(self, obj: Json) -> bool:
        name = self._cluster["metadata"]["name"]
        return any(o.get("kind") == "Cluster" and o.get("name") == name for o in obj["metadata"].get("ownerReferences") or ())

    # ----------------------------------------------------------------------------------------- cluster and control plane

    async def everything(self) -> None:
        """The topology, after its shim."""
        was_infrastructure_created = await self._object(
            self._current.infrastructure_cluster, self._desired.infrastructure_cluster, endpoint_paths(self._desired.infrastructure_cluster)
        )
        failure: TopologyFailed | None = None
        is_control_plane_there = self._current.control_plane is not None
        try:
            await self._control_plane()
            is_control_plane_there = True
        except TopologyFailed as error:
            if not was_infrastructure_created:
                raise
            failure = error
        wanted = self._desired.cluster
        if failure is not None and not is_control_plane_there and not at(self._cluster, "spec", "controlPlaneRef", "name"):
            wanted = {**wanted, "spec": {k: v for k, v in wanted["spec"].items() if k != "controlPlaneRef"}}
        try:
            await self._cluster_object(wanted)
        except TopologyFailed as error:
            if failure is None:
                raise  # not `from` itself: who follows the causes of an error would never come to an end
            raise TopologyFailed(f"[{failure}, {error}]") from error
        if failure is not None:
            raise failure
        await self._machine_deployments()
        await self._machine_pools()

    async def _cluster_object(self, wanted: Json) -> None:
        intent = intent_of(wanted, self._cluster)
        change = await self._changed(self._cluster, intent, (), f"failed to create patch helper for Cluster {shown(self._cluster)}")
        if not change:
            return
        try:
            await self._applier.apply(intent)
        except ApiError as error:
            raise TopologyFailed(f"failed to patch Cluster {shown(self._cluster)}: {error}") from error
        self._record(self._cluster, "TopologyUpdate", f'Updated Cluster "{shown(self._cluster)}"')

    async def _changed(self, current: Json, intent: Json, ignore: Paths, context: str) -> bool:
        try:
            return (await self._applier.change(current, intent, ignore)).any
        except TopologyFailed as error:
            raise error.within(context) from error

    async def _control_plane(self) -> None:
        current, desired = self._current, self._desired
        is_new = current.control_plane is None
        if not is_new:
            # the check of a new control plane is made after it: its name would be nobody's if that failed
            await self._health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if self._progress.control_plane.is_pending:
            return
        machine, kept = desired.control_plane_machine, current.control_plane_machine
        created: list[Json] = []
        if machine is not None:
            path = self._machine_reference_path()
            if await self._template(kept, machine, machine_prefix(self._cluster), "IMT"):
                created.append(machine)
            self._point(desired.control_plane, machine, path)
        try:
            await self._object(
                current.control_plane, desired.control_plane, endpoint_paths(desired.control_plane), with_version=("spec", "version")
            )
        except TopologyFailed as error:
            await self._take_back(created, desired.control_plane, error)
            raise
        if is_new:
            await self._health_check(current.control_plane_health_check, desired.control_plane_health_check)
        if machine is not None and kept is not None and machine["metadata"]["name"] != kept["metadata"]["name"]:
            await self._delete_old_machine_template(kept)

    def _machine_reference_path(self) -> tuple[str, ...]:
        plane = self._desired.control_plane
        newer = ("spec", "machineTemplate", "spec", "infrastructureRef")
        return newer if at(plane, *newer) is not None else ("spec", "machineTemplate", "infrastructureRef")

    @staticmethod
    def _point(holder: Json, target: Json, path: Sequence[str]) -> None:
        """Let a reference name the template that is there now."""
        reference = at(holder, *path)
        if isinstance(reference, dict):
            reference["name"] = target["metadata"]["name"]

    async def _delete_old_machine_template(self, template: Json) -> None:
        try:
            with suppress(NotFound):
                await self._client.delete(gvk_of(template), key_of(template))
        except ApiError as error:
            plane = self._desired.control_plane
            text = f"failed to delete old {template['kind']} {shown(template)} of {plane['kind']} {shown(plane)}: {error}"
            raise TopologyFailed(text) from error

    # ------------------------------------------------------------------------------------------------------ objects

    async def _object(self, current: Json | None, desired: Json, ignore: Paths = (), with_version: tuple[str, ...] = ()) -> bool:
        """Create or update an object in place; whether it was created."""
        if current is None:
            await self._created(intent_of(desired, None, ignore))
            return True
        check_compatible(current, desired, strictly=True)
        intent = intent_of(desired, current, ignore)
        own = f"{current['kind']} {shown(current)}"
        if not await self._changed(current, intent, ignore, f"failed to create patch helper for {own}"):
            return False
        try:
            await self._applier.apply(intent)
        except ApiError as error:
            raise TopologyFailed(f"failed to patch {own}: {error}") from error
        text = f'Updated {current["kind"]} "{shown(current)}"' + _version_change(current, desired, with_version)
        self._record(self._cluster, "TopologyUpdate", text)
        return False

    async def _require_cluster(self) -> None:
        """Nothing is made for a Cluster that is going: what it left may be gone from our cache before we hear that it goes."""
        if self._is_cluster_alive:
            return
        try:
            found = await self._client.live.find(gvk_of(self._cluster), key_of(self._cluster))
        except ApiError as error:
            raise TopologyFailed(f"failed to read Cluster {shown(self._cluster)}: {error}") from error
        uid = self._cluster["metadata"].get("uid", "")
        if found is None or found.metadata.deletion_timestamp is not None or found.metadata.uid != uid:
            raise TopologyFailed(f"Cluster {shown(self._cluster)} is being deleted")
        self._is_cluster_alive = True

    async def _created(self, intent: Json, replaces: str = "") -> None:
        await self._require_cluster()
        try:
            await self._applier.apply(intent)
        except ApiError as error:
            raise creation_failure(intent, error) from error
        text = f'Created {intent["kind"]} "{shown(intent)}"'
        if replaces:
            text += f' as a replacement for "{replaces}" (template rotation)'
        self._record(self._cluster, "TopologyCreate", text)

    async def _template(self, current: Json | None, desired: Json, prefix: str, slot: str, *, any_kind: bool = False) -> bool:
        """Create a template, change its metadata in place, or put another in its place; whether one was created.

        A template whose spec must change gets a new name, in `desired` too; the old one is left alone.
        """
        if current is None:
            await self._created(intent_of(desired, None))
            return True
        check_compatible(current, desired, strictly=False, any_kind=any_kind)
        intent = intent_of(desired, current)
        own = f"{current['kind']} {shown(current)}"
        is_same_kind = (current["kind"], objects.group_of(current)) == (desired["kind"], objects.group_of(desired))
        if is_same_kind:
            try:
                change = await self._applier.change(current, intent)
            except TopologyFailed as error:
                raise error.within(f"failed to create patch helper for {own}") from error
            if not change.any:
                return False
            if not change.spec:
                try:
                    await self._applier.apply(intent)
                except ApiError as error:
                    raise TopologyFailed(f"failed to patch {own}: {error}") from error
                self._record(self._cluster, "TopologyUpdate", f'Updated {current["kind"]} "{shown(current)}" (metadata changes)')
                return False
        old = current["metadata"]["name"]
        uid = self._cluster["metadata"].get("uid", "")
        desired["metadata"]["name"] = names.rotated(prefix, uid, slot, old, desired.get("spec"))
        await self._created(intent_of(desired, None), replaces=old)
        self._rotated(slot, desired)
        return True

    async def _take_back(self, created: Sequence[Json], holder: Json, error: TopologyFailed) -> None:
        """Delete templates again that nobody came to refer to; best effort.

        After a failure that may have taken effect they stay: without them their holder would be stuck for ever, and as their names are
        derived the next pass meets them again.
        """
        for template in created if await self._was_refused(created, holder, error) else ():
            with suppress(ApiError):
                await self._client.delete(gvk_of(template), key_of(template))

    async def _was_refused(self, created: Sequence[Json], holder: Json, error: TopologyFailed) -> bool:
        """Whether the holder certainly names none of them: not after a broken connection, nor where the API server shows it does."""
        if may_have_taken_effect(error):
            return False
        try:
            live = await self._client.live.find(gvk_of(holder), key_of(holder)) if created else None
        except ApiError:
            return False
        return live is None or not any(_names(live.json.get("spec"), template) for template in created)

    # ------------------------------------------------------------------------------------------------ health checks

    async def _health_check(self, current: Json | None, desired: Json | None) -> None:
        if desired is None:
            if current is not None and TOPOLOGY_OWNED_LABEL in (current["metadata"].get("labels") or {}):
                await self.delete_health_check(current)
            return
        intent = intent_of(desired, current)
        own = f"MachineHealthCheck {shown(desired)}"
        if current is None:
            try:
                made = await self._applier.apply(intent)
            except ApiError as error:
                raise creation_failure(intent, error) from error
            self._record(made, "TopologyCreate", f'Created MachineHealthCheck "{shown(made)}"')
            return
        if not await self._changed(current, intent, (), f"failed to create patch helper for {own}"):
            return
        try:
            made = await self._applier.apply(intent)
        except ApiError as error:
            raise TopologyFailed(f"failed to patch {own}: {error}") from error
        self._record(made, "TopologyUpdate", f'Updated MachineHealthCheck "{shown(made)}"')

    async def delete_health_check(self, check: Json) -> None:
        """Delete a health check that is ours."""
        try:
            with suppress(NotFound):
                await self._client.delete(MACHINE_HEALTH_CHECK, key_of(check))
        except ApiError as error:
            raise TopologyFailed(f"failed to delete MachineHealthCheck {shown(check)}: {error}") from error
        self._record(check, "TopologyDelete", f'Deleted MachineHealthCheck "{shown(check)}"')

    # ---------------------------------------------------------------------------------------------- machine deployments

    async def _machine_deployments(self) -> None:
        current, desired = self._current.machine_deployments, self._desired.machine_deployments
        marks = self._progress.machine_deployments
        new = [name for name in desired if name not in current]
        known = await self._known_live(MACHINE_DEPLOYMENT, new, "topology.cluster.x-k8s.io/deployment-name")
        for name in new:
            if name not in known and name not in marks.pending_create:
                await self._create_deployment(name, desired[name])
        for name, worker in desired.items():
            if name in current:
                await self._update_deployment(name, current[name], worker, marks)
        for name in sorted(current.keys() - desired.keys()):
            await self._delete_deployment(current[name])

    async def _known_live(self, gvk: GroupVersionKind, new: Sequence[str], label: str) -> frozenset[str]:
        """The topology names that the API server knows although our cache does not yet."""
        if not new:
            return frozenset()
        selector = {CLUSTER_NAME_LABEL: self._cluster["metadata"]["name"], TOPOLOGY_OWNED_LABEL: ""}
        try:
            found = await self._client.live.list(gvk, namespace=self._cluster["metadata"].get("namespace", ""), labels=selector)
        except ApiError as error:
            raise TopologyFailed(f"failed to read existing {gvk.kind}s: {error}") from error
        return frozenset(o.metadata.labels.get(label, "") for o in found)

    async def _create_deployment(self, name: str, worker: DesiredWorker) -> None:
        created: list[Json] = []
        try:
            for template in (worker.infrastructure, worker.bootstrap):
                try:
                    await self._created(intent_of(template, None))
                except TopologyFailed as error:
                    raise error.within("failed to create MachineDeployment") from error
                created.append(template)
            await self._created(intent_of(worker.object, None))
        except TopologyFailed as error:
            await self._take_back(created, worker.object, error)
            raise
        await self._health_check(None, worker.health_check)

    async def _update_deployment(self, name: str, present: CurrentWorker, worker: DesiredWorker, marks: WorkersProgress) -> None:
        if present.is_deleting:
            return
        await self._health_check(present.health_check, worker.health_check)
        if present.name in marks.pending:
            return
        prefix = worker_prefix(self._cluster, name)
        created: list[Json] = []
        own = f"MachineDeployment {shown(present.object)}"
        try:
            try:
                if await self._template(present.infrastructure, worker.infrastructure, prefix, f"MD:{name}:infrastructure"):
                    created.append(worker.infrastructure)
                if await self._template(present.bootstrap, worker.bootstrap, prefix, f"MD:{name}:bootstrap", any_kind=True):
                    created.append(worker.bootstrap)
            except TopologyFailed as error:
                raise error.within(f"failed to reconcile {own}") from error
            template = worker.object["spec"]["template"]["spec"]
            template["infrastructureRef"] = objects.reference(worker.infrastructure)
            template["bootstrap"]["configRef"] = objects.reference(worker.bootstrap)
            await self._worker_object(present, worker)
        except TopologyFailed as error:
            await self._take_back(created, worker.object, error)
            raise

    async def _worker_object(self, present: CurrentWorker, worker: DesiredWorker) -> None:
        intent = intent_of(worker.object, present.object)
        own = f"{worker.object['kind']} {shown(present.object)}"
        if not await self._changed(present.object, intent, (), f"failed to create patch helper for {own}"):
            return
        try:
            await self._applier.apply(intent)
        except ApiError as error:
            raise TopologyFailed(f"failed to patch {own}: {error}") from error
        change = _version_change(present.object, worker.object, ("spec", "template", "spec", "version"))
        self._record(self._cluster, "TopologyUpdate", f'Updated {worker.object["kind"]} "{shown(present.object)}"{change}')

    async def _delete_deployment(self, present: CurrentWorker) -> None:
        if present.health_check is not None and TOPOLOGY_OWNED_LABEL in (present.health_check["metadata"].get("labels") or {}):
            await self.delete_health_check(present.health_check)
        await self._delete_worker(present)

    async def _delete_worker(self, present: CurrentWorker) -> None:
        if present.is_deleting:
            return
        obj = present.object
        try:
            with suppress(NotFound):
                await self._client.delete(gvk_of(obj), key_of(obj))
        except ApiError as error:
            raise TopologyFailed(f"failed to delete {obj['kind']} {shown(obj)}: {error}") from error
        self._record(self._cluster, "TopologyDelete", f'Deleted {obj["kind"]} "{shown(obj)}"')

    # ---------------------------------------------------------------------------------------------------- machine pools

    async def _machine_pools(self) -> None:
        current, desired = self._current.machine_pools, self._desired.machine_pools
        marks = self._progress.machine_pools
        new = [name for name in desired if name not in current]
        known = await self._known_live(MACHINE_POOL, new, "topology.cluster.x-k8s.io/pool-name")
        for name in new:
            if name not in known and name not in marks.pending_create:
                await self._create_pool(desired[name])
        for name, worker in desired.items():
            if name in current:
                await self._update_pool(current[name], worker, marks)
        for name in sorted(current.keys() - desired.keys()):
            await self._delete_worker(current[name])

    async def _create_pool(self, worker: DesiredWorker) -> None:
        created: list[Json] = []
        try:
            for part in (worker.infrastructure, worker.bootstrap):
                try:
                    await self._created(intent_of(part, None))
                except TopologyFailed as error:
                    raise error.within("failed to create MachinePool MachinePool") from error
                created.append(part)
            await self._created(intent_of(worker.object, None))
        except TopologyFailed as error:
            await self._take_back(created, worker.object, error)
            raise

    async def _update_pool(self, present: CurrentWorker, worker: DesiredWorker, marks: WorkersProgress) -> None:
        if present.is_deleting or present.name in marks.pending:
            return
        try:
            await self._object(present.infrastructure, worker.infrastructure)
            await self._object(present.bootstrap, worker.bootstrap)
        except TopologyFailed as error:
            raise error.within(f"failed to reconcile MachinePool {shown(present.object)}") from error
        await self._worker_object(present, worker)


def _names(value: Any, target: Json) -> bool:
    """Whether there is a reference to an object somewhere in this."""
    if isinstance(value, Mapping):
        is_it = value.get("kind") == target["kind"] and value.get("name") == target["metadata"]["name"]
        return is_it or any(_names(part, target) for part in value.values())
    return isinstance(value, list) and any(_names(part, target) for part in value)


def _version_change(before: Json, after: Json, path: tuple[str, ...]) -> str:
    old, new = (at(o, *path) for o in (before, after)) if path else (None, None)
    return f" with version change from {old} to {new}" if old and new and old != new else ""


def unmatched_health_checks(checks: Sequence[Json], current: Current, desired: Desired) -> list[Json]:
    """Health checks of the topology that no control plane and no MachineDeployment has the name of: left behind by what is gone."""
    known = {at(o, "metadata", "name") for o in (current.control_plane, desired.control_plane)}
    known |= {w.name for w in current.machine_deployments.values()}
    known |= {w.object["metadata"]["name"] for w in desired.machine_deployments.values()}
    return [c for c in checks if c["metadata"]["name"] not in known]
