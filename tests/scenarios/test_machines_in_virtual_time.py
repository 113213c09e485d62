"""Stand-alone Machines, from the first object to the last, with all controllers and the in-memory infrastructure.

What is made first refers to what is made last; workers are drained in the order that MachineDrainRules give, one of them dead.
In virtual time, in peace and with everything going wrong: requests lost, watches late, the process of the controllers killed
between any two of its requests. The simulated clusters outlive the controllers, as real ones do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from clusterwright import app
from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubernetes import ConfigMap, Node, Pod, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import get, is_true
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS, FaultPlan
from clusterwright.simulation.world import Outcome, Violation, World, run

NAMESPACE = "default"
CLUSTER = ObjectKey(NAMESPACE, "c1")
FAULT = "inmemory.clusterwright.dev/fault"
KINDS = (Cluster, Machine, KubeadmConfig, DevCluster, DevMachine, Secret, ConfigMap)


class Scene:
    """The management cluster with all controllers on it, and the cloud that they work in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client: Client = world.client
        self.keys = sample_keys()
        self.cloud = Cloud(now=world.clock.now, random=Random(world.random.getrandbits(64)), keys=self.keys)

    async def start(self) -> None:
        """Install the kinds and start the controllers, which come back when they die."""
        self.world.server.ensure_namespaces()
        self.world.server.start_controllers()
        await app.install_crds(self.client)

        async def program(transport: Any, clock: Any, random: Random) -> None:
            await app.build_manager(transport, clock=clock, random=random, keys=self.keys, cloud=self.cloud).run()

        self.world.start("controllers", program)

    async def create(self, *, control_planes: int, workers: int) -> None:
        """Create the cluster, what refers before what is referred to."""
        objects = samples.cluster("c1")
        for number in range(control_planes):
            objects += samples.machine("c1", f"cp{number}", is_control_plane=True, seconds=1)
        for number in range(workers):
            objects += samples.machine("c1", f"w{number}", is_control_plane=False, seconds=1)
        for obj in reversed(objects):
            await self.client.create(obj)

    async def machines(self) -> list[Machine]:
        return list(await self.client.list(Machine, namespace=NAMESPACE))

    async def all_available(self) -> bool:
        machines = await self.machines()
        cluster = await self.client.get(Cluster, CLUSTER)
        everything = [cluster.status.conditions, *(m.status.conditions for m in machines)]
        return all(is_true(conditions, "Available") for conditions in everything)

    async def told(self, machine: str, type: str, *expected: str) -> bool:
        """Whether a condition of a Machine has this status and reason."""
        found = get((await self.client.get(Machine, ObjectKey(NAMESPACE, machine))).status.conditions, type)
        return found is not None and (found.status, found.reason)[: len(expected)] == expected

    async def gone(self, kind: Any, name: str) -> bool:
        return await self.client.find(kind, ObjectKey(NAMESPACE, name)) is None

    async def left_behind(self) -> list[str]:
        """Whatever is still there of the cluster, in any namespace, and in the cloud."""
        found = [f"{kind.__name__} {o.key}" for kind in KINDS for o in await self.client.list(kind) if "kube-" not in o.key.namespace]
        return found + ([f"simulated cluster {CLUSTER}"] if self.cloud.find(CLUSTER) is not None else [])

    @property
    def workload(self) -> Client:
        """The simulated cluster, as its administrator sees it."""
        simulated = self.cloud.find(CLUSTER)
        assert simulated is not None
        return simulated.client

    async def run_pod(self, name: str, node: str, *, finalizers: tuple[str, ...] = (), **labels: str) -> None:
        """A Pod on a Node; with finalizers it stays until `end_pods`, whatever its kubelet does."""
        await self.workload.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels, "finalizers": list(finalizers)},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "app:1"}]},
            }
        )

    async def end_pods(self) -> None:
        """Pods that are told to end do so."""
        for pod in await self.workload.list(Pod):
            if pod.metadata.deletion_timestamp is not None:
                try:
                    if pod.metadata.finalizers:
                        await self.workload.patch(Pod, pod.key, {"metadata": {"finalizers": None}})
                    else:
                        await self.workload.delete(Pod, pod.key, grace_period_seconds=0)
                except NotFound:
                    continue

    def until(self, holds: Callable[[], Awaitable[bool]], within: float, what: str) -> Awaitable[None]:
        return self.world.until(holds, within=within, what=what)


