"""A cluster's whole life through a real process, real sockets and kubectl; the process is killed on the way."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from random import Random

import pytest
import yaml

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import ConfigMap, Node, Pod
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.storage import upkeep
from clusterwright.conditions import get, is_true
from clusterwright.inmemory import faults
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from support.forks import KILL, program
from support.patience import PATIENCE

CONTROL_PLANES, WORKERS = ("cp-0", "cp-1", "cp-2"), ("w-0", "w-1", "w-2")
KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
# these wait for another process; nothing is asserted about how long it takes


class Process:
    """`clusterwright up` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.data = folder / "data"
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [*program(), "up", "--data-dir", str(self.data), "--kubeconfig", str(self.kubeconfig)]
        self.kubeconfig.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while not self.kubeconfig.exists():
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(KILL)
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=PATIENCE)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(KILL)
            self._process.wait()

    def cli(self, *arguments: str) -> str:
        command = [*program(), *arguments, "--kubeconfig", str(self.kubeconfig)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def kubectl(kubeconfig: Path, *arguments: str, stdin: bytes = b"") -> str:
    home = kubeconfig.parent
    done = subprocess.run(
        [str(KUBECTL), "--kubeconfig", str(kubeconfig), *arguments],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture
def plane(tmp_path):
    process = Process(tmp_path)
    process.start()
    yield process
    process.end()


class User:
    """Someone with a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self.transport = HttpTransport(Kubeconfig.load([kubeconfig]).resolve(), SystemClock(), os.environ)
        self.client = RestClient(self.transport, clock=SystemClock())

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.transport.close()

    async def until(self, holds, what):
        deadline = time.monotonic() + PATIENCE
        while not await holds():
            assert time.monotonic() < deadline, what
            await asyncio.sleep(0.25)

    async def until_ready(self, name, control_planes, workers):
        async def holds():
            cluster = await self.client.find(Cluster, ObjectKey("default", name))
            if cluster is None or not is_true(cluster.status.conditions, "Available"):
                return False
            leaders, others = cluster.status.control_plane, cluster.status.workers
            return ((leaders and leaders.ready_replicas) or 0, (others and others.ready_replicas) or 0) == (control_planes, workers)

        await self.until(holds, f"{name} is Available with {control_planes}+{workers} ready Machines")

    async def until_gone(self, kind, name):
        async def holds():
            return await self.client.find(kind, ObjectKey("default", name)) is None

        await self.until(holds, f"{kind.__name__} {name} is gone")

    async def until_condition(self, kind, name, type_, status):
        async def holds():
            obj = await self.client.get(kind, ObjectKey("default", name))
            found = get(obj.status.conditions, type_)
            return found is not None and found.status == status

        await self.until(holds, f"{type_} of {name} is {status}")


def manifests(name="c", seconds=0.2):
    objects = samples.cluster(name)
    for machine in CONTROL_PLANES + WORKERS:
        objects += samples.machine(name, f"{name}-{machine}", is_control_plane=machine in CONTROL_PLANES, seconds=seconds)
    return objects


def accepts(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


async def test_a_cluster_lives_through_a_killed_process_and_leaves_nothing_behind(plane, tmp_path):
    workload_config = tmp_path / "workload"
    async with User(plane.kubeconfig) as user:
        for obj in manifests():
            await user.client.create(obj)
        await user.until_ready("c", 3, 3)
        endpoint = (await user.client.get(DevCluster, ObjectKey("default", "c"))).spec.control_plane_endpoint
    workload_config.write_text(plane.cli("get", "kubeconfig", "c"))
    async with User(workload_config) as inside:
        assert {n.metadata.name for n in await inside.client.list(Node)} == {f"c-{m}" for m in CONTROL_PLANES + WORKERS}
        uid = (await inside.client.get(Node, ObjectKey("", "c-cp-0"))).metadata.uid
        mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "default"}, "data": {"a": "b"}}
        await inside.client.create(mine)

    plane.kill()
    assert not accepts(endpoint.port)
    plane.start()

    async with User(plane.kubeconfig) as user, User(workload_config) as inside:
        await user.until(lambda: _answers(endpoint.port), "the simulated cluster answers again at its old port")
        # it goes on where it was, with everything that it held
        assert (await inside.client.get(Node, ObjectKey("", "c-cp-0"))).metadata.uid == uid
        assert (await inside.client.get(ConfigMap, ObjectKey("default", "mine"))).data == {"a": "b"}
        assert (await user.client.get(DevCluster, ObjectKey("default", "c"))).spec.control_plane_endpoint == endpoint

        # a node dies and says so
        await user.client.patch(DevMachine, ObjectKey("default", "c-w-2"), {"metadata": {"annotations": {faults.FAULT: "node-dies"}}})
        await user.until_condition(Machine, "c-w-2", "NodeHealthy", "Unknown")
        dead = await inside.client.get(Node, ObjectKey("", "c-w-2"))
        assert get(dead.status.conditions, "Ready").status == "Unknown"

        # workers are drained and deleted
        held = {"name": "app", "namespace": "default", "finalizers": ["example.com/slow"]}
        app = {"apiVersion": "v1", "kind": "Pod", "metadata": held}
        app["spec"] = {"nodeName": "c-w-0", "containers": [{"name": "c", "image": "i"}]}
        await inside.client.create(app)
        for worker in WORKERS:
            await user.client.delete(Machine, ObjectKey("default", f"c-{worker}"))
        await inside.until(lambda: _is_evicted(inside), "the Pod is evicted")
        assert (await inside.client.get(Node, ObjectKey("", "c-w-0"))).spec.unschedulable
        await inside.client.patch(Pod, ObjectKey("default", "app"), {"metadata": {"finalizers": None}})
        for worker in WORKERS:
            await user.until_gone(Machine, f"c-{worker}")
        assert {n.metadata.name for n in await inside.client.list(Node)} == {f"c-{m}" for m in CONTROL_PLANES}

        # and the cluster goes
        assert "deleted" in await asyncio.to_thread(plane.cli, "delete", "cluster", "c")
        assert not accepts(endpoint.port)
        await user.until(lambda: _nothing_left(user), "nothing is left in any namespace")
    assert plane.stop() == 0
    assert upkeep.check(plane.data / "workload" / "clusters.sqlite").objects == 0
    log = plane.log.read_text()
    assert "Traceback" not in log, log


async def _answers(port):
    return accepts(port)


async def _is_evicted(inside):
    pod = await inside.client.find(Pod, ObjectKey("default", "app"))
    return pod is None or pod.metadata.deletion_timestamp is not None


async def _nothing_left(user):
    kinds = [
        ("cluster.x-k8s.io", "v1beta2", "Machine"),
        ("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig"),
        ("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine"),
        ("infrastructure.cluster.x-k8s.io", "v1beta2", "DevCluster"),
        ("", "v1", "Secret"),
        ("", "v1", "ConfigMap"),
    ]
    left = [obj.key for kind in kinds for obj in await user.client.list(GroupVersionKind(*kind))]
    return not [key for key in left if key.name != "kube-root-ca.crt"]  # that one every namespace has


@needs_kubectl
async def test_two_clusters_made_through_the_command_line_are_each_reached_by_kubectl(plane, tmp_path):
    for name in ("one", "two"):
        objects = samples.cluster(name) + samples.machine(name, f"{name}-cp", is_control_plane=True)
        text = yaml.safe_dump_all(objects)
        kubectl(plane.kubeconfig, "apply", "-f", "-", stdin=text.encode())
    async with User(plane.kubeconfig) as user:
        for name in ("one", "two"):
            await user.until_ready(name, 1, 0)
            config = tmp_path / f"{name}.kubeconfig"
            config.write_text(plane.cli("get", "kubeconfig", name))
            assert kubectl(config, "get", "nodes", "-o", "name").split() == [f"node/{name}-cp"]
            assert f"kube-apiserver-{name}-cp" in kubectl(config, "get", "pods", "-A")
            assert "cluster-admin" in kubectl(config, "get", "clusterrolebindings", "-o", "name")
    listed = kubectl(plane.kubeconfig, "get", "cluster-api")
    assert "cluster.cluster.x-k8s.io/one" in listed
    assert "machine.cluster.x-k8s.io/two-cp" in listed
    tree = plane.cli("describe", "cluster", "one")
    assert "Machine/one-cp" in tree
    assert tree.rstrip().splitlines()[-1] == plane.cli("explain", "one").splitlines()[0]
    assert "one" in plane.cli("get", "clusters")
    assert plane.stop() == 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_a_process_killed_again_and_again_brings_its_cluster_up_and_away(plane, seed):
    random = Random(seed)
    async with User(plane.kubeconfig) as user:
        for obj in manifests(seconds=0.3):
            await user.client.create(obj)
    for _ in range(6):
        await asyncio.sleep(random.uniform(0.1, 1.2))
        plane.kill()
        plane.start()
    async with User(plane.kubeconfig) as user:
        await user.until_ready("c", 3, 3)
        await user.client.delete(Cluster, ObjectKey("default", "c"))
    for _ in range(3):
        await asyncio.sleep(random.uniform(0.05, 0.4))
        plane.kill()
        plane.start()
    async with User(plane.kubeconfig) as user:
        await user.until_gone(Cluster, "c")
        await user.until(lambda: _nothing_left(user), "nothing is left in any namespace")
    assert plane.stop() == 0
    assert upkeep.check(plane.data / "workload" / "clusters.sqlite").objects == 0
