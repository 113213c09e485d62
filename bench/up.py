"""Measure clusters as users make them: `clusterwright up` as a process, over HTTPS, with its data on disk and default keys.

python -m bench.up [--clusters 100] [--shape kubeadm|class] [--workers 1] [--leaders 1] [--seconds 0]

`kubeadm`: each cluster has a KubeadmControlPlane and a MachineDeployment. `class`: each is a Cluster of one ClusterClass. Machines start
within `--seconds`. Printed are the time until all are Available, CPU time and memory of the process for each cluster, the CPU time that
the process uses at rest, the time until a process that is started again on the data is quiet, and the time until all are deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Request
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples

AT_ONCE = 16
"""Requests of the benchmark that are under way at a time."""
TICKS = os.sysconf("SC_CLK_TCK")
REST = 20.0
"""Seconds over which the idle process is measured."""


class Up:
    """One process of `clusterwright up` on a data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> RestClient:
        """Start the process and return a client of its API server."""
        flags = ["--data-dir", str(self.folder / "data"), "--kubeconfig", str(self.folder / "config"), "--log-level", "error"]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clusterwright", "up", *flags, stdout=asyncio.subprocess.PIPE, cwd=self.folder
        )
        assert self.process.stdout is not None
        await self.process.stdout.readline()
        transport = HttpTransport(Kubeconfig.load([self.folder / "config"]).resolve(), SystemClock())
        return RestClient(transport, clock=SystemClock(), user_agent="bench")

    async def stop(self) -> None:
        """End the process as a user does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        await self.process.communicate()

    @property
    def cpu(self) -> float:
        """CPU seconds so far of the process, its threads and the processes that it has started, such as those that make keys."""
        assert self.process is not None
        found = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile; its parent counts its time
            if self.process.pid in (int(path.parent.name), int(fields[1])):
                found += sum(int(field) for field in fields[11:15])
        return found / TICKS

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def objects(name: str, arguments: argparse.Namespace) -> list[Json]:
    """Return one cluster of the shape."""
    if arguments.shape == "class":
        return [samples.topology(name, workers={"md": arguments.workers}, control_plane=arguments.leaders)]
    made = samples.cluster(name, has_control_plane_object=True)
    made += samples.control_plane(name, replicas=arguments.leaders, seconds=arguments.seconds)
    return made + samples.workers(name, f"{name}-md", replicas=arguments.workers, seconds=arguments.seconds)


async def each(names: Sequence[str], work: Callable[[str], Awaitable[Any]]) -> None:
    """Do something for each name, a few at a time."""
    seats = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with seats:
            await work(name)

    await asyncio.gather(*map(one, names))


WANTED = frozenset({"Available", "ControlPlaneMachinesReady", "WorkerMachinesReady"})
"""The conditions of a Cluster that is there with all its Machines."""
CLUSTERS = "/apis/cluster.x-k8s.io/v1beta2/clusters"


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Metadata(msgspec.Struct):
    name: str = ""
    resourceVersion: str = ""  # noqa: N815  # as on the wire


class _Cluster(msgspec.Struct):
    metadata: _Metadata
    status: _Status = _Status()


class _Listed(msgspec.Struct):
    metadata: _Metadata
    items: tuple[_Cluster, ...]


class _Change(msgspec.Struct):
    type: str
    object: _Cluster


class Fleet:
    """The Clusters, followed by a watch as a user's tools do: a benchmark that polls would measure its own lists."""

    def __init__(self, client: RestClient) -> None:
        self.client = client
        self.present: set[str] = set()
        self.available: set[str] = set()

    async def until(self, holds: Callable[[Fleet], bool]) -> float:
        """Wait until the Clusters are as wanted; return the seconds that it took."""
        began = time.perf_counter()
        while not holds(self):
            listed = msgspec.json.decode(await self.client.raw_get(CLUSTERS), type=_Listed)
            self.present, self.available = set(), set()
            for cluster in listed.items:
                self._show("ADDED", cluster)
            if holds(self):
                break
            await self._watch(listed.metadata.resourceVersion, holds)
        return time.perf_counter() - began

    async def _watch(self, revision: str, holds: Callable[[Fleet], bool]) -> None:
        query = (("watch", "true"), ("resourceVersion", revision), ("timeoutSeconds", "300"))
        _, lines = await self.client.transport.stream(Request(method="GET", path=CLUSTERS, query=query, headers=self.client.headers))
        async with aclosing(lines):  # type: ignore[type-var]
            async for line in lines:
                change = msgspec.json.decode(line, type=_Change)
                self._show(change.type, change.object)
                if holds(self):
                    return

    def _show(self, change: str, cluster: _Cluster) -> None:
        name = cluster.metadata.name
        (self.present.discard if change == "DELETED" else self.present.add)(name)
        is_available = change != "DELETED" and {c.type for c in cluster.status.conditions if c.status == "True"} >= WANTED
        (self.available.add if is_available else self.available.discard)(name)


async def main() -> None:
    """Run the benchmark and print one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--shape", choices=("kubeadm", "class"), default="kubeadm")
    parser.add_argument("--leaders", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    arguments = parser.parse_args()
    names, count = [f"c{n:05}" for n in range(arguments.clusters)], arguments.clusters
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder))
        client = await up.start()
        empty, used = up.memory, up.cpu
        if arguments.shape == "class":
            for obj in samples.cluster_class(seconds=arguments.seconds):
                await client.create(obj)
        began = time.perf_counter()

        async def create(name: str) -> None:
            for obj in objects(name, arguments):
                await client.create(obj)

        await each(names, create)
        fleet = Fleet(client)
        await fleet.until(lambda seen: len(seen.available) >= count)
        took = time.perf_counter() - began
        print(f"{count} x ({arguments.leaders}+{arguments.workers}) {arguments.shape}: Available after {took:.1f} s", flush=True)
        await asyncio.sleep(REST / 4)
        print(f"  {(up.cpu - used) / count:.3f} CPU-seconds and {(up.memory - empty) / count:.2f} MB for each cluster", flush=True)
        used = up.cpu
        await asyncio.sleep(REST)
        print(f"  at rest {100 * (up.cpu - used) / REST:.2f} % of a core", flush=True)
        await client.close()
        await up.stop()
        began = time.perf_counter()
        client = await up.start()
        fleet = Fleet(client)
        await fleet.until(lambda seen: len(seen.available) >= count)
        quiet = time.perf_counter() - began
        print(f"  started again: {quiet:.1f} s until all are Available, {up.cpu:.1f} CPU-seconds", flush=True)
        began = time.perf_counter()

        async def delete(name: str) -> None:
            await client.delete(Cluster, ObjectKey("default", name))

        await each(names, delete)
        await fleet.until(lambda seen: not seen.present)
        print(f"  deleted after {time.perf_counter() - began:.1f} s", flush=True)
        await client.close()
        await up.stop()


if __name__ == "__main__":
    asyncio.run(main())
