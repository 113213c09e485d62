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
from pathlib import Path
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.conditions import is_true
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


async def until(client: RestClient, holds: Callable[[Sequence[Cluster]], bool]) -> float:
    """Wait until the Clusters are as wanted; return the seconds that it took."""
    began = time.perf_counter()
    while not holds(await client.list(Cluster)):  # noqa: ASYNC110  # the benchmark is a client that polls
        await asyncio.sleep(0.25)
    return time.perf_counter() - began


def are_available(count: int) -> Callable[[Sequence[Cluster]], bool]:
    """Return whether so many Clusters are Available with all their Machines ready."""
    wanted = ("Available", "ControlPlaneMachinesReady", "WorkerMachinesReady")
    return lambda found: sum(all(is_true(c.status.conditions, t) for t in wanted) for c in found) >= count


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
        await until(client, are_available(count))
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
        await until(client, are_available(count))
        quiet = time.perf_counter() - began
        print(f"  started again: {quiet:.1f} s until all are Available, {up.cpu:.1f} CPU-seconds", flush=True)
        began = time.perf_counter()

        async def delete(name: str) -> None:
            await client.delete(Cluster, ObjectKey("default", name))

        await each(names, delete)
        await until(client, lambda found: not found)
        print(f"  deleted after {time.perf_counter() - began:.1f} s", flush=True)
        await client.close()
        await up.stop()


if __name__ == "__main__":
    asyncio.run(main())
