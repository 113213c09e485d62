"""A management plane with simulated infrastructure on the running event loop: what `clusterwright up` runs, without its sockets.

    async with plane(LoopClock(START)) as p:
        await p.apply(samples.cluster("c"))
        await p.until_available("c")

In a `VirtualLoop` it takes no time, and always the same steps. With a listener and a real loop its clusters are on the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from clusterwright import admission, app, conditions
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.crds import crds, embedded_crds
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.meta import Condition, Json, ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.admission.webhooks import Webhooks
from clusterwright.apiserver.auth.rbac import bootstrap_roles
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.containers.build import Host
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.cluster import Listener, SimulatedCluster
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.keys import FixedKeySource, KeySource
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.runtimesdk.client import Post
from clusterwright.topology.extensions import Extensions
from clusterwright.webhooks import embedded
from clusterwright.workload.clusters import Reach

NAMESPACE = "default"
_ASKED_ANYWAY = 10.0
_ALWAYS_THERE = frozenset({"namespaces", "events", "customresourcedefinitions.apiextensions.k8s.io"})


class Overdue(AssertionError):
    """A condition did not hold in time."""


class Plane:
    """The parts of a plane, and a user's actions and checks. `client` goes straight to the API server."""

    def __init__(self, server: ApiServer, cloud: Cloud, clock: Clock, manager: Manager | None = None) -> None:
        self.server = server
        self.cloud = cloud
        self.clock = clock
        self.manager = manager
        self.client: Client = RestClient(InProcessTransport(server), clock=clock)

    async def apply(self, objects: Iterable[Json]) -> None:
        """Create all of them."""
        for obj in objects:
            await self.client.create(obj)

    async def annotate(self, kind: Any, name: str, annotations: dict[str, str | None]) -> None:
        """Set or (None) remove annotations."""
        await self.client.patch(kind, ObjectKey(NAMESPACE, name), {"metadata": {"annotations": annotations}})

    async def cluster(self, name: str) -> Cluster:
        """Return the Cluster."""
        return await self.client.get(Cluster, ObjectKey(NAMESPACE, name))

    async def machine(self, name: str) -> Machine:
        """Return the Machine."""
        return await self.client.get(Machine, ObjectKey(NAMESPACE, name))

    async def dev_machine(self, name: str) -> DevMachine:
        """Return the DevMachine."""
        return await self.client.get(DevMachine, ObjectKey(NAMESPACE, name))

    async def dev_cluster(self, name: str) -> DevCluster:
        """Return the DevCluster."""
        return await self.client.get(DevCluster, ObjectKey(NAMESPACE, name))

    def workload(self, name: str) -> SimulatedCluster:
        """Return the simulated cluster of a Cluster."""
        found = self.cloud.find(ObjectKey(NAMESPACE, name))
        assert found is not None, f"the simulated cluster {name} does not exist"
        return found

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, *, within: float = 60.0, step: float = 0.25) -> None:
        """Wait until a predicate holds; raises Overdue if it does not in time.

        It is evaluated every `step` seconds if anything was written meanwhile, here or in a simulated cluster; else less often.
        """
        deadline = self.clock.monotonic() + within
        seen: object = None
        due = 0.0
        while True:
            now, written = self.clock.monotonic(), (self.server.store.revision, self.cloud.revisions())
            if written != seen or now >= min(due, deadline):
                if await holds():
                    return
                seen, due = written, now + _ASKED_ANYWAY
            if now >= deadline:
                raise Overdue(f"not reached within {within:g} s: {what}")
            await self.clock.sleep(step)

    async def until_condition(self, kind: Any, name: str, type_: str, status: str, *, within: float = 60.0) -> Condition:
        """Wait for a condition to have a status."""
        key = ObjectKey(NAMESPACE, name)

        async def holds() -> bool:
            found = await self.condition(kind, name, type_)
            return found is not None and found.status == status

        try:
            await self.until(holds, f"{type_}={status} of {kind.__name__} {name}", within=within)
        except Overdue as error:
            obj = await self.client.find(kind, key)
            said = "is gone" if obj is None else "\n".join(f"{c.type}={c.status} {c.reason} {c.message}" for c in obj.status.conditions)
            raise Overdue(f"{error}; it says:\n{said}") from None
        found = await self.condition(kind, name, type_)
        assert found is not None
        return found

    async def condition(self, kind: Any, name: str, type_: str) -> Condition | None:
        """Return a condition of an object, if there is one."""
        obj = await self.client.find(kind, ObjectKey(NAMESPACE, name))
        return None if obj is None else conditions.get(obj.status.conditions, type_)

    async def until_available(self, name: str, *, control_plane: int = 1, workers: int = 0, within: float = 120.0) -> None:
        """Wait until a Cluster is Available and all of its Machines are ready."""

        async def holds() -> bool:
            cluster = await self.client.find(Cluster, ObjectKey(NAMESPACE, name))
            if cluster is None or not conditions.is_true(cluster.status.conditions, "Available"):
                return False
            leaders, others = cluster.status.control_plane, cluster.status.workers
            counts = (leaders and leaders.ready_replicas) or 0, (others and others.ready_replicas) or 0
            return counts == (control_plane, workers)

        await self.until(holds, f"Cluster {name} is Available with {control_plane}+{workers} ready Machines", within=within)

    async def until_gone(self, kind: Any, name: str, *, within: float = 120.0) -> None:
        """Wait until an object does not exist."""

        async def holds() -> bool:
            return await self.client.find(kind, ObjectKey(NAMESPACE, name)) is None

        await self.until(holds, f"{kind.__name__} {name} is gone", within=within)

    def leftovers(self) -> dict[str, list[str]]:
        """Return objects that a cluster may have left behind, by table."""
        return {
            name: sorted(table.objects)
            for name, table in self.server.store.tables.items()
            if table.objects and name not in _ALWAYS_THERE and "rbac.authorization.k8s.io" not in name
        }


