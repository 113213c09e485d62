"""Controllers in one process, the API server in another: HTTP and TLS between all parts. Both are killed and go on where they were."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import ConfigMap, Node, Pod, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import get, is_true
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig, from_secret
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from support.forks import KILL, program
from support.patience import PATIENCE

CLUSTER = ObjectKey("default", "c1")
FAULT = "inmemory.clusterwright.dev/fault"
KINDS = (Cluster, Machine, KubeadmConfig, DevCluster, DevMachine, Secret, ConfigMap)


class Plane:
    """Two processes on one folder: an API server, and all controllers with the simulated clusters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        # the first start takes any port that is free; later ones come back to it, for the controllers know no other
        port = urlsplit(Kubeconfig.load([self.kubeconfig]).resolve().server).port if self.kubeconfig.exists() else 0
        listen = f"127.0.0.1:{port}"
        server = [
            "--no-controllers",
            "--garbage-collection",
            "--data-dir",
            str(self.folder / "server"),
            "--listen",
            listen,
            "--kubeconfig",
            str(self.kubeconfig),
        ]
        controllers = ["--against", str(self.kubeconfig), "--data-dir", str(self.folder / "cloud")]
        for flags in (server, controllers):
            process = await asyncio.create_subprocess_exec(
                *program(),
                "up",
                *flags,
                stdout=asyncio.subprocess.PIPE,
                cwd=self.folder,
                env=dict(os.environ),
            )
            self._processes.append(process)
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
            assert line.startswith(b"clusterwright"), line

    async def end(self, number: signal.Signals) -> list[int]:
        """Send both a signal and wait for their ends; the exit statuses."""
        processes, self._processes = self._processes, []
        for process in reversed(processes):
            if process.returncode is None:
                process.send_signal(number)
        return [await asyncio.wait_for(process.wait(), PATIENCE) for process in processes]


@asynccontextmanager
async def connected(kubeconfig: bytes | Path) -> AsyncIterator[RestClient]:
    found = Kubeconfig.load([kubeconfig]).resolve() if isinstance(kubeconfig, Path) else from_secret(kubeconfig)
    transport = HttpTransport(found, SystemClock(), os.environ)
    try:
        yield RestClient(transport, clock=SystemClock())
    finally:
        await transport.close()


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until something holds; API servers may be away for a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if await holds():
                return
        except ApiError as error:
            what = f"{what.partition(' (')[0]} ({error})"
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        await asyncio.sleep(0.2)


async def all_available(client: RestClient) -> bool:
    cluster = await client.get(Cluster, CLUSTER)
    machines = await client.list(Machine, namespace="default")
    return len(machines) == 3 and all(is_true(o.status.conditions, "Available") for o in (cluster, *machines))


async def told(client: RestClient, machine: str, type: str, *expected: str) -> bool:
    found = get((await client.get(Machine, ObjectKey("default", machine))).status.conditions, type)
    return found is not None and (found.status, found.reason)[: len(expected)] == expected


async def gone(client: RestClient, kind: Any, name: str) -> bool:
    return await client.find(kind, ObjectKey("default", name)) is None


async def answers(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    plane = Plane(tmp_path)
    yield plane
    await plane.end(KILL)


async def test_controllers_and_api_server_apart_live_through_a_crash_of_both(plane: Plane) -> None:
    await plane.start()
    async with connected(plane.kubeconfig) as client:
        objects = samples.cluster("c1")
        objects += samples.machine("c1", "cp0", is_control_plane=True, seconds=0.1)
        for number in range(2):
            objects += samples.machine("c1", f"w{number}", is_control_plane=False, seconds=0.1)
        for obj in reversed(objects):
            await client.create(obj)
        await until(lambda: all_available(client), "all Machines and their Cluster are Available")
        before = {m.metadata.name: m.metadata.uid for m in await client.list(Machine, namespace="default")}

    await plane.end(KILL)
    await plane.start()

    async with connected(plane.kubeconfig) as client:
        await until(lambda: all_available(client), "after a crash of everything all are Available again")
        assert {m.metadata.name: m.metadata.uid for m in await client.list(Machine, namespace="default")} == before
        cluster = await client.get(Cluster, CLUSTER)
        endpoint = cluster.spec.control_plane_endpoint
        assert endpoint is not None
        secret = await client.get(Secret, ObjectKey("default", "c1-kubeconfig"))

        async with connected(_bytes(secret.data["value"])) as workload:

            async def all_nodes() -> bool:
                return len(await workload.list(Node)) == 3

            await until(all_nodes, "the workload cluster answers over TLS, and has its Nodes")
            await client.patch(DevMachine, ObjectKey("default", "w0"), {"metadata": {"annotations": {FAULT: "node-dies"}}})
            await until(lambda: told(client, "w0", "NodeHealthy", "Unknown"), "a Machine says that its Node has died")

            pod = {
                "metadata": {"name": "web", "namespace": "default", "finalizers": ["example.com/slow"]},
                "spec": {"nodeName": "w1", "containers": [{"name": "c", "image": "x"}]},
            }
            await workload.create({"apiVersion": "v1", "kind": "Pod", **pod})
            for name in ("w0", "w1"):
                await client.delete(Machine, ObjectKey("default", name))
            await until(lambda: told(client, "w1", "Deleting", "True", "DrainingNode"), "a worker is drained")

            async def ended() -> bool:
                found = await workload.find(Pod, ObjectKey("default", "web"))
                return found is not None and found.metadata.deletion_timestamp is not None

            await until(ended, "its Pod is told to end")
            await workload.patch(Pod, ObjectKey("default", "web"), {"metadata": {"finalizers": None}})
            for name in ("w0", "w1"):
                await until(lambda name=name: gone(client, Machine, name), f"{name} is gone")  # type: ignore[misc]
            assert {n.metadata.name for n in await workload.list(Node)} == {"cp0"}

        await client.delete(Cluster, CLUSTER)
        await until(lambda: gone(client, Cluster, "c1"), "the Cluster is gone")

        async def nothing_left() -> bool:
            found = [o for kind in KINDS for o in await client.list(kind)]
            return not [o for o in found if not o.key.namespace.startswith("kube-") and o.key.name != "kube-root-ca.crt"]

        await until(nothing_left, "nothing is left in any namespace")
        assert not await answers(endpoint.host, endpoint.port)
        kept = ("verdicts.sqlite", "clusters.sqlite")
        left = [p.name for p in (plane.folder / "cloud").rglob("*") if p.is_file() and not p.name.startswith(kept)]
        assert left == [], "only the history of verdicts and the store of workload clusters stay"

    assert await plane.end(signal.SIGTERM) == [0, 0]
    with closing(sqlite3.connect(next((plane.folder / "cloud").rglob("clusters.sqlite")))) as store:
        assert store.execute("SELECT count(*) FROM objects").fetchone() == (0,), "no object of a workload cluster is left"


def _bytes(value: Any) -> bytes:
    import base64

    return value if isinstance(value, bytes) else base64.b64decode(value)
