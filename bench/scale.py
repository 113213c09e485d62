"""How fast and how thrifty whole clusters come and go: `python -m bench.scale`.

Everything runs in one process, as `clusterwright up` runs it; the simulated durations are zero, so that what is left is the time
that our controllers and API servers add.

1. 10 clusters of 1 control-plane Machine and a MachineDeployment of 3 workers: until all are Available, and until all are gone again.
2. The same with a KubeadmControlPlane of 3 and a MachineDeployment of 2 (`--ten`: only these two).
3. 200 clusters (`--clusters N`) of 1+1: until all are Available; memory at rest.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from clusterwright import app
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime import garbage
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import PooledKeySource
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.plane import management_server


class CountingTransport(InProcessTransport):
    """The controllers' way to the management API server; counts what goes over it."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.counts: dict[str, int] = {}
        self.writes = 0
        self.reads = 0

    async def send(self, request: Request):  # type: ignore[no-untyped-def]
        if request.method == "GET":
            self.reads += 1
        else:
            self.writes += 1
        what = f"{request.method:6} {_kind(request.path)}"
        self.counts[what] = self.counts.get(what, 0) + 1
        return await super().send(request)


def _kind(path: str) -> str:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join([*parts[:1], *parts[2:]]) or path


@dataclass
class Plane:
    client: RestClient
    transport: CountingTransport
    cloud: Cloud
    manager: Manager
    keys: PooledKeySource


@asynccontextmanager
async def plane() -> AsyncIterator[Plane]:
    """A management plane with all controllers, and workload clusters behind real TLS listeners."""
    clock, random = SystemClock(), Random(1)
    server = management_server(clock, random, EMBEDDED_FEATURES)  # with admission and conversion, as `up` has it
    keys = PooledKeySource()
    cloud = Cloud(now=clock.now, random=random, keys=keys, listener=TlsListener())
    transport = CountingTransport(server)
    manager = app.build_manager(transport, clock=clock, random=random, keys=keys, cloud=cloud, features=EMBEDDED_FEATURES)
    running = asyncio.create_task(manager.run())
    while not manager.is_ready:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    garbage.settle()  # as `up` does
    try:
        yield Plane(RestClient(InProcessTransport(server), clock=clock), transport, cloud, manager, keys)
    finally:
        manager.stop()
        await running
        await cloud.close()
        await keys.close()
        server.close()


@dataclass(frozen=True)
class Size:
    """The number of Machines of a cluster and the kind of their owner: without an owner they stand alone."""

    workers: int
    leaders: int = 1
    deployment: bool = False
    control_plane: bool = False

    def __str__(self) -> str:
        return f"{self.leaders}+{self.workers}"

    def objects(self, name: str) -> list[Json]:
        made = samples.cluster(name, has_control_plane_object=self.control_plane)
        if self.control_plane:
            made += samples.control_plane(name, replicas=self.leaders)
        else:
            made += samples.machine(name, f"{name}-cp", is_control_plane=True)
        if self.deployment:
            return made + samples.workers(name, f"{name}-w", replicas=self.workers)
        return made + [o for n in range(self.workers) for o in samples.machine(name, f"{name}-w{n}", is_control_plane=False)]


async def create(plane: Plane, names: Sequence[str], size: Size) -> None:
    for name in names:
        for obj in size.objects(name):
            await plane.client.create(obj)


async def until_available(plane: Plane, names: Sequence[str], size: Size, within: float) -> None:
    """All Clusters Available with every Machine ready."""
    waiting = set(names)
    deadline = time.monotonic() + within
    while waiting:
        for cluster in await plane.client.list(Cluster):
            ready = [(counted and counted.ready_replicas) or 0 for counted in (cluster.status.control_plane, cluster.status.workers)]
            if is_true(cluster.status.conditions, "Available") and ready == [size.leaders, size.workers]:
                waiting.discard(cluster.metadata.name)
        if time.monotonic() > deadline:
            await _tell(plane, min(waiting))
            raise SystemExit(f"{len(waiting)} of {len(names)} clusters are not Available after {within:g} s")
        await asyncio.sleep(max(0.02, len(names) / 500))  # looking costs as much as there is to see


async def _tell(plane: Plane, name: str) -> None:
    cluster = await plane.client.get(Cluster, ObjectKey("default", name))
    for condition in cluster.status.conditions:
        print(f"  {name} {condition.type} {condition.status} {condition.reason} {condition.message[:200]}")
    for machine in await plane.client.list(Machine, labels={"cluster.x-k8s.io/cluster-name": name}):
        print(f"  {machine.metadata.name} {machine.status.phase}")


