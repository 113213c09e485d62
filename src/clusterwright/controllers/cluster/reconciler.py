"""The Cluster's own steps of a pass: read, act, conclude, in the order of the seeds."""

from __future__ import annotations

from datetime import timedelta

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ContractVersionedObjectReference
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_FINALIZER
from clusterwright.conditions import is_true
from clusterwright.controllers.cluster import plan
from clusterwright.controllers.cluster.conditions import OWNED, TABLES
from clusterwright.controllers.cluster.conditions_v1beta1 import OWNED_V1BETA1, V1BETA1_READY, V1BETA1_TABLES
from clusterwright.controllers.cluster.kubeconfig import RECONCILE_KUBECONFIG, Make, look_again, look_at_secrets, make_kubeconfig
from clusterwright.controllers.cluster.plan import Copy, Deletion
from clusterwright.controllers.cluster.providers import Lookup, Role, understand
from clusterwright.controllers.cluster.snapshot import ClusterDone, ClusterSnapshot, find_cluster_class, list_descendants
from clusterwright.controllers.cluster.status import control_plane_replicas, known_phase, phase, worker_replicas
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import STEP, Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

DEFAULT_CONNECTION_GRACE = timedelta(seconds=50)

SHAPE = Shape(kind=Cluster, done=ClusterDone, finalizer=CLUSTER_FINALIZER, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)
ClusterPass = Pass[Cluster, ClusterSnapshot, ClusterDone]


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of Clusters."""
    return KindReconciler(deps, SHAPE, Clusters(deps))


class Clusters(Kind[Cluster, Unowned, ClusterSnapshot, ClusterDone]):
    """Reconciles one Cluster."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._providers = Providers(deps)
        self._grace = deps.options.get("remote-connection-grace-period") or DEFAULT_CONNECTION_GRACE
        if not isinstance(self._grace, timedelta) or self._grace <= timedelta(0):
            raise ValueError("remote-connection-grace-period must be a positive duration")

    def forget(self, key: ObjectKey) -> None:
        """Forget a Cluster that is gone."""
        self._providers.forget(key)

    async def owner(self, obj: Cluster) -> Unowned:
        """Return no owner. A Cluster pauses itself by `spec.paused`."""
        return Unowned(bool(obj.spec.paused))

    # --------------------------------------------------------------------------------------------- observe

    async def observe(self, obj: Cluster, owner: Unowned) -> ClusterSnapshot:
        """Read everything and adopt referenced objects; while the topology is incomplete, do not adopt."""
        deps = self._deps
        cluster_class = await find_cluster_class(deps.client, obj)
        seen = ClusterSnapshot(
            now=deps.clock.now(),
            object=obj,
            cluster_class=cluster_class,
            health=deps.workload.health(obj.key),
            connection_grace=self._grace,
            features=deps.features,
        )
        infrastructure = await self._look_up(seen, obj.spec.infrastructure_ref, "infrastructure")
        control_plane = await self._look_up(seen, obj.spec.control_plane_ref, "controlPlane")
        listing = await list_descendants(deps.client, obj, machine_pools=seen.features.get("MachinePool", False))
        return replace(seen, infrastructure=infrastructure, control_plane=control_plane, listing=listing)

    async def _look_up(self, seen: ClusterSnapshot, reference: ContractVersionedObjectReference | None, role: Role) -> Lookup:
        def adoption(found: Unstructured) -> Json | None:
            try:
                return plan.adoption(seen.cluster, found)
            except plan.BelongsToAnother as error:
                if seen.deleting:  # it is not deleted with this Cluster, and not waited for
                    raise NotFound(str(error)) from None
                raise

        found = await self._providers.look_up(seen.cluster.key, reference, None if seen.waiting_for_topology else adoption)
        return understand(found, role)

    # ------------------------------------------------------------------------------------------------- act

    async def act(self, run: ClusterPass) -> None:
        """Copy values from provider objects; then delete, or maintain the kubeconfig."""
        if run.seen.listing.error:
            run.fail(run.seen.listing.error)
        if run.done.waiting_for_topology:
            run.rows[STEP] = "waiting-for-topology"
            return
        run.become(plan.with_failures(run.object, run.seen.infrastructure, run.seen.control_plane))
        for table in (plan.RECONCILE_INFRASTRUCTURE, plan.RECONCILE_CONTROL_PLANE):
            run.become(plan.copied(run.done, run.decide(table).chosen(Copy)))
        await (self._delete(run) if run.seen.deleting else self._ensure_kubeconfig(run))

    async def _delete(self, run: ClusterPass) -> None:
        decision = run.decide(plan.RECONCILE_DELETE)
        act, failed = decision.chosen(Deletion), False
        for one in plan.deletions(run.done, act):
            try:
                await self._deps.client.delete(one.kind, one.key, uid=one.uid)
            except NotFound:
                continue
            except ApiError as error:
                failed = True
                run.fail(f"error deleting cluster {run.object.key}: failed to delete {one.kind.kind} {one.key}: {error}", error)
        run.done = replace(run.done, deletion=decision, delete_failed=failed)
        if act is Deletion.REMOVE_FINALIZER:
            run.become(without_finalizer(run.object, CLUSTER_FINALIZER))
            run.record("Normal", "Deleted", f"Cluster {run.object.metadata.name} has been deleted")

    async def _ensure_kubeconfig(self, run: ClusterPass) -> None:
        view = await look_at_secrets(self._deps.client, run.object, run.seen.now)
        what = run.decide_on(RECONCILE_KUBECONFIG, view).chosen(Make)
        run.vote(look_again(view))
        if what is None:
            return
        try:
            await make_kubeconfig(view, self._deps.client, self._deps.keys, self._deps.random, what)
        except ApiError as error:
            run.fail(f"failed to write the kubeconfig Secret of Cluster {run.object.key}: {error}", error)

    # -------------------------------------------------------------------------------------------- conclude

    def conclude(self, run: ClusterPass) -> None:
        """Set every condition, the counters and the phase at the end of the pass, and record Events for changes."""
        was_initialized = is_true(run.done.conditions, "ControlPlaneInitialized")
        run.conclude(*TABLES)
        run.conclude(*((V1BETA1_READY,) if run.done.waiting_for_topology else V1BETA1_TABLES))
        status = replace(
            run.object.status,
            phase=phase(run.done, was_initialized=was_initialized),
            control_plane=control_plane_replicas(run.done),
            workers=worker_replicas(run.done),
        )
        if status != run.object.status:
            run.become(replace(run.object, status=status))
        _tell(run)


def _tell(run: ClusterPass) -> None:
    before, after = run.original.object, run.object
    name = before.metadata.name
    if known_phase(before) != known_phase(after):
        run.record("Normal", after.status.phase, f"Cluster {name} is {after.status.phase}")
    was, now = before.status.initialization, after.status.initialization
    if now and now.infrastructure_provisioned and not (was and was.infrastructure_provisioned) and before.spec.infrastructure_ref:
        run.record("Normal", "InfrastructureReady", f"Cluster {name} InfrastructureProvisioned is now True")
    if now and now.control_plane_initialized and not (was and was.control_plane_initialized):
        run.record("Normal", "ControlPlaneInitialized", f"Cluster {name} ControlPlaneInitialized is now True")
