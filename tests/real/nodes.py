"""`clusterwright up` as a process whose machines are real nodes in containers, and what a story asks of it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterwright import conditions
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Namespace, Pod
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.api.yamlreader import load_all
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
"""The tags of it, oldest first: of the last two, the first is upgraded to the second; a third one before them is a minor version older."""
OLDEST, FROM, TO = VERSIONS[0], VERSIONS[-2], VERSIONS[-1]
NAMESPACE = "default"
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Step:
    """How long a step took, how much CPU the plane needed for it, and how busy the machine was at its end."""

    name: str
    seconds: float
    cpu: float
    load: float

    def __str__(self) -> str:
        return f"| {self.name} | {self.seconds:.0f} s | {self.cpu:.1f} CPU-s | load {self.load:.0f} |"


class Nodes:
    """A plane on an engine, started and stopped as its user would."""

    def __init__(self, folder: Path, engine: Engine, load_balancer: str, flags: Sequence[str] = ()) -> None:
        self.folder, self.engine, self._load_balancer, self._flags = folder, engine, load_balancer, flags
        self.steps: list[Step] = []
        self._process: asyncio.subprocess.Process | None = None
        self._spent = 0.0
        self._transports: list[HttpTransport] = []

    @property
    def kubeconfig(self) -> Path:
        return self.folder / ".clusterwright" / "kubeconfig"

    async def start(self) -> None:
        words = ["up", "--data-dir", str(self.folder / "data"), "--engine", self.engine.address, "--node-image", IMAGE, *self._flags]
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
        self._spent = self.cpu()
        self._process.kill()
        await self._process.wait()

    def cpu(self) -> float:
        """Return the CPU seconds of the plane, with those before it was killed."""
        if self._process is None or self._process.returncode is not None:
            return self._spent
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return self._spent + (int(fields[11]) + int(fields[12])) / TICK

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

    async def create(self, name: str, control_plane: int, workers: int, *flags: str, version: str = FROM) -> str:
        """Create a cluster; with `--dry-run` only return its objects as YAML."""
        counts = ("--control-plane-machines", str(control_plane), "--worker-machines", str(workers))
        return await self.cli("create", "cluster", name, "--infrastructure", "docker", "--kubernetes-version", version, *counts, *flags)

    async def objects(self, name: str) -> list[Json]:
        """Return the objects of a cluster of 1 + 1, to be changed and created by the caller."""
        return [obj for obj in load_all(await self.create(name, 1, 1, "--dry-run"), trusted=True) if obj]

    async def delete(self, name: str) -> None:
        await self.client.delete(Cluster, ObjectKey(NAMESPACE, name))
        await self.until(lambda: self.gone(name), f"{name} is gone, and so are its containers")

    async def workload(self, cluster: str) -> RestClient:
        path = self.folder / f"{cluster}.conf"
        path.write_text(await self.cli("get", "kubeconfig", cluster))
        return self.connected(path)

    async def machines(self, cluster: str) -> list[Machine]:
        return list(await self.client.list(Machine, namespace=NAMESPACE, labels={CLUSTER_NAME_LABEL: cluster}))

    async def workers(self, cluster: str) -> list[Machine]:
        return [m for m in await self.machines(cluster) if CONTROL_PLANE_LABEL not in m.metadata.labels]

    async def leaders(self, cluster: str) -> list[Machine]:
        """The Machines of the control plane."""
        return [m for m in await self.machines(cluster) if CONTROL_PLANE_LABEL in m.metadata.labels]

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

    async def etcd_members(self, cluster: str) -> list[str]:
        """Return the names of the members that etcd itself lists, as `record` asks it for them."""
        bundle = load_all(await self.cli("record", cluster), trusted=True)
        (seen,) = (obj for obj in bundle if obj and obj["kind"] == "Observation")
        (workload,) = seen["workloadClusters"].values()
        return sorted(str(member["name"]) for member in workload.get("etcdMembers", ()))

    async def gone(self, cluster: str) -> bool:
        left = [c for c in await self.containers() if c.cluster.name == cluster]
        return await self.client.find(Cluster, ObjectKey(NAMESPACE, cluster)) is None and not left

    async def left(self) -> list[str]:
        """Names of containers and volumes of the plane that the engine still has."""
        volumes = await self.engine.volumes({naming.PLANE_LABEL: (self.folder / "plane").read_text()})
        return [c.name for c in await self.containers()] + [str(v["Name"]) for v in volumes]

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        began, spent = time.monotonic(), self.cpu()
        yield
        self.steps.append(Step(step, time.monotonic() - began, self.cpu() - spent, os.getloadavg()[0]))

    async def until(self, holds: Callable[[], Awaitable[Any]], what: str, within: float = 420.0) -> None:
        try:
            await until(holds, what, within=within, step=1.0)
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{await self.cli('describe', '--all')}\n{(self.folder / 'up.log').read_text()[-4000:]}"
            ) from error


@asynccontextmanager
async def nodes(folder: Path, engine: Engine, load_balancer: str, flags: Sequence[str] = ()) -> AsyncIterator[Nodes]:
    """A plane without clusters; it and its containers are gone afterwards."""
    made = Nodes(folder, engine, load_balancer, flags)
    try:
        await made.start()
        (folder / "plane").write_text((await made.client.get(Namespace, ObjectKey("", "kube-system"))).metadata.uid)
        yield made
    finally:
        await made.close()


def container_of(machine: Machine) -> str:
    """The name of a Machine's container."""
    return naming.container_name(ObjectKey(machine.metadata.namespace, machine.spec.infrastructure_ref.name))


async def ready_pods(workload: RestClient, labels: dict[str, str], namespace: str = "default") -> int:
    pods = await workload.list(Pod, namespace=namespace, labels=labels)
    return sum(any(c.type == "Ready" and c.status == "True" for c in p.status.conditions) for p in pods)