async def until_gone(plane: Plane, names: Sequence[str], within: float) -> None:
    deadline = time.monotonic() + within
    for name in names:
        await plane.client.delete(Cluster, ObjectKey("default", name))
    while left := await plane.client.list(Cluster):
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(left)} of {len(names)} clusters are not gone after {within:g} s")
        await asyncio.sleep(0.02)


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss() -> float:
    """Resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def ten(show: bool, size: Size, most_writes: int) -> bool:
    names = [f"c{n}" for n in range(10)]
    async with plane() as p:
        started, used = time.monotonic(), cpu()
        await create(p, names, size)
        await until_available(p, names, size, 120)
        up, up_cpu = time.monotonic() - started, cpu() - used
        at_once, reads = p.transport.writes / 10, p.transport.reads / 10
        await asyncio.sleep(2)  # reports that passes left for a moment
        writes, begun = p.transport.writes / 10, p.transport.writes
        if show:
            for what, count in sorted(p.transport.counts.items(), key=lambda item: -item[1]):
                print(f"    {count / 10:6.1f} {what}")
        p.transport.counts.clear()
        print(f"10 clusters of {size}: Available after {up:.2f} s, CPU {up_cpu:.2f} s (target 10)")
        print(f"  per cluster: {at_once:.1f} API writes, {writes:.1f} until all is told (target {most_writes}), {reads:.1f} live reads")
        started, used = time.monotonic(), cpu()
        await until_gone(p, names, 120)
        gone = time.monotonic() - started
        deletion_writes = (p.transport.writes - begun) / 10
        print(f"  deleted after {gone:.2f} s (target 2), CPU {cpu() - used:.2f} s, {deletion_writes:.1f} API writes per cluster")
        if show:
            for what, count in sorted(p.transport.counts.items(), key=lambda item: -item[1]):
                print(f"    {count / 10:6.1f} {what}")
    return up_cpu <= 10 and writes <= most_writes and gone <= 2


async def many(count: int) -> bool:
    names, size = [f"c{n:03}" for n in range(count)], Size(workers=1)
    async with plane() as p:
        await asyncio.sleep(0)
        gc.collect()
        before = rss()
        started, used = time.monotonic(), cpu()
        await create(p, names, size)
        created = time.monotonic() - started
        await until_available(p, names, size, 600)
        up, up_cpu = time.monotonic() - started, cpu() - used
        writes = p.transport.writes / count
        await asyncio.sleep(2)
        gc.collect()
        per_cluster = (rss() - before) / count
        print(f"{count} clusters of 1+1: Available after {up:.2f} s (applying them took {created:.2f} s), CPU {up_cpu:.2f} s")
        print(f"  durations 0 s, so added by us {up:.2f} s in all, {1000 * up / count:.0f} ms per cluster")
        print(f"  per cluster: {writes:.1f} API writes, {1000 * up_cpu / count:.0f} ms CPU, {per_cluster:.2f} MB at rest (target 1.5)")
        print(f"  RSS {rss():.0f} MB, of which before the first cluster {before:.0f} MB")
        used, started = cpu(), time.monotonic()
        await asyncio.sleep(10)
        print(f"  at rest: {100 * (cpu() - used) / (time.monotonic() - started):.1f} % of one core")
        started, used = time.monotonic(), cpu()
        await until_gone(p, names, 600)
        print(f"  deleted after {time.monotonic() - started:.2f} s, CPU {cpu() - used:.2f} s")
    return per_cluster <= 1.5


def profiled(run: Callable[[], object], path: str) -> object:
    import cProfile

    profile = cProfile.Profile(time.process_time)  # on a machine that others use, too
    try:
        return profile.runcall(run)
    finally:
        profile.dump_stats(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ten", action="store_true", help="only the first two parts")
    parser.add_argument("--clusters", type=int, help="only the third part, with so many clusters (all parts: 200)")
    parser.add_argument("--requests", action="store_true", help="show which requests the controllers make")
    parser.add_argument("--profile", metavar="FILE", help="write cProfile data")
    arguments = parser.parse_args()

    def run() -> bool:
        good = True
        if arguments.ten or not arguments.clusters:
            good = asyncio.run(ten(arguments.requests, Size(3, deployment=True), 125))
            good = asyncio.run(ten(arguments.requests, Size(2, 3, deployment=True, control_plane=True), 175)) and good
        return (True if arguments.ten and not arguments.clusters else asyncio.run(many(arguments.clusters or 200))) and good

    good = profiled(run, arguments.profile) if arguments.profile else run()
    print("all targets met" if good else "NOT all targets met")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
