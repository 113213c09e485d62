"""The controllers of a provider in a manager, and the process that runs them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from random import SystemRandom
from typing import Any

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.watching import of_cluster, owned
from clusterwright.controllers.wiring import PassTools
from clusterwright.kubeadm.naming import label_value
from clusterwright.provider.clusters import InfraClusters
from clusterwright.provider.conditions import READY, Answered
from clusterwright.provider.machines import InfraMachines
from clusterwright.provider.passes import ClusterSteps, MachineSteps
from clusterwright.runtime import logging
from clusterwright.runtime.client import Reader
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.controller import Controller
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig, default_paths, in_cluster
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.reconcile import Mapper, Reconciler, Watch

Provider = type[InfraMachines[Any]] | type[InfraClusters[Any]]


def add(manager: Manager, provider: Provider, *given: Any, name: str = "") -> None:
    """Let a manager reconcile the kind, next to its other controllers. `given` are further arguments of the class, after the client.

    `name` is the controller's; default: the kind's.
    """
    kind = provider.kind
    name = name or kind.__name__.lower()
    shape: Shape[Any] = Shape(
        kind=kind, done=Answered, finalizer=provider.finalizer, owned=("Paused", READY.name, *(t.name for t in provider.conditions))
    )

    def make(controller: Controller) -> Reconciler:
        tools = PassTools(
            client=manager.client,
            clock=manager.clock,
            random=manager.random,
            events=manager.events,
            trace=lambda key, rows: manager.traces.record(name, kind.__name__, key, rows),
            reports=controller.reports,
        )
        made = provider(manager.client, *given)
        made.wake = controller.enqueue
        steps: Kind[Any, Any, Any, Any] = (
            MachineSteps(made, manager.clock) if isinstance(made, InfraMachines) else ClusterSteps(made, manager.clock)
        )
        return KindReconciler(tools, shape, steps)

    manager.add_controller(name, kind, make, watches=_watches(provider))


def _watches(provider: Provider) -> tuple[Watch, ...]:
    kind = provider.kind
    made = [Watch(one, owners(gvk_of(kind).group, kind.__name__)) for one in provider.makes]
    if issubclass(provider, InfraClusters):
        return (Watch(Cluster, owned(kind)), *made, *provider.watches)
    return (Watch(Machine, owned(kind)), Watch(Cluster, of_cluster(kind)), Watch(MachinePool, _of_pool(kind), when=_data_came), *made)


def _of_pool(kind: type[Object]) -> Mapper:
    """Return the objects of a kind with the labels of a MachinePool."""

    async def map(pool: MachinePool, reader: Reader) -> Sequence[ObjectKey]:
        labels = {CLUSTER_NAME_LABEL: pool.spec.cluster_name, MACHINE_POOL_NAME_LABEL: label_value(pool.metadata.name)}
        return [one.key for one in await reader.list(kind, namespace=pool.metadata.namespace, labels=labels)]

    return map


def _data_came(old: MachinePool | None, new: MachinePool | None) -> bool:
    return old is None or new is None or old.spec.template.spec.bootstrap != new.spec.template.spec.bootstrap


def run(*kinds: Provider) -> None:
    """Reconcile these kinds until the process is ended, in the cluster that the environment selects as for kubectl."""
    logging.configure()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(kinds))


async def _run(kinds: Sequence[Provider]) -> None:
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
