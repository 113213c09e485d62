"""The MachinePool's own steps of a pass.

The steps are a script, because answers of the workload cluster decide the next step; every choice in it is a table or a pure function of
this package. All phases run, even after a failure of another; errors are raised together at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import assert_never

from clusterwright.api.contract import MalformedField
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import MACHINE_POOL_FINALIZER
from clusterwright.conditions import ConditionConflict
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.conditions import decided
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.machinepool import machines, nodes, plan
from clusterwright.controllers.machinepool.conditions import MACHINE_OWNED, OWNED, OWNED_V1BETA1, READY, UP_TO_DATE
from clusterwright.controllers.machinepool.node_watches import NodeWatches, pools_by_label
from clusterwright.controllers.machinepool.plan import Copy, Deletion, Refs
from clusterwright.controllers.machinepool.snapshot import (
    ClusterFacts,
    MachineFacts,
    PoolDone,
    PoolSnapshot,
    infrastructure_machine_kind,
    infrastructure_provisioned,
)
from clusterwright.controllers.machinepool.status import PHASE, with_counters, with_phase
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.tables import Table

SHAPE = Shape(kind=MachinePool, done=PoolDone, finalizer=MACHINE_POOL_FINALIZER, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)
PoolPass = Pass[MachinePool, PoolSnapshot, PoolDone]


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of MachinePools."""
    return KindReconciler(deps, SHAPE, MachinePools(deps))


