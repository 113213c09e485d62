"""The pass over an InfraMachine, and the process that runs it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import Any

from msgspec.structs import replace as changed

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevInitializationStatus
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.kit.owners import find_owner
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.watching import of_cluster, owned, owners
from clusterwright.controllers.wiring import PassTools
from clusterwright.provider.conditions import READY, View
from clusterwright.provider.machines import InfraMachines, ProvisionFailed, Server
from clusterwright.runtime import logging
from clusterwright.runtime.clock import Clock, SystemClock
from clusterwright.runtime.controller import Controller
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig, default_paths, in_cluster
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.reconcile import Watch


@dataclass(frozen=True, slots=True)
class _Belonging:
    machine: Machine | None
    cluster: Cluster | None


class _Steps(Kind[Any, _Belonging, View]):
    def __init__(self, machines: InfraMachines[Any], clock: Clock) -> None:
        self._machines = machines
        self._client = machines.client
        self._clock = clock

    async def owner(self, obj: Any) -> _Belonging | None:
        machine = await find_owner(self._client, obj, Machine)
        if machine is None:
            return _Belonging(None, None) if obj.metadata.deletion_timestamp is not None else None
        cluster = await self._client.find(Cluster, ObjectKey(obj.metadata.namespace, machine.spec.cluster_name))
        return None if cluster is None and obj.metadata.deletion_timestamp is None else _Belonging(machine, cluster)

    def is_paused(self, owner: _Belonging) -> bool:
        return owner.cluster is not None and bool(owner.cluster.spec.paused)

    async def observe(self, obj: Any, owner: _Belonging) -> View | None:
        if obj.metadata.deletion_timestamp is not None and self._machines.finalizer not in obj.metadata.finalizers:
            return None
        latch = owner.cluster.status.initialization if owner.cluster is not None else None
        is_cluster_provisioned = latch is not None and bool(latch.infrastructure_provisioned)
        return View(object=obj, now=self._clock.now(), machine=owner.machine, is_cluster_provisioned=is_cluster_provisioned)

    async def act(self, run: Pass[Any, View]) -> None:
        seen, obj = run.seen, run.object
        if seen.deleting:
            try:
                is_gone = await self._machines.remove(obj)
            except NotFound:  # what was to be deleted went meanwhile; the next look, of a cache that has heard of it, sees what is left
                is_gone = False
            if is_gone:
                run.become(without_finalizer(obj, self._machines.finalizer))
            else:
                self._look_again(run)
            return
        if seen.machine is None or not (seen.is_provisioned or (seen.is_cluster_provisioned and seen.has_data)):
            return
        try:
            server = await self._machines.provision(obj, seen.machine)
        except ProvisionFailed as error:
            run.seen = replace(seen, failure=str(error))
            raise
        if server is not None:
            run.become(_told(obj, server))
        elif not seen.is_provisioned:
            self._look_again(run)

    def conclude(self, run: Pass[Any, View]) -> None:
        run.conclude(READY)

    def _look_again(self, run: Pass[Any, View]) -> None:
        if not self._machines.makes:
            run.vote(self._machines.look)


def _told(obj: Any, server: Server) -> Any:
    status = changed(
        obj.status,
        initialization=DevInitializationStatus(provisioned=True),
        addresses=tuple(server.addresses),
        failure_domain=server.failure_domain or obj.status.failure_domain,
    )
    return changed(obj, spec=changed(obj.spec, provider_id=server.provider_id), status=status)


def add(manager: Manager, machines: type[InfraMachines[Any]]) -> None:
    """Let a manager reconcile the kind, beside what else it does."""
    kind, name = machines.kind, machines.kind.__name__
    shape: Shape[Any] = Shape(kind=kind, finalizer=machines.finalizer, owned=("Paused", READY.name))

    def make(controller: Controller) -> KindReconciler[Any, _Belonging, View]:
        tools = PassTools(
            client=manager.client,
            clock=manager.clock,
            random=manager.random,
            events=manager.events,
            trace=lambda key, rows: manager.traces.record(name.lower(), name, key, rows),
            may_wait=controller.may_wait,
        )
        return KindReconciler(tools, shape, _Steps(machines(manager.client), manager.clock))

    made = [Watch(one, owners(gvk_of(kind).group, name)) for one in machines.makes]
    watches = (Watch(Machine, owned(kind)), Watch(Cluster, of_cluster(kind)), *made)
    manager.add_controller(name.lower(), kind, make, watches=watches)


def run(*kinds: type[InfraMachines[Any]]) -> None:
    """Reconcile these kinds until the process is ended, in the cluster that the environment names as it does for kubectl."""
    logging.configure()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(kinds))


async def _run(kinds: Sequence[type[InfraMachines[Any]]]) -> None:
    clock, paths = SystemClock(), default_paths(os.environ)
    is_pod = "KUBERNETES_SERVICE_HOST" in os.environ and not any(path.exists() for path in paths)
    connection = in_cluster(os.environ) if is_pod else Kubeconfig.load(paths).resolve()
    transport = HttpTransport(connection, clock, os.environ)
    try:
        manager = Manager(transport, clock=clock, random=SystemRandom())
        for kind in kinds:
            add(manager, kind)
        await manager.run()
    finally:
        await transport.close()
