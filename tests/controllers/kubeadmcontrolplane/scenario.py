"""A whole control plane in virtual time: our API server, all controllers, the in-memory cloud; and the eye that watches etcd.

The cloud outlives the controllers: when their process crashes, machines go on. `Watchman` looks at every change of etcd's
membership that we cause, at the moment it happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from clusterwright import app
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Machine
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.conditions import is_true
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.etcd import EtcdRefused, Member, has_quorum
from clusterwright.inmemory.etcdserver import EtcdServer
from clusterwright.inmemory.faults import FAULT
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.faults import NO_FAULTS, FaultPlan
from clusterwright.simulation.world import Outcome, Violation, World, run
from support.moments import Moment

KEY = ObjectKey("default", "c1")
DEV_MACHINE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine")
KUBEADM_CONFIG = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig")
STAGE_SECONDS = 5.0
LOOK_EVERY = 10.0


class Watchman:
    """Sees every etcd call that changes something.

    A removal that takes the quorum away is a violation, and so is one that etcd itself had to refuse for that reason.
    """

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.violations: list[str] = []

    def wrap(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def watched(server: EtcdServer, method: str, body: Mapping[str, Any]) -> Any:
            before = server.members()
            try:
                answer = await call(server, method, body)
            except EtcdRefused as refused:
                if method == "MemberRemove" and "not enough started members" in str(refused):
                    self.violations.append(f"etcd had to refuse a removal that would have left {len(before) - 1} members without quorum")
                raise
            if method == "MemberRemove":
                self._look(before, server.members())
            return answer

        return watched

    def _look(self, before: tuple[Member, ...], after: tuple[Member, ...]) -> None:
        names = {m.name for m in after}
        gone = [m.name for m in before if m.name not in names]
        self.removed += gone
        if has_quorum(before) and not has_quorum(after):
            self.violations.append(f"removing {gone} left {[m.name for m in after]} without quorum")
        if not after:
            self.violations.append(f"removing {gone} left no member at all")


class ControlPlane:
    """What a scenario does to its control plane and sees of it."""

    def __init__(self, world: World, cloud: Cloud, watchman: Watchman) -> None:
        self.world, self.cloud, self.watchman = world, cloud, watchman
        self.most_machines = 0

    @property
    def etcd(self) -> tuple[Member, ...]:
        cluster = self.cloud.find(KEY)
        return cluster.members() if cluster is not None else ()

    async def get(self) -> KubeadmControlPlane:
        return await self.world.client.get(KubeadmControlPlane, KEY)

    async def machines(self) -> list[Machine]:
        found = list(await self.world.client.list(Machine, namespace=KEY.namespace))
        self.most_machines = max(self.most_machines, len(found))
        return found

    async def change(self, spec: dict[str, Any]) -> None:
        await self.world.client.patch(KubeadmControlPlane, KEY, {"spec": spec})

    async def break_machine(self, name: str, *faults: str) -> None:
        """Let faults begin on a machine; none: let them end."""
        await self.world.client.patch(
            DEV_MACHINE, ObjectKey(KEY.namespace, name), {"metadata": {"annotations": {FAULT: ",".join(faults) or None}}}
        )

    async def mark_unhealthy(self, name: str) -> None:
        """What a health check does: say that a Machine is sick, and that its owner should replace it."""
        now = self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        marks = [
            {"type": t, "status": "False", "reason": r, "message": "", "lastTransitionTime": now}
            for t, r in (("HealthCheckSucceeded", "UnhealthyNode"), ("OwnerRemediated", "WaitingForRemediation"))
        ]
        for _ in range(10):
            machine = await self.world.client.get(Machine.__mro__[0], ObjectKey(KEY.namespace, name))
            raw = await self.world.client.get(GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine"), machine.key)
            kept = [c for c in raw.at("status", "conditions") or [] if c["type"] not in {m["type"] for m in marks}]
            body = {"metadata": {"resourceVersion": raw.metadata.resource_version}, "status": {"conditions": [*kept, *marks]}}
            try:
                await self.world.client.patch(Machine, machine.key, body, subresource="status")
                return
            except ApiError:
                continue
        raise AssertionError("the Machine could not be marked")

    async def settled(self, replicas: int, version: str = samples.VERSION) -> bool:
        """Whether the control plane is what its spec asks for and says so."""
        control_plane, machines = await self.get(), await self.machines()
        status = control_plane.status
        return (
            is_true(status.conditions, "Available")
            and len(machines) == replicas
            and all(m.spec.version == version and m.metadata.deletion_timestamp is None for m in machines)
            and status.up_to_date_replicas == replicas
            and status.ready_replicas == replicas
            and sorted(m.name for m in self.etcd) == sorted(m.status.node_ref.name for m in machines if m.status.node_ref)
            and status.observed_generation == control_plane.metadata.generation
        )

    async def until_settled(self, replicas: int, version: str = samples.VERSION, within: float = 3600.0) -> None:
        await self.until(lambda: self.settled(replicas, version), within=within, what=f"{replicas} replicas of {version}")

    async def until(self, holds: Callable[[], Awaitable[bool]], *, within: float, what: str) -> None:
        """Wait until something holds, and look at etcd all the while; seldom enough that looking does not take longer than what happens."""
        deadline = self.world.clock.monotonic() + within
        while not await holds():
            self.check()
            if self.world.clock.monotonic() >= deadline:
                raise Violation(f"not within {within:g} s: {what}")
            await self.world.clock.sleep(LOOK_EVERY)
        self.check()

    def check(self) -> None:
        if self.watchman.violations:
            raise Violation("; ".join(self.watchman.violations))


Story = Callable[[ControlPlane], Awaitable[None]]


@asynccontextmanager
async def begun(world: World, watchman: Watchman, replicas: int) -> AsyncIterator[ControlPlane]:
    """A control plane that was just asked for, and the process that makes it."""
    cloud = Cloud(now=world.clock.now, random=Random(world.random.getrandbits(64)), keys=sample_keys())

    async def program(transport: Transport, clock: LoopClock, random: Random) -> None:
        await app.build_manager(transport, clock=clock, random=random, keys=sample_keys(), cloud=cloud).run()

    await app.install_crds(world.client)
    world.server.ensure_namespaces()
    for obj in samples.cluster("c1", has_control_plane_object=True) + samples.control_plane("c1", replicas=replicas, seconds=STAGE_SECONDS):
        if obj["kind"] == "KubeadmControlPlane":
            # ECDSA signatures are random by nature; with RSA the same seed gives the same bytes
            del obj["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["encryptionAlgorithm"]
        await world.client.create(obj)
    world.start("controllers", program)
    try:
        yield ControlPlane(world, cloud, watchman)
    finally:
        await world.close()
        await cloud.close()


def play(seed: int, story: Story, *, replicas: int, plan: FaultPlan = NO_FAULTS, monkeypatch: Any) -> Outcome:
    """Bring up a control plane, let the story happen to it while things go wrong by plan; the outcome with any violation."""
    watchman = Watchman()
    monkeypatch.setattr(EtcdServer, "call", watchman.wrap(EtcdServer.call))

    async def scenario(world: World) -> None:
        async with begun(world, watchman, replicas) as control_plane:
            await story(control_plane)

    return run(seed, scenario, plan)


class Peace:
    """A control plane of three that came up once, while nothing went wrong, for stories that begin with it."""

    def __init__(self) -> None:
        self._watchman = Watchman()
        self._settled = Moment(self._lived)

    @asynccontextmanager
    async def _lived(self) -> AsyncIterator[ControlPlane]:
        world = World(1, NO_FAULTS)
        async with begun(world, self._watchman, 3) as control_plane:
            await control_plane.until_settled(3)
            yield control_plane
        world.server.close()

    def play(self, story: Callable[[ControlPlane], Awaitable[Any]], monkeypatch: Any) -> tuple[Any, Violation | None]:
        """What the story returns, and its violation."""

        async def judged(control_plane: ControlPlane) -> tuple[Any, Violation | None]:
            try:
                return await story(control_plane), None
            except Violation as violation:
                return None, violation

        monkeypatch.setattr(EtcdServer, "call", self._watchman.wrap(EtcdServer.call))
        return self._settled.then(judged)

    def close(self) -> None:
        """End it."""
        self._settled.close()
