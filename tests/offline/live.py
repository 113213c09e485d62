"""A live plane in virtual time, seen as `clusterwright explain` sees it: recorded with its workload cluster, then explained."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.app import connector
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import Answer, explain
from clusterwright.offline.record import record
from clusterwright.offline.survey import Surveyor
from clusterwright.offline.verdict import State
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane, management_server, plane

NAMESPACE = "default"
SUBJECT = f"Cluster/{NAMESPACE}/c"
_CORE = "cluster.x-k8s.io"
CLUSTER = GroupVersionKind(_CORE, "v1beta2", "Cluster")
MACHINE = GroupVersionKind(_CORE, "v1beta2", "Machine")
DEPLOYMENT = GroupVersionKind(_CORE, "v1beta2", "MachineDeployment")
DEV_MACHINE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine")
DEV_CLUSTER = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevCluster")
DEV_TEMPLATE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate")
CONFIG_TEMPLATE = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate")
CONTROL_PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
SECRET = GroupVersionKind("", "v1", "Secret")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@asynccontextmanager
async def admitting(clock: Clock, features: Mapping[str, bool] = EMBEDDED_FEATURES) -> AsyncIterator[Plane]:
    """A plane whose API server has our admission, as `up` has it: topologies rely on its defaults."""
    async with plane(clock, server=management_server(clock, Random(1), EMBEDDED_FEATURES), features=features) as p:
        yield p


def key(name: str) -> ObjectKey:
    """In the namespace of all this."""
    return ObjectKey(NAMESPACE, name)


def whole(replicas: int = 1, workers: int = 1, seconds: float = 0) -> list[Json]:
    """A Cluster `c` with a KubeadmControlPlane `c` and a MachineDeployment `md`."""
    return [
        *samples.cluster("c", has_control_plane_object=True),
        *samples.control_plane("c", replicas=replicas, seconds=seconds),
        *samples.workers("c", "md", replicas=workers, seconds=seconds),
    ]


async def up(p: Plane, replicas: int = 1, workers: int = 1) -> None:
    """Have it, and wait until it is there."""
    await p.apply(whole(replicas, workers))
    await p.until_available("c", control_plane=replicas, workers=workers, within=600)


@asynccontextmanager
async def lived(stage: AbstractAsyncContextManager[Plane], replicas: int = 1, workers: int = 1) -> AsyncIterator[Plane]:
    """A plane on which it has been there for a minute, and was looked at."""
    async with stage as p:
        await up(p, replicas, workers)
        await asyncio.sleep(60)
        assert (await look(p)).verdict.state is State.FINE
        yield p


async def look(p: Plane, subject: str = SUBJECT, client: Client | None = None) -> Answer:
    """What `explain` says now."""
    return explain(assemble(await recorded(p, client, keep_secrets=True)), subject)


async def recorded(p: Plane, client: Client | None = None, *, keep_secrets: bool) -> list[Json]:
    """Record the cluster with its workload cluster."""
    connect = connector(p.cloud, None)

    async def reach(kubeconfig: bytes) -> Transport:
        return await connect(key("c"), kubeconfig)

    eyes = client or p.client
    surveyor = Surveyor(eyes, reach, clock=p.clock, random=Random(1), keys=sample_keys())
    return await record(eyes, key("c"), p.clock.now(), surveyor, keep_secrets=keep_secrets)


async def machines(p: Plane, *, control_plane: bool) -> list[str]:
    """The names of the Machines, in order."""
    found: list[Any] = list(await p.client.list(MACHINE, namespace=NAMESPACE))
    label = "cluster.x-k8s.io/control-plane"
    return sorted(m.metadata.name for m in found if (label in m.metadata.labels) == control_plane)