async def life(world: World, *, control_planes: int, workers: int, patience: float) -> None:
    """Create, break, drain, delete; Violation where something does not come about. `patience` stretches every deadline."""
    scene = Scene(world)
    await scene.start()
    await scene.create(control_planes=control_planes, workers=workers)
    await scene.until(scene.all_available, 60 * patience, "all Machines and the Cluster are Available")
    _check(len(await scene.workload.list(Node)) == control_planes + workers, "every Machine has its Node")

    await scene.client.patch(DevMachine, ObjectKey(NAMESPACE, "w0"), {"metadata": {"annotations": {FAULT: "node-dies"}}})
    await scene.until(lambda: scene.told("w0", "NodeHealthy", "Unknown"), 120 * patience, "a Machine says that its Node has died")
    await scene.until(lambda: scene.told("w0", "Ready", "Unknown"), 30 * patience, "and is not Ready")
    _check(await scene.told("cp0", "Ready", "True"), "the others do not mind")

    await scene.run_pod("on-the-dead", "w0")
    await scene.run_pod("last", "w1", finalizers=("example.com/slow",), app="db")
    await scene.run_pod("first", "w1", finalizers=("example.com/slow",), app="web")
    rule = {"drain": {"behavior": "Drain", "order": 5}, "pods": [{"selector": {"matchLabels": {"app": "db"}}}]}
    await scene.client.create(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineDrainRule",
            "metadata": {"name": "databases-last", "namespace": NAMESPACE},
            "spec": rule,
        }
    )
    for name in ("w0", "w1"):
        await scene.client.delete(Machine, ObjectKey(NAMESPACE, name))
    await scene.until(lambda: scene.told("w1", "Deleting", "True", "DrainingNode"), 60 * patience, "the drain of a worker is under way")
    await scene.until(lambda: _evicted(scene, "first"), 60 * patience, "the Pod of the lower order is told to end")
    _check(not await _evicted(scene, "last"), "the Pod of the higher order is left alone meanwhile")
    await scene.end_pods()
    await scene.until(lambda: _evicted(scene, "last"), 60 * patience, "then the Pod of the higher order is told to end")
    await scene.end_pods()
    for name in ("w0", "w1"):
        await scene.until(lambda name=name: scene.gone(Machine, name), 120 * patience, f"{name} is gone")  # type: ignore[misc]
    nodes = {n.metadata.name for n in await scene.workload.list(Node)}
    _check(not nodes & {"w0", "w1"}, "their Nodes are gone")
    _check(await scene.gone(DevMachine, "w1") and await scene.gone(KubeadmConfig, "w1"), "and what they referred to")

    await scene.client.delete(Cluster, CLUSTER)
    await scene.until(lambda: scene.gone(Cluster, "c1"), 120 * patience, "the Cluster is gone")

    async def nothing_left() -> bool:
        return not await scene.left_behind()

    world.calm()
    try:
        await scene.until(nothing_left, 300, "nothing is left behind")
    except Violation as error:
        raise Violation(f"{error}: {await scene.left_behind()}") from None


async def _evicted(scene: Scene, name: str) -> bool:
    pod = await scene.workload.find(Pod, ObjectKey(NAMESPACE, name))
    return pod is None or pod.metadata.deletion_timestamp is not None


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(f"does not hold: {what}")


def lived(seed: int, plan: FaultPlan, *, control_planes: int = 1, workers: int = 2, patience: float = 1) -> Outcome:
    return run(seed, lambda world: life(world, control_planes=control_planes, workers=workers, patience=patience), plan)


def test_stand_alone_machines_live_and_leave_nothing_behind() -> None:
    outcome = lived(1, NO_FAULTS)

    assert outcome.violation is None
    assert outcome.crashes == 0


def test_the_same_life_with_everything_going_wrong() -> None:
    outcome = lived(1, ALL_FAULTS, patience=60)

    assert (str(outcome.violation), outcome.trace[-20:]) == ("None", ())
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_lives_with_everything_going_wrong(seed: int) -> None:
    outcome = lived(seed, ALL_FAULTS, control_planes=3, workers=3, patience=60)

    assert (str(outcome.violation), outcome.trace[-20:]) == ("None", ())
