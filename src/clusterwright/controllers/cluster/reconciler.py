"""The edge of the Cluster controller: reads in, writes out, in the order that the seeds demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from clusterwright.api.core import Cluster, ClusterDeprecatedStatus, ClusterV1Beta1DeprecatedStatus, ContractVersionedObjectReference
from clusterwright.api.meta import Condition, ObjectKey, V1Beta1Condition
from clusterwright.conditions import is_true, set_condition, v1beta1
from clusterwright.conditions.limits import fit, fit_v1beta1
from clusterwright.controllers.cluster import plan
from clusterwright.controllers.cluster.conditions import OWNED, PAUSED, TABLES
from clusterwright.controllers.cluster.conditions_v1beta1 import OWNED_V1BETA1, V1BETA1_TABLES
from clusterwright.controllers.cluster.guards import references_missing
from clusterwright.controllers.cluster.kubeconfig import RECONCILE_KUBECONFIG, look_again, look_at_secrets, make_kubeconfig
from clusterwright.controllers.cluster.plan import Change, Delete
from clusterwright.controllers.cluster.providers import Lookup, Missing, Role, Unreadable, understand
from clusterwright.controllers.cluster.snapshot import (
    ClusterSnapshot,
    find_cluster_class,
    has_topology,
    list_descendants,
    look_up,
)
from clusterwright.controllers.cluster.status import control_plane_replicas, known_phase, phase, worker_replicas
from clusterwright.controllers.external import AlreadyControlled, External
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result
from clusterwright.tables import Decision, Table

S = TypeVar("S")

DEFAULT_CONNECTION_GRACE = timedelta(seconds=50)
_ADOPTION_TRIES = 3


class ClusterReconcileError(Exception):
    """What went wrong in a pass, all of it; the status was written all the same where that could be done."""

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = tuple(dict.fromkeys(errors))
        super().__init__(self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]")


class _Pass:
    """What one pass has gathered so far: errors, requeue votes and the rows that fired."""

    __slots__ = ("errors", "rows", "votes")

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.votes: list[timedelta | None] = []
        self.rows: dict[str, str] = {}

    def decide(self, table: Table[S], snapshot: S) -> Decision:
        """Let a table decide, and note what it did."""
        decision = table.decide(snapshot)
        self.rows[decision.table] = decision.row
        self.votes.append(decision.requeue)
        if decision.error:
            self.errors.append(decision.error)
        return decision


class ClusterReconciler:
    """Brings one Cluster nearer to its spec."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._grace = deps.options.get("remote-connection-grace-period") or DEFAULT_CONNECTION_GRACE
        self._log = get_logger("cluster", controller="cluster")
        if not isinstance(self._grace, timedelta) or self._grace <= timedelta(0):
            raise ValueError("remote-connection-grace-period must be a positive duration")

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass: observe, plan, apply, conclude, patch."""
        deps = self._deps
        original = await deps.client.read(Cluster, key)
        if original is None:
            return self._end(key, "not-found")
        if await ensure_finalizer(self._patcher, original, plan.FINALIZER) is Finalization.ADDED:
            return self._end(key, "finalizer-added")
        check = await ensure_paused_condition(self._patcher, deps.clock, original, cluster_paused=bool(original.object.spec.paused))
        if check.ends_pass:
            paused = PAUSED.decide(ClusterSnapshot(now=deps.clock.now(), cluster=original.object))
            return self._end(key, "paused" if check.is_paused else "not-paused-written", Paused=paused.row)
        cluster = check.object
        cluster_class = await find_cluster_class(deps.client, cluster)
        seen = ClusterSnapshot(
            now=deps.clock.now(),
            cluster=cluster,
            cluster_class=cluster_class,
            health=deps.workload.health(key),
            connection_grace=self._grace,
            features=deps.features,
            waiting_for_topology=has_topology(cluster) and cluster.metadata.deletion_timestamp is None and references_missing(cluster),
        )
        under_way = _Pass()
        under_way.rows["reconcile"] = "waiting-for-topology" if seen.waiting_for_topology else "deleting" if seen.deleting else "normal"
        under_way.decide(PAUSED, seen)
        seen = await self._observe(seen, under_way)
        seen = await self._run_phases(seen, under_way)
        after = conclude(seen, under_way)
        await self._write(original, after, seen, under_way)
        if under_way.errors:
            raise ClusterReconcileError(under_way.errors)
        return Result.soonest(*under_way.votes)

    def _end(self, key: ObjectKey, step: str, **rows: str) -> Result:
        """The pass ends at a step before the phases."""
        self._deps.trace(key, {"reconcile": step, **rows})
        return Result.await_change()

    # --------------------------------------------------------------------------------------------- observe

    async def _observe(self, seen: ClusterSnapshot, under_way: _Pass) -> ClusterSnapshot:
        cluster = seen.cluster
        infrastructure = await self._look_up(seen, cluster.spec.infrastructure_ref, "infrastructure")
        control_plane = await self._look_up(seen, cluster.spec.control_plane_ref, "controlPlane")
        listing = await list_descendants(self._deps.client, cluster, machine_pools=seen.features.get("MachinePool", False))
        if listing.error:
            under_way.errors.append(listing.error)
        return with_(
            seen,
            infrastructure=infrastructure,
            control_plane=control_plane,
            descendants=listing.descendants,
            control_plane_machines=listing.control_plane_machines,
        )

    async def _look_up(self, seen: ClusterSnapshot, reference: ContractVersionedObjectReference | None, role: Role) -> Lookup:
        """Read what a reference names, make it ours, and understand it; while the topology is not there yet, only look."""
        found = await look_up(self._deps.client, self._deps.dynamic, seen.cluster, reference)
        if isinstance(found, External) and not seen.waiting_for_topology:
            found = await self._make_ours(seen.cluster, found)
        return understand(found, role) if isinstance(found, External) else found

    async def _make_ours(self, cluster: Cluster, external: External) -> External | Lookup:
        """Own the object and label it; what fails makes it unreadable, or missing if it is gone."""
        client, obj = self._deps.client, external.object
        try:
            for _ in range(_ADOPTION_TRIES - 1):
                try:
                    return await self._adopted(cluster, external)
                except Conflict:  # someone else wrote the object meanwhile: look at what is there now
                    external = External(await client.live.get(obj.gvk, obj.key), external.contract)
            return await self._adopted(cluster, external)
        except NotFound:
            return Missing()
        except (ApiError, AlreadyControlled) as error:
            return Unreadable(f"failed to set the owner of {obj.kind} {obj.key}: {error}")

    async def _adopted(self, cluster: Cluster, external: External) -> External:
        patch = plan.adoption(cluster, external)
        if patch is None:
            return external
        obj = external.object
        return External(await self._deps.client.patch(obj.gvk, obj.key, patch), external.contract)

    # ---------------------------------------------------------------------------------------------- phases

    async def _run_phases(self, seen: ClusterSnapshot, under_way: _Pass) -> ClusterSnapshot:
        if seen.waiting_for_topology:
            self._log.info("Waiting for the topology to be generated", cluster=str(seen.cluster.key))
            return seen
        seen = with_(seen, cluster=plan.with_failures(seen.cluster, seen.infrastructure, seen.control_plane))
        for table in (plan.RECONCILE_INFRASTRUCTURE, plan.RECONCILE_CONTROL_PLANE):
            decision = under_way.decide(table, seen)
            seen = with_(seen, cluster=plan.change(seen, decision.intents))
        if seen.deleting:
            return await self._delete(seen, under_way)
        await self._ensure_kubeconfig(seen, under_way)
        return seen

    async def _delete(self, seen: ClusterSnapshot, under_way: _Pass) -> ClusterSnapshot:
        decision = under_way.decide(plan.RECONCILE_DELETE, seen)
        failures: list[str] = []
        for intent in decision.intents:
            if isinstance(intent, Delete):
                try:
                    await self._deps.client.delete(intent.kind, intent.key, uid=intent.uid)
                except NotFound:
                    continue
                except ApiError as error:
                    failures.append(f"error deleting cluster {seen.cluster.key}: failed to delete {intent.kind.kind} {intent.key}: {error}")
        under_way.errors += failures
        changed = plan.change(seen, [i for i in decision.intents if isinstance(i, Change)])
        return with_(seen, deletion=decision, delete_failed=bool(failures), cluster=changed)

    async def _ensure_kubeconfig(self, seen: ClusterSnapshot, under_way: _Pass) -> None:
        view = await look_at_secrets(self._deps.client, seen.cluster, seen.now)
        decision = under_way.decide(RECONCILE_KUBECONFIG, view)
        under_way.votes.append(look_again(view))
        if decision.row not in {"create", "renew"}:
            return
        try:
            await make_kubeconfig(view, self._deps.client, self._deps.keys, self._deps.random, renew=decision.row == "renew")
        except ApiError as error:
            under_way.errors.append(f"failed to write the kubeconfig Secret of Cluster {seen.cluster.key}: {error}")

    # ----------------------------------------------------------------------------------------------- write

    async def _write(self, original: Original[Cluster], after: Cluster, seen: ClusterSnapshot, under_way: _Pass) -> None:
        deps = self._deps
        deps.trace(original.object.key, under_way.rows)
        try:
            await self._patcher.patch(
                original,
                after,
                owned_conditions=OWNED,
                owned_v1beta1_conditions=OWNED_V1BETA1,
                observed_generation=not under_way.errors,
            )
        finally:
            self._tell(original.object, after, seen, under_way)

    def _tell(self, before: Cluster, after: Cluster, seen: ClusterSnapshot, under_way: _Pass) -> None:
        """Events for what changed and for what failed."""
        name, record = before.metadata.name, self._deps.events.record
        if known_phase(before) != known_phase(after):
            record(before, "Normal", after.status.phase, f"Cluster {name} is {after.status.phase}")
        was, now = before.status.initialization, after.status.initialization
        if now and now.infrastructure_provisioned and not (was and was.infrastructure_provisioned) and before.spec.infrastructure_ref:
            record(before, "Normal", "InfrastructureReady", f"Cluster {name} InfrastructureProvisioned is now True")
        if now and now.control_plane_initialized and not (was and was.control_plane_initialized):
            record(before, "Normal", "ControlPlaneInitialized", f"Cluster {name} ControlPlaneInitialized is now True")
        if seen.deletion is not None and seen.deletion.row == "completed":
            record(before, "Normal", "Deleted", f"Cluster {name} has been deleted")
        for error in dict.fromkeys(under_way.errors):
            record(before, "Warning", "ReconcileError", error)


def conclude(seen: ClusterSnapshot, under_way: _Pass) -> Cluster:
    """The Cluster with every condition, the counters and the phase as this pass leaves them. Pure."""
    was_initialized = is_true(seen.conditions, "ControlPlaneInitialized")
    for table in TABLES:
        decision = under_way.decide(table, seen)
        seen = with_(seen, cluster=_decided(seen, decision))
    if not seen.waiting_for_topology:
        for table in V1BETA1_TABLES[:-1]:
            seen = with_(seen, cluster=_decided_v1beta1(seen, under_way.decide(table, seen)))
    seen = with_(seen, cluster=_decided_v1beta1(seen, under_way.decide(V1BETA1_TABLES[-1], seen)))
    status = replace(
        seen.cluster.status,
        phase=phase(seen, was_initialized=was_initialized),
        control_plane=control_plane_replicas(seen),
        workers=worker_replicas(seen),
    )
    return seen.cluster if status == seen.cluster.status else replace(seen.cluster, status=status)


def _decided(seen: ClusterSnapshot, decision: Decision) -> Cluster:
    outcome, cluster = decision.outcome, seen.cluster
    if outcome is None:
        return cluster
    condition = Condition(
        type=decision.table,
        status=outcome.status,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=outcome.last_transition_time,
    )
    conditions = set_condition(cluster.status.conditions, fit(condition), generation=cluster.metadata.generation, now=seen.now)
    if conditions is cluster.status.conditions:
        return cluster
    return replace(cluster, status=replace(cluster.status, conditions=conditions))


def _decided_v1beta1(seen: ClusterSnapshot, decision: Decision) -> Cluster:
    outcome, cluster = decision.outcome, seen.cluster
    if outcome is None:
        return cluster
    condition = V1Beta1Condition(
        type=decision.table.removeprefix("v1beta1 "),
        status=outcome.status,
        severity=outcome.severity,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=outcome.last_transition_time,
    )
    deprecated = cluster.status.deprecated or ClusterDeprecatedStatus()
    old = deprecated.v1beta1 or ClusterV1Beta1DeprecatedStatus()
    conditions = v1beta1.set_condition(old.conditions, fit_v1beta1(condition), now=seen.now)
    if conditions == old.conditions:
        return cluster
    deprecated = replace(deprecated, v1beta1=replace(old, conditions=conditions))
    return replace(cluster, status=replace(cluster.status, deprecated=deprecated))
