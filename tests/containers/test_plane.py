"""A plane whose machines are containers of the engines of this machine; kubeadm is whatever the bootstrap data runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.conditions import get
from clusterwright.containers import naming
from clusterwright.containers.build import Host
from clusterwright.containers.clusters import DevLoadBalancers
from clusterwright.containers.machines import DevContainers
from clusterwright.engine import Engine
from clusterwright.offline.complaints import Tier, complaint_of
from clusterwright.runtime.clock import SystemClock
from clusterwright.simulation.plane import Plane, plane
from clusterwright.testing import NAMESPACE
from support import engines
from support.engines import HAPROXY_IMAGE, IMAGE, INIT

engines.demand()
WITHIN = 60.0
STAGES = ("ContainerProvisioned", "CGroupsReady", "PreLoadedImagesReady", "BootstrapCompleted")
DATA = "#cloud-config\nruncmd:\n- echo joined\n"


class Story:
    """A cluster of containers, and its plane."""

    def __init__(self, world: Plane, engine: Engine, mark: str) -> None:
        self.plane, self.engine, self.name = world, engine, f"cw-{mark}"
        self.machine = f"{self.name}-w0"

    def cluster(self) -> list[Json]:
        meta = {"name": self.name, "namespace": NAMESPACE}
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": self.name}
        return [
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": {"infrastructureRef": reference}},
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevCluster",
                "metadata": meta,
                "spec": {"backend": {"docker": {}}},
            },
        ]

    def worker(self, *, data: str = DATA, image: str = IMAGE) -> list[Json]:
        meta = {"name": self.machine, "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": self.name}}
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": self.machine}
        spec = {
            "clusterName": self.name,
            "version": "v1.36.1",
            "bootstrap": {"dataSecretName": self.machine},
            "infrastructureRef": reference,
        }
        backend = {"docker": {"customImage": image}}
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"value": data}},
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": meta, "spec": spec},
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine", "metadata": meta, "spec": {"backend": backend}},
        ]

    def pool(self, replicas: int) -> list[Json]:
        meta = {"name": f"{self.name}-pool", "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": self.name}}
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": f"{self.name}-pool"}
        template = {
            "clusterName": self.name,
            "version": "v1.36.1",
            "bootstrap": {"dataSecretName": f"{self.name}-pool"},
            "infrastructureRef": reference,
        }
        spec = {"clusterName": self.name, "replicas": replicas, "template": {"spec": template}}
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"value": DATA}},
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": meta, "spec": spec},
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachinePool",
                "metadata": meta,
                "spec": {"backend": {"docker": {"customImage": IMAGE}}},
            },
        ]

    async def says(self, status: str, reason: str) -> str:
        """What Ready of the machine says, as soon as it has this reason."""

        async def holds() -> bool:
            found = await self.plane.client.find(DevMachine, ObjectKey(NAMESPACE, self.machine))
            ready = get(found.status.conditions, "Ready") if found else None
            return ready is not None and (ready.status, ready.reason) == (status, reason)

        await self.plane.until(holds, f"Ready={status} {reason}", within=WITHIN)
        found = await self.plane.client.get(DevMachine, ObjectKey(NAMESPACE, self.machine))
        return get(found.status.conditions, "Ready").message

    async def containers(self) -> set[str]:
        plane_id = (await self.plane.client.get(Namespace, ObjectKey("", "kube-system"))).metadata.uid
        labels = {naming.PLANE_LABEL: plane_id, naming.CLUSTER_LABEL: self.name}
        return {c["Names"][0].lstrip("/") for c in await self.engine.containers(labels)}


@pytest.fixture(params=engines.names())
async def story(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Story]:
    for kind in (DevContainers, DevLoadBalancers):
        monkeypatch.setattr(kind, "look_when_up", None)  # only the engine's events tell
    async with engines.engine_for_tests(Path(request.param)) as (engine, mark):
        await engines.have_haproxy(engine)
        host = Host(
            engine=Engine(Path(request.param)),
            entrypoint=INIT,
            network=f"cw-test-{mark}",
            load_balancer_image=HAPROXY_IMAGE,
            has_modules=False,
        )
        await engine.create_network(host.network, {engines.TEST_LABEL: mark})
        async with plane(SystemClock(), seed=int(mark, 16), docker=True, host=host) as world:
            yield Story(world, engine, mark)
        for left in await engine.containers({naming.CLUSTER_LABEL: f"cw-{mark}"}):
            await engine.remove(left["Id"])


async def test_a_cluster_of_containers_lives_and_leaves_nothing(story: Story) -> None:
    await story.plane.apply([*story.cluster(), *story.worker()])
    await story.says("True", "Provisioned")
    assert await story.containers() == {f"{story.name}-lb", story.machine}
    await story.plane.until_condition(Machine, story.machine, "InfrastructureReady", "True", within=WITHIN)
    machine = await story.plane.client.get(Machine, ObjectKey(NAMESPACE, story.machine))
    cluster = await story.plane.client.get(Cluster, ObjectKey(NAMESPACE, story.name))
    assert machine.spec.provider_id == f"docker:////{story.machine}"
    assert cluster.spec.control_plane_endpoint.port == 6443

    await story.plane.client.delete(Cluster, cluster.key)
    await story.plane.until_gone(Cluster, story.name, within=WITHIN)
    await story.plane.until_gone(DevCluster, story.name, within=WITHIN)
    assert await story.containers() == set()


async def test_progress_is_reported_and_counts_as_progress(story: Story) -> None:
    await story.plane.apply([*story.cluster(), *story.worker(data="#cloud-config\nruncmd:\n- until test -f /var/go; do sleep 1; done\n")])

    async def told() -> bool:
        machine = await story.plane.client.get(Machine, ObjectKey(NAMESPACE, story.machine))
        said = get(machine.status.conditions, "InfrastructureReady")
        return said is not None and said.message == "Waiting for runcmd 1 (until)"

    await story.plane.until(told, "the Machine says at which step it is", within=WITHIN)
    found = await story.plane.client.get(DevMachine, ObjectKey(NAMESPACE, story.machine))
    ready = get(found.status.conditions, "Ready")
    complaint = complaint_of(ready) if ready is not None else None
    assert complaint is not None
    assert complaint.tier is Tier.WAITING, "it does not count as trouble"


async def test_the_stages_of_a_container_are_conditions(story: Story) -> None:
    seen: dict[str, str] = {}

    async def told(wanted: dict[str, str]) -> bool:
        found = await story.plane.client.find(DevMachine, ObjectKey(NAMESPACE, story.machine))
        for name in STAGES:
            said = get(found.status.conditions, name) if found is not None else None
            seen[name] = said.reason if said is not None else ""
        return seen == wanted

    async def until(*reasons: str) -> None:
        wanted = dict(zip(STAGES, reasons, strict=True))
        await story.plane.until(lambda: told(wanted), f"the stages are {wanted}", within=WITHIN)

    await story.plane.apply([*story.cluster(), *story.worker(data="#cloud-config\nruncmd:\n- until test -f /var/go; do sleep 1; done\n")])
    await until("Provisioned", "Ready", "Ready", "NotCompleted")
    await story.engine.run(story.machine, ["/bin/sh", "-c", "echo > /var/go"])
    await until("Provisioned", "Ready", "Ready", "Completed")
    await story.engine.remove(story.machine)
    await until("NotProvisioned", "Ready", "Ready", "Completed")


async def test_events_of_the_engine_are_seen_at_once(story: Story) -> None:
    await story.plane.apply([*story.cluster(), *story.worker()])
    await story.says("True", "Provisioned")

    await story.engine.kill(story.machine, "KILL")
    assert "has stopped with code 137" in await story.says("False", "Stopped")
    await story.engine.start(story.machine)
    await story.says("True", "Provisioned")
    await story.engine.remove(story.machine)
    assert await story.says("False", "Gone") == f"the container {story.machine} was removed"

    async def told() -> bool:
        machine = await story.plane.client.get(Machine, ObjectKey(NAMESPACE, story.machine))
        return f"the container {story.machine} was removed" in get(machine.status.conditions, "InfrastructureReady").message

    await story.plane.until(told, "the Machine says it, too", within=WITHIN)


async def test_a_pool_orders_machines_that_are_containers(story: Story) -> None:
    await story.plane.apply([*story.cluster(), *story.pool(2)])

    async def ordered() -> bool:
        found = await story.plane.client.list(DevMachine, namespace=NAMESPACE)
        return len([m for m in found if m.spec.backend.docker is not None]) == 2

    await story.plane.until(ordered, "two machines, which boot once the control plane is there", within=WITHIN)
    # their Machines come with the control plane, and so do their containers
    found = await story.plane.client.list(DevMachine, namespace=NAMESPACE)
    assert {m.spec.backend.docker.custom_image for m in found if m.spec.backend.docker} == {IMAGE}
    assert not [m for m in found if get(m.status.conditions, "VirtualMachineProvisioned")], "they are not simulated"


@pytest.mark.parametrize(
    ("worker", "said", "stages"),
    [
        (
            {"data": "#cloud-config\nruncmd:\n- echo 'error execution phase preflight' >&2; exit 9\n"},
            "runcmd 1 (echo) ended with code 9",
            ["Provisioned", "Ready", "Ready", "Failed"],
        ),
        (
            {"image": "localhost:1/nowhere:v1"},
            "localhost:1",
            ["NotProvisioned", "WaitingForContainer", "WaitingForContainer", "WaitingForContainer"],
        ),
    ],
    ids=["bootstrap", "image"],
)
async def test_the_reason_of_a_failed_boot_reaches_the_machine(story: Story, worker: dict[str, str], said: str, stages: list[str]) -> None:
    await story.plane.apply([*story.cluster(), *story.worker(**worker)])

    assert said in await story.says("False", "ProvisioningFailed")
    found = await story.plane.client.get(DevMachine, ObjectKey(NAMESPACE, story.machine))
    assert [get(found.status.conditions, name).reason for name in STAGES] == stages
    await story.plane.client.delete(Cluster, ObjectKey(NAMESPACE, story.name))
    await story.plane.until_gone(Cluster, story.name, within=WITHIN)
    assert await story.containers() == set()


def test_up_reports_the_engine_or_why_there_is_none() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "clusterwright", "up", "--in-memory", "--engine", "unix:///nowhere.sock"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "no container engine at /nowhere.sock: start Docker or Podman" in ended.stderr
    assert "Traceback" not in ended.stderr
