"""DevMachinePool and DockerMachinePool: as many simulated machines as the MachinePool wants, each with its own Machine."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import assert_never

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.infrastructure import InfraMachinePool
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, DEV_MACHINE_POOL_FINALIZER, MACHINE_POOL_NAME_LABEL
from clusterwright.controllers.inmemory import poolplan as plan
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, Owners, PoolFacts
from clusterwright.controllers.inmemory.kinds import Family, Simulated
from clusterwright.controllers.inmemory.poolplan import Act, Instance, PoolScene
from clusterwright.controllers.kit.owners import find_owner
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.naming import label_value
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

PoolPass = Pass[InfraMachinePool, PoolScene, PoolScene]


def make(deps: Dependencies, family: Family, simulated: Simulated) -> Reconciler:
    """Return the reconciler of a family's pool kind."""
    shape = Shape(kind=family.pool, finalizer=DEV_MACHINE_POOL_FINALIZER, owned=("Ready", "Paused"))
    return KindReconciler(deps, shape, DevMachinePools(deps, family, simulated))


class DevMachinePools(Kind[InfraMachinePool, Owners, PoolScene, PoolScene]):
    """Creates and removes the machines of pools."""

    def __init__(self, deps: Dependencies, family: Family, simulated: Simulated) -> None:
        self._deps = deps
        self._machine = family.machine
        self._simulated = simulated
        self._client = deps.client

    async def owner(self, obj: InfraMachinePool) -> Owners | None:
        """Return the MachinePool and its Cluster, waiting for both, unless the pool is deleted."""
        if not self._simulated.has_pool(obj):
            return None
        pool = await find_owner(self._client, obj, MachinePool)
        name = pool.spec.cluster_name if pool else obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        key = ObjectKey(obj.metadata.namespace, name)
        cluster = await self._client.find(Cluster, key) if name else None
        if obj.metadata.deletion_timestamp is None and (pool is None or cluster is None):
            return None
        return Owners(
            cluster_key=key,
            cluster=None if cluster is None else ClusterFacts.of(cluster),
            pool=None if pool is None else PoolFacts.of(pool),
        )

    async def observe(self, obj: InfraMachinePool, owner: Owners) -> PoolScene:
        """Return the pool's machines, and the Machines that represent them."""
        namespace = obj.metadata.namespace
        found = await self._client.list(self._machine, namespace=namespace, owner=obj.metadata.uid)
        machines: list[MachineFacts] = []
        if owner.pool is not None:
            labels = {CLUSTER_NAME_LABEL: owner.pool.spec.cluster_name, MACHINE_POOL_NAME_LABEL: label_value(owner.pool.metadata.name)}
            machines = [MachineFacts.of(m) for m in await self._client.list(Machine, namespace=namespace, labels=labels)]
        return PoolScene(
            now=self._deps.clock.now(),
            object=obj,
            pool=owner.pool,
            cluster=owner.cluster,
            instances=plan.instances_of(found, machines, self._machine.__name__),
            strays=plan.strays_of(found, machines, self._machine.__name__),
        )

    async def act(self, run: PoolPass) -> None:
        """Create missing machines, or remove surplus ones. Raises ApiError."""
        for stray in run.seen.strays:
            if await self._client.live.find(self._machine, ObjectKey(stray.metadata.namespace, stray.spec.infrastructure_ref.name)) is None:
                with suppress(NotFound):
                    await self._client.delete(Machine, stray.key, uid=stray.metadata.uid)
        match run.decide(plan.SCALE).chosen(Act):
            case Act.CREATE:
                for machine in plan.new_machines(run.seen):
                    await asyncio.sleep(0)  # other tasks run between two machines, even if no request waits for anything
                    with suppress(AlreadyExists):
                        await self._client.create(machine)
            case Act.REMOVE:
                await self._remove(run, plan.surplus(run.seen))
            case Act.REPLACE:
                await self._remove(run, list(run.seen.outdated[:1]))
            case Act.EMPTY:
                await self._remove(run, [i for i in run.seen.instances if not i.leaves])
            case Act.RELEASE:
                run.become(without_finalizer(run.object, DEV_MACHINE_POOL_FINALIZER))
            case None:
                pass
            case never:
                assert_never(never)

    async def _remove(self, run: PoolPass, instances: list[Instance]) -> None:
        """Delete the Machines, so that Nodes are drained; a machine without one is deleted at once."""
        for instance in instances:
            kind, what = (Machine, instance.machine) if instance.machine is not None else (self._machine, instance.infra)
            try:
                await self._client.delete(kind, what.key, uid=what.metadata.uid)
            except NotFound:
                continue
            except ApiError as error:
                run.fail(f"failed to delete {what.kind} {what.key}: {error}", error)

    def conclude(self, run: PoolPass) -> None:
        """Set the status of the pool from its machines."""
        run.become(plan.with_status(run.done))
        run.conclude(plan.READY)
