"""`clusterwright up` as a process whose machines are real nodes in containers, and what a story asks of it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from clusterwright import conditions
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.containers import inventory, naming
from clusterwright.engine import Engine
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from real.kube import until

IMAGE = os.environ.get("CLUSTERWRIGHT_NODE_IMAGE", "")
"""A node image in the manner of kindest/node, without a tag: the Kubernetes version is added."""
VERSIONS = os.environ.get("CLUSTERWRIGHT_NODE_VERSIONS", "v1.36.3,v1.36.4").split(",")
"""The two tags of it: the first is upgraded to the second."""
NAMESPACE = "default"


class Nodes:
    """A plane on an engine, started and stopped as its user would."""

    def __init__(self, folder: Path, engine: Engine, load_balancer: str) -> None:
        self.folder, self.engine, self._load_balancer = folder, engine, load_balancer
        self.times: list[tuple[str, float]] = []
        self._process: asyncio.subprocess.Process | None = None
        self._transports: list[HttpTransport] = []

    @property
    def kubeconfig(self) -> Path:
        return self.folder / ".clusterwright" / "kubeconfig"

    async def start(self) -> None:
        words = ["up", "--data-dir", str(self.folder / "data"), "--engine", self.engine.address, "--node-image", IMAGE]
        words += ["--load-balancer-image", self._load_balancer] if self._load_balancer else []
        with (self.folder / "up.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "clusterwright", *words, stdout=log, stderr=log, cwd=self.folder
            )
        await until(self._answers, "the plane answers", within=60)

    async def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, (self.folder / "up.log").read_text()
        try:
            self.client = self.connected(self.kubeconfig)
            return await self.client.raw_get("/readyz") == b"ok"
        except (ApiError, OSError, ValueError):
            return False

    def connected(self, kubeconfig: Path) -> RestClient:
        transport = HttpTransport(Kubeconfig.load([kubeconfig]).resolve(), SystemClock())
        self._transports.append(transport)
        return RestClient(transport, clock=SystemClock(), user_agent="test")

    async def kill(self) -> None:
        """End the plane without giving it time for anything."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
        await inventory.remove(self.engine, await self.containers())
        await inventory.remove_network(self.engine)

    async def containers(self) -> list[inventory.Found]:
        """The containers of the plane, found by their labels."""
        plane = (self.folder / "plane").read_text() if (self.folder / "plane").exists() else ""
        return inventory.of_plane(await inventory.containers(self.engine), plane) if plane else []

    async def cli(self, *words: str) -> str:
        """What a command printed; it must succeed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clusterwright", *words, cwd=self.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        return out.decode()

    async def workload(self, cluster: str) -> RestClient:
        path = self.folder / f"{cluster}.conf"
        path.write_text(await self.cli("get", "kubeconfig", cluster))
        return self.connected(path)

    async def machines(self, cluster: str) -> list[Machine]:
        return list(await self.client.list(Machine, namespace=NAMESPACE, labels={CLUSTER_NAME_LABEL: cluster}))

    async def is_up(self, cluster: str, machines: int, version: str = "") -> bool:
        """Whether the Cluster is Available and has so many Machines, all of them ready and of this version."""
        found = await self.client.find(Cluster, ObjectKey(NAMESPACE, cluster))
        all_of_it = await self.machines(cluster)
        return (
            found is not None
            and conditions.is_true(found.status.conditions, "Available")
            and len(all_of_it) == machines
            and all(conditions.is_true(m.status.conditions, "Ready") for m in all_of_it)
            and (not version or {m.status.node_info.kubelet_version if m.status.node_info else "" for m in all_of_it} == {version})
        )

    async def gone(self, cluster: str) -> bool:
        left = [c for c in await self.containers() if c.cluster.name == cluster]
        return await self.client.find(Cluster, ObjectKey(NAMESPACE, cluster)) is None and not left

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.times.append((step, time.monotonic() - began))

    async def until(self, holds: Callable[[], Awaitable[Any]], what: str, within: float = 420.0) -> None:
        try:
            await until(holds, what, within=within, step=1.0)
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{await self.cli('describe', '--all')}\n{(self.folder / 'up.log').read_text()[-4000:]}"
            ) from error


@asynccontextmanager
async def nodes(folder: Path, engine: Engine, load_balancer: str) -> AsyncIterator[Nodes]:
    """A plane without clusters; it and its containers are gone afterwards."""
    made = Nodes(folder, engine, load_balancer)
    try:
        await made.start()
        (folder / "plane").write_text((await made.client.get(Namespace, ObjectKey("", "kube-system"))).metadata.uid)
        yield made
    finally:
        await made.close()


def container_of(machine: Machine) -> str:
    """The name of a Machine's container."""
    return naming.container_name(ObjectKey(machine.metadata.namespace, machine.spec.infrastructure_ref.name))