class MachinePools(Kind[MachinePool, ClusterFacts, PoolSnapshot, PoolDone]):
    """Reconciles MachinePools."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._providers = Providers(deps)
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._watches = NodeWatches(deps.enqueue)
        self._applier = Applier(deps.client)

    def forget(self, key: ObjectKey) -> None:
        """Forget a pool that is gone."""
        self._providers.forget(key)
        self._watches.forget(key)
        self._applier.forget(key)

    async def owner(self, obj: MachinePool) -> ClusterFacts:
        """Return the Cluster that the pool names; it must exist."""
        return ClusterFacts.of(await self._client.get(Cluster, ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)))

    # ---------------------------------------------------------------------------------------------- observe

    async def observe(self, obj: MachinePool, owner: ClusterFacts) -> PoolSnapshot:
        """Return the pool and the objects that it refers to, adopted on the way; those of a deleted pool are only read."""

        def adoption(found: Unstructured) -> Json | None:
            return plan.adoption(obj, found)

        adopt = None if obj.metadata.deletion_timestamp is not None else adoption
        spec = obj.spec.template.spec
        return PoolSnapshot(
            now=self._deps.clock.now(),
            object=obj,
            cluster=owner,
            bootstrap=await self._providers.look_up(obj.key, spec.bootstrap.config_ref, adopt),
            infrastructure=await self._providers.look_up(obj.key, spec.infrastructure_ref, adopt),
        )

    # -------------------------------------------------------------------------------------------------- act

    async def act(self, run: PoolPass) -> None:
        """Run every phase, even after a failure of another."""
        run.become(plan.with_owner_and_label(run.object, run.seen.cluster))
        self._watches.learn(run.object, run.seen.cluster.key)
        if run.seen.deleting:
            await _phase(run, "failed to reconcile delete", self._delete)
            return
        run.become(plan.with_failure(run.object, run.seen.bootstrap))
        _copy(run, plan.BOOTSTRAP)
        await _phase(run, "failed to reconcile infrastructure", self._infrastructure)
        await _phase(run, "failed to get Machines for MachinePool", self._list_machines)
        await _phase(run, "failed to reconcile nodeRefs", self._node_refs)
        await self._mark_machines(run)

    # --------------------------------------------------------------------------------------- infrastructure

    async def _infrastructure(self, run: PoolPass) -> None:
        """Copy values from the infrastructure, and create Machines for its machines. Raises ApiError."""
        run.become(plan.with_failure(run.object, run.seen.infrastructure))
        what, infra = _copy(run, plan.INFRASTRUCTURE), run.seen.infrastructure
        if what is not Copy.PROVISIONED or not isinstance(infra, Found):
            return
        unlisted: ApiError | None = None
        client = await self._deps.workload.client(run.seen.cluster.key)
        try:
            run.done = replace(run.done, nodes=nodes.by_provider_id(await client.list(Node)))
        except ApiError as error:
            unlisted = error
        try:
            await self._mirror_machines(run, infra)
        except (ApiError, MalformedField) as error:
            run.fail(f"failed to reconcile Machines for MachinePool {run.object.key}: {error}", error)
            return
        if unlisted is not None:
            run.fail(f"failed to get nodeRefs for MachinePool {run.object.key}: {unlisted}", unlisted)
            return
        if infrastructure_provisioned(infra):
            run.become(plan.with_replicas(run.done))
            _copy(run, plan.SIZE)
            self._watches.learn(run.object, run.seen.cluster.key)

    async def _mirror_machines(self, run: PoolPass, infra: Found) -> None:
        """Create a Machine for every machine that the infrastructure shows. Raises ApiError and MalformedField."""
        kind = infrastructure_machine_kind(infra)
        if not kind:
            return
        pool, labels = run.object, machines.pool_labels(run.object)
        gvk = replace(infra.object.gvk, kind=kind)
        await self._deps.dynamic.ensure(gvk, pools_by_label)
        found = await self._client.list(gvk, namespace=pool.metadata.namespace, labels=labels)
        present = await self._client.list(Machine, namespace=pool.metadata.namespace, labels=labels)
        self._applier.keep_only(pool.key, {m.metadata.uid for m in present})
        failed: list[ApiError] = []
        standing = machines.by_infrastructure(present)
        for one in found:
            await asyncio.sleep(0)  # there may be thousands of them, and none may need a request
            machine = standing.get(one.key.name)
            try:
                if machine is None and not await self._is_staying(one):
                    continue
                intent = machines.intent(pool, one, machine, run.done.nodes or {})
                await self._applier.apply_if_changed(pool.key, machine.metadata if machine else None, intent, machines.FIELD_MANAGER)
            except ApiError as error:
                what = f'update Machine "{machine.key}"' if machine else f'create new Machine for infraMachine "{one.key.name}"'
                run.fail(f'failed to create machines for MachinePool "{pool.key}": failed to {what}: {error}', error)
                failed.append(error)
        if failed:
            raise failed[0]

    async def _is_staying(self, infra: Unstructured) -> bool:
        """Return whether the machine exists: a cache may show one that was deleted with its Machine. Raises ApiError."""
        now = await self._client.live.find(infra.gvk, infra.key)
        return now is not None and now.metadata.uid == infra.metadata.uid and now.metadata.deletion_timestamp is None

    async def _list_machines(self, run: PoolPass) -> None:
        pool = run.object
        found = await self._client.list(Machine, namespace=pool.metadata.namespace, labels=machines.pool_labels(pool))
        run.done = replace(run.done, machines=tuple(MachineFacts.of(m) for m in found if machines.belongs(m, pool)))

    # ------------------------------------------------------------------------------------------------- Nodes

    async def _node_refs(self, run: PoolPass) -> None:
        """Find the Nodes of the pool, and mark them as the pool's. Raises ApiError."""
        cluster = run.seen.cluster
        if cluster.initialized:
            await self._deps.workload.watch(cluster.key, "machinepool", Node, self._watches.node_changed(cluster.key))
        match run.decide(plan.NODE_REFS).chosen(Refs):
            case None:
                return
            case Refs.KEEP:
                pass
            case Refs.LOOK:
                if not await self._look_for_nodes(run):
                    return
            case never:
                assert_never(never)
        run.conclude(plan.REPLICAS_READY)

    async def _look_for_nodes(self, run: PoolPass) -> bool:
        """Find the Nodes; return whether the references are complete. Raises ApiError."""
        client = await self._deps.workload.client(run.seen.cluster.key)
        await self._delete_retired(run, client)
        pool, ids = run.object, run.object.spec.provider_id_list
        if run.done.nodes is None:
            run.fail("failed to reconcile nodeRefs: failed to get Node references")
            return False
        min_ready = timedelta(seconds=pool.spec.template.spec.min_ready_seconds or 0)
        found = nodes.membership(ids, run.done.nodes, min_ready, run.seen.now)
        if ids and not found.refs:
            return False
        if found.refs != pool.status.node_refs:
            run.record("Normal", "SuccessfulSetNodeRefs", ", ".join(r.name for r in found.refs))
        run.become(plan.with_members(pool, found))
        for ref in found.refs:
            try:
                node = await client.get(Node, ObjectKey("", ref.name))
            except ApiError:
                continue  # it is marked when it can be read
            patch = nodes.node_patch(node, pool)
            if patch is not None:
                await client.patch(Node, node.key, patch)
        return True

    async def _delete_retired(self, run: PoolPass, client: Client) -> None:
        """Delete the Nodes of machines that the infrastructure has removed. Raises ApiError."""
        for ref in run.object.status.node_refs:
            try:
                node = await client.get(Node, ObjectKey("", ref.name))
            except ApiError:
                continue  # gone, or not to be judged now
            if nodes.is_retired(node, run.object.spec.provider_id_list):
                with suppress(NotFound):
                    await client.delete(Node, node.key, uid=node.metadata.uid)

    # ---------------------------------------------------------------------------------------------- Machines

    async def _mark_machines(self, run: PoolPass) -> None:
        """Set UpToDate on every Machine; a failure does not stop the others."""
        marked = [await self._marked(run, machine) for machine in run.done.machines or ()]
        if run.done.machines is not None:
            run.done = replace(run.done, machines=tuple(marked))

    async def _marked(self, run: PoolPass, machine: MachineFacts) -> MachineFacts:
        """Return the Machine with its condition, which counts even if the write fails; then the pass fails."""
        known = machine
        try:
            original = await self._client.read(Machine, machine.key)
            if original is None:
                return machine
            decision = run.decide_on(UP_TO_DATE, MachineFacts.of(original.object))
            after = decided(original.object, UP_TO_DATE, decision, run.seen.now)
            known = MachineFacts.of(after)
            await self._patcher.patch(original, after, owned_conditions=MACHINE_OWNED)
        except (ApiError, ConditionConflict) as error:
            run.fail(f"failed to set machines up to date: Machine {machine.key}: {error}", error)
        return known

    # -------------------------------------------------------------------------------------------------- delete

    async def _delete(self, run: PoolPass) -> None:
        """Delete the objects that the pool refers to, then remaining Nodes, then remove the finalizer. Raises ApiError."""
        match run.decide(plan.DELETION).chosen(Deletion):
            case Deletion.EXTERNAL:
                await self._delete_external(run)
                return
            case Deletion.WAIT:
                return
            case Deletion.NODES:
                await self._delete_retired(run, await self._deps.workload.client(run.seen.cluster.key))
            case Deletion.RELEASE | None:
                pass
            case never:
                assert_never(never)
        run.become(without_finalizer(run.object, MACHINE_POOL_FINALIZER))

    async def _delete_external(self, run: PoolPass) -> None:
        for lookup in (run.seen.bootstrap, run.seen.infrastructure):
            if not isinstance(lookup, Found):
                continue
            try:
                await self._client.delete(lookup.object.gvk, lookup.object.key, uid=lookup.object.metadata.uid)
            except NotFound:
                continue
            except ApiError as error:
                run.fail(f"failed deleting external references: {error}", error)
                return

    # ------------------------------------------------------------------------------------------------- conclude

    def conclude(self, run: PoolPass) -> None:
        """Set counters, phase and the summary of the deprecated conditions."""
        try:
            run.become(with_counters(run.done))
        except MalformedField as error:
            run.fail(str(error), error)
        phase = run.decide(PHASE).phase
        if phase:
            run.become(with_phase(run.object, phase))
        run.conclude(READY)


def _copy(run: PoolPass, table: Table[PoolSnapshot]) -> Copy | None:
    """Evaluate a table, set its condition, and copy the values that it names."""
    decision = run.decide(table)
    what = decision.chosen(Copy)
    copied = plan.copied(run.done, what)
    run.become(decided(copied, table, decision, run.seen.now) if table.v1beta1 else copied)
    return what


async def _phase(run: PoolPass, text: str, step: Callable[[PoolPass], Awaitable[None]]) -> None:
    """Run a phase; its failure does not stop the others."""
    try:
        await step(run)
    except ApiError as error:
        run.fail(f"{text}: {error}", error)