def management_server(
    clock: Clock, random: Random, features: Mapping[str, bool] | None = None, fill: Callable[[ApiServer], None] | None = None
) -> ApiServer:
    """Return an API server with our kinds and its own controllers, like that of `up`; nothing is stored. With `features`, admission too.

    `fill` loads objects before its controllers start.
    """
    links = admission.chain(features) if features is not None else ()
    server = ApiServer(now=clock.now, random=random, admission=links, converters=embedded.converters)
    prepare(server, fill)
    return server


def prepare(server: ApiServer, fill: Callable[[ApiServer], None] | None = None) -> None:
    """Set up an API server as `up` does. `fill` loads objects before its controllers start."""
    server.admission.append(Webhooks(server))
    server.ensure_namespaces()
    server.ensure(bootstrap_roles())
    server.ensure([*crds(), *embedded_crds()], update=True)
    if fill is not None:
        fill(server)
    server.start_controllers()


@asynccontextmanager
async def plane(
    clock: Clock,
    *,
    seed: int = 1,
    keys: KeySource | None = None,
    listener: Listener | None = None,
    data_dir: Path | None = None,
    server: ApiServer | None = None,
    cloud: Cloud | None = None,
    docker: bool = False,
    host: Host | None = None,
    transport: Transport | None = None,
    features: Mapping[str, bool] = EMBEDDED_FEATURES,
    extensions: Extensions | None = None,
    post: Post | None = None,
    reach: Reach | None = None,
    setup: Callable[[Manager], None] | None = None,
) -> AsyncIterator[Plane]:
    """Yield a plane with running controllers; everything ends with the context, except a given `server` or `cloud`.

    With `docker` it acts on the Docker kinds and backends, as `up` does; with a `host` they are containers of its engine. `setup` gets the
    manager before it runs. `reach` connects to workload clusters that are not simulated.
    """
    random = Random(seed)
    keys = keys or FixedKeySource(seed)
    own_server = server or management_server(clock, random)
    own_cloud = cloud or Cloud(now=clock.now, random=random, keys=keys, listener=listener, data_dir=data_dir)
    manager = app.build_manager(
        transport or InProcessTransport(own_server),
        clock=clock,
        random=random,
        keys=keys,
        cloud=own_cloud,
        docker=docker,
        ipam=True,
        host=host,
        features=features,
        extensions=extensions,
        post=post,
        reach=reach,
    )
    own_server.report = manager.report
    if setup is not None:
        setup(manager)
    running = asyncio.create_task(manager.run(), name="manager")
    try:
        yield Plane(own_server, own_cloud, clock, manager)
    finally:
        manager.stop()
        await asyncio.wait([running])
        if cloud is None:
            await own_cloud.close()
        await own_server.callouts.close()  # of a server that outlives this, too: it opens others
        if server is None:
            own_server.close()
        running.result()
