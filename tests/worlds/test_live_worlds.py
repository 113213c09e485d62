"""Trouble made in a whole plane of our own, in virtual time: recorded as a user would, explained as a user would ask."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.record import record
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from support.moments import Moment, moment

Json = dict[str, Any]
NAMESPACE = "default"
CLUSTER = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster")
MACHINE = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
DEV_MACHINE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine")
DEV_CLUSTER = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevCluster")
PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
SECRET = GroupVersionKind("", "v1", "Secret")
TEMPLATE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate")


def standalone() -> list[Json]:
    return [
        *samples.cluster("c"),
        *samples.machine("c", "cp-0", is_control_plane=True),
        *samples.machine("c", "w-0", is_control_plane=False),
    ]


def managed(replicas: int = 1) -> list[Json]:
    worker = samples.machine("c", "w-0", is_control_plane=False)
    return [*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=replicas), *worker]


def never(objects: list[Json], kind: str, name: str, stage: str) -> list[Json]:
    for obj in objects:
        if obj["kind"] == kind and obj["metadata"]["name"] == name:
            spec = obj["spec"]["template"]["spec"] if kind.endswith("Template") else obj["spec"]
            spec["backend"]["inMemory"][stage] = {"provisioning": {"startupDuration": "100000s"}}
    return objects


def without(objects: list[Json], kind: str, name: str) -> list[Json]:
    return [o for o in objects if (o["kind"], o["metadata"]["name"]) != (kind, name)]


def paused(objects: list[Json], kind: str, name: str) -> list[Json]:
    for obj in objects:
        if (obj["kind"], obj["metadata"]["name"]) == (kind, name):
            obj["metadata"] = {**obj["metadata"], "annotations": {"cluster.x-k8s.io/paused": ""}}
    return objects


Trouble = Callable[[Plane], Awaitable[str | None]]
Objects = Callable[[], list[Json]]
BEGINNING: dict[Trouble, Objects] = {}


def begins_with(objects: Objects) -> Callable[[Trouble], Trouble]:
    """Trouble in a cluster that is up."""

    def noted(trouble: Trouble) -> Trouble:
        BEGINNING[trouble] = objects
        return trouble

    return noted


@asynccontextmanager
async def up(objects: Objects) -> AsyncIterator[Plane]:
    async with plane(LoopClock(START)) as p:
        await p.apply(objects())
        await p.until_available("c", workers=1, within=300)
        yield p


@pytest.fixture(scope="module")
def settled() -> Iterator[dict[Objects, Moment[Plane]]]:
    with moment(lambda: up(standalone)) as one, moment(lambda: up(managed)) as other:
        yield {standalone: one, managed: other}


async def hold(p: Plane, kind: GroupVersionKind, name: str) -> None:
    found = await p.client.get(kind, ObjectKey(NAMESPACE, name))
    await p.client.patch(kind, found.key, {"metadata": {"finalizers": [*found.metadata.finalizers, "example.com/keep"]}})


# Each makes trouble and says who is at its root.


@begins_with(standalone)
async def healthy(p: Plane) -> None:
    """Nothing is done."""


@begins_with(managed)
async def healthy_managed(p: Plane) -> None:
    """Nothing is done."""


async def vm_never(p: Plane) -> str:
    await p.apply(never(standalone(), "DevMachine", "cp-0", "vm"))
    return "DevMachine/cp-0"


async def api_server_never(p: Plane) -> str:
    await p.apply(never(standalone(), "DevMachine", "cp-0", "apiServer"))
    return "DevMachine/cp-0"


async def worker_node_never(p: Plane) -> str:
    await p.apply(never(standalone(), "DevMachine", "w-0", "node"))
    return "DevMachine/w-0"


async def managed_vm_never(p: Plane) -> str:
    await p.apply(never(managed(), "DevMachineTemplate", "c-control-plane", "vm"))
    return "DevMachine/c-*"


async def infrastructure_missing(p: Plane) -> str:
    await p.apply(without(standalone(), "DevCluster", "c"))
    return "DevCluster/c"


async def control_plane_missing(p: Plane) -> str:
    await p.apply(without(managed(), "KubeadmControlPlane", "c"))
    return "KubeadmControlPlane/c"


async def template_missing(p: Plane) -> str:
    await p.apply(without(managed(), "DevMachineTemplate", "c-control-plane"))
    return "DevMachineTemplate/c-control-plane"


async def bootstrap_config_missing(p: Plane) -> str:
    await p.apply(without(standalone(), "KubeadmConfig", "w-0"))
    return "KubeadmConfig/w-0"


async def machine_paused(p: Plane) -> str:
    await p.apply(paused(standalone(), "Machine", "w-0"))
    return "Machine/w-0"


async def infrastructure_paused(p: Plane) -> str:
    await p.apply(paused(standalone(), "DevCluster", "c"))
    return "DevCluster/c"


async def control_plane_paused(p: Plane) -> str:
    await p.apply(paused(managed(), "KubeadmControlPlane", "c"))
    return "KubeadmControlPlane/c"


@begins_with(standalone)
async def deletion_held_by_worker(p: Plane) -> str:
    await hold(p, DEV_MACHINE, "w-0")
    await p.client.delete(CLUSTER, ObjectKey(NAMESPACE, "c"))
    return "DevMachine/w-0"


@begins_with(standalone)
async def deletion_held_by_infrastructure(p: Plane) -> str:
    await hold(p, DEV_CLUSTER, "c")
    await p.client.delete(CLUSTER, ObjectKey(NAMESPACE, "c"))
    return "DevCluster/c"


@begins_with(managed)
async def deletion_held_by_control_plane(p: Plane) -> str:
    await hold(p, PLANE, "c")
    await p.client.delete(CLUSTER, ObjectKey(NAMESPACE, "c"))
    return "KubeadmControlPlane/c"


@begins_with(standalone)
async def machine_held_by_hook(p: Plane) -> str:
    await p.annotate(MACHINE, "w-0", {"pre-drain.delete.hook.machine.cluster.x-k8s.io/backup": "me"})
    await p.client.delete(MACHINE, ObjectKey(NAMESPACE, "w-0"))
    return "Machine/w-0"


@begins_with(standalone)
async def infrastructure_machine_deleted(p: Plane) -> str:
    await p.client.delete(DEV_MACHINE, ObjectKey(NAMESPACE, "w-0"))
    return "DevMachine/w-0"


@begins_with(managed)
async def template_deleted_before_scaling(p: Plane) -> str:
    await p.client.delete(TEMPLATE, ObjectKey(NAMESPACE, "c-control-plane"))
    await p.client.patch(PLANE, ObjectKey(NAMESPACE, "c"), {"spec": {"replicas": 3}})
    return "DevMachineTemplate/c-control-plane"


@begins_with(managed)
async def upgrade_stuck(p: Plane) -> str:
    slow = never(samples.control_plane("c", replicas=1)[:1], "DevMachineTemplate", "c-control-plane", "node")
    slow[0]["metadata"]["name"] = "slow"
    await p.apply(slow)
    spec = {"version": "v1.35.0", "machineTemplate": {"spec": {"infrastructureRef": {"name": "slow"}}}}
    await p.client.patch(PLANE, ObjectKey(NAMESPACE, "c"), {"spec": spec})
    return "DevMachine/c-*"


@begins_with(managed)
async def kubeconfig_overwritten(p: Plane) -> str:
    await p.client.patch(SECRET, ObjectKey(NAMESPACE, "c-kubeconfig"), {"data": {"value": "Z2FyYmFnZQ=="}})
    return "Secret/c-kubeconfig"


@begins_with(managed)
async def authority_deleted(p: Plane) -> str:
    await p.client.delete(SECRET, ObjectKey(NAMESPACE, "c-ca"))
    return "Secret/c-ca"


async def file_from_nowhere(p: Plane) -> str:
    objects = standalone()
    config = next(o for o in objects if o["kind"] == "KubeadmConfig" and o["metadata"]["name"] == "w-0")
    config["spec"]["files"] = [{"path": "/x", "contentFrom": {"secret": {"name": "nowhere", "key": "k"}}}]
    await p.apply(objects)
    return "Secret/nowhere"


TROUBLES: list[Trouble] = [
    healthy,
    healthy_managed,
    vm_never,
    api_server_never,
    worker_node_never,
    managed_vm_never,
    infrastructure_missing,
    control_plane_missing,
    template_missing,
    bootstrap_config_missing,
    machine_paused,
    infrastructure_paused,
    control_plane_paused,
    deletion_held_by_worker,
    deletion_held_by_infrastructure,
    deletion_held_by_control_plane,
    machine_held_by_hook,
    infrastructure_machine_deleted,
    template_deleted_before_scaling,
    upgrade_stuck,
    kubeconfig_overwritten,
    authority_deleted,
    file_from_nowhere,
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=[t.__name__ for t in TROUBLES])
def test_the_cause_of_trouble_in_a_live_plane_is_named_first(trouble: Trouble, settled: dict[Objects, Moment[Plane]]) -> None:
    async def play(p: Plane) -> tuple[str | None, list[Json]]:
        truth = await trouble(p)
        await asyncio.sleep(120)
        return truth, await record(p.client, ObjectKey(NAMESPACE, "c"), p.clock.now())

    async def all_of_it() -> tuple[str | None, list[Json]]:
        async with plane(LoopClock(START)) as p:
            return await play(p)

    truth, documents = settled[BEGINNING[trouble]].then(play) if trouble in BEGINNING else run_virtual(all_of_it())
    causes = [c["object"] for c in explain(assemble(documents), f"Cluster/{NAMESPACE}/c").causes]

    if truth is None:
        assert causes == []
    else:
        kind, _, name = truth.partition("/")
        assert causes
        assert fnmatch.fnmatchcase(causes[0], f"{kind}/{NAMESPACE}/{name}"), causes
