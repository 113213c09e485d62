"""Lives of a whole plane, each different by its seed: how a cluster is made, how large, what is changed, how much goes wrong.

A judge sits in the store and hears of every write: no Machine is made that nobody asked for, and nothing is gone before what it is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec

from clusterwright import app
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.apiserver.storage.store import Event, Table
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, FaultPlan
from clusterwright.simulation.plane import Overdue, Plane, management_server
from clusterwright.simulation.world import Outcome, Violation, World, run

CLUSTER, WORKERS = ObjectKey("default", "c"), ObjectKey("default", "w")
VERSIONS: Final = (samples.VERSION, "v1.34.2")
LONG: Final = 12 * 3600.0
STEP: Final = 5.0
"""How often a life is looked at, in virtual seconds: looking costs more than living."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What there should be: Machines of the control plane and workers, and the versions of both."""

    leaders: int
    workers: int
    leaders_version: str = VERSIONS[0]
    workers_version: str = VERSIONS[0]


@dataclass(frozen=True, slots=True)
class Plot:
    """A life: whether a class describes the cluster, what it is like at first and then, and which roles lose a Machine last."""

    is_topology: bool
    shapes: tuple[Shape, ...]
    losses: tuple[str, ...]


SIZES: Final = (((1, 1), 8), ((1, 2), 4), ((1, 0), 2), ((3, 1), 3), ((3, 3), 1))
"""Leaders and workers, with how often they are: what can go wrong mostly can with few."""
SEVERITIES: Final = (0.3, 0.6, 1.0)


def severity(seed: int) -> FaultPlan:
    """Everything goes wrong, but not everywhere as often: where processes crash all the time, little gets far enough to go wrong."""
    return ALL_FAULTS.scaled(Random(seed).choice(SEVERITIES))


def plot(choice: Random) -> Plot:
    """A life by chance."""
    is_topology = choice.random() < 0.35
    leaders, workers = choice.choices([size for size, _ in SIZES], [weight for _, weight in SIZES])[0]
    first = Shape(leaders, workers)
    shapes = [first]
    if choice.random() < 0.8:
        shapes.append(_changed(first, choice, is_topology))
    losses = [role for role, there in (("leaders", shapes[-1].leaders > 1), ("workers", shapes[-1].workers > 0)) if there]
    return Plot(is_topology, tuple(shapes), tuple(role for role in losses if choice.random() < 0.3))


def _changed(shape: Shape, choice: Random, is_topology: bool) -> Shape:
    changes: list[dict[str, Any]] = [{"workers": shape.workers + 1}, {"workers": max(0, shape.workers - 1)}]
    changes.append({"leaders": 1 if shape.leaders == 3 else 3})
    if is_topology:  # a topology has one version
        changes.append({"leaders_version": VERSIONS[1], "workers_version": VERSIONS[1]})
    else:
        changes += [{"leaders_version": VERSIONS[1]}, {"workers_version": VERSIONS[1]}]
    many = choice.choice((1, 1, 2))
    for change in choice.sample(changes, many):
        shape = replace(shape, **change)
    return shape


class _Meta(msgspec.Struct):
    name: str
    uid: str
    labels: dict[str, str] = {}
    deletionTimestamp: str = ""  # noqa: N815 - Kubernetes' name


class _Stored(msgspec.Struct):
    metadata: _Meta


_stored = msgspec.json.Decoder(_Stored).decode
_MACHINES: Final = "machines.cluster.x-k8s.io"
_PARTS: Final = {
    _MACHINES: ("devmachines.infrastructure.cluster.x-k8s.io", "kubeadmconfigs.bootstrap.cluster.x-k8s.io"),
    "clusters.cluster.x-k8s.io": (
        _MACHINES,
        "machinesets.cluster.x-k8s.io",
        "machinedeployments.cluster.x-k8s.io",
        "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
        "devclusters.infrastructure.cluster.x-k8s.io",
    ),
}
"""What must be gone before an object is: of a Machine what has its name, of a Cluster everything."""


class Judge:
    """Hears of every write at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._alive: dict[str, str] = {}
        self._most: Counter[str] = Counter()
        self._made: Counter[str] = Counter()
        self._allowed: Counter[str] = Counter()
        world.server.store.listeners.append(self._hear)

    def allow(self, made: dict[str, int], most: dict[str, int]) -> None:
        """So many Machines may be made from now on, and so many be there at once, by role."""
        self._allowed.update(made)
        self._most.update({role: count - self._most[role] for role, count in most.items()})

    def _hear(self, table: Table, event: Event) -> None:
        if event.type == "DELETED":
            self._gone(table, event)
        if table.name != _MACHINES:
            return
        meta = _stored(event.entry.raw).metadata
        role = "leaders" if CONTROL_PLANE_LABEL in meta.labels else "workers"
        if event.type == "DELETED" or meta.deletionTimestamp:
            self._alive.pop(meta.uid, None)
            return
        self._alive[meta.uid] = role
        if event.type != "ADDED":
            return
        self._made[role] += 1
        there = sum(other == role for other in self._alive.values())
        if there > self._most[role] or self._made[role] > self._allowed[role]:
            self._world.violations.append(
                f"Machine {meta.name} is one too many: {there} {role} where {self._most[role]} may be, "
                f"{self._made[role]} made where {self._allowed[role]} were needed"
            )

    def _gone(self, table: Table, event: Event) -> None:
        for part in _PARTS.get(table.name, ()):
            there = self._world.server.store.table(part).objects
            left = [key for key in there if table.name != _MACHINES or key == event.entry.key]
            if left:
                self._world.violations.append(f"{table.name} {event.entry.key} is gone before {part} {', '.join(left)}")


class Life:
    """A plane whose controllers suffer, a user who changes his mind, and the judge."""

    def __init__(self, world: World) -> None:
        world.server.close()
        world.server = management_server(world.clock, Random(world.random.getrandbits(64)), EMBEDDED_FEATURES)
        self.world = world
        self.judge = Judge(world)
        self.cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
        self.p = Plane(world.server, self.cloud, world.clock)
        self.process = world.start("controllers", self._controllers)

    async def _controllers(self, transport: Any, clock: Any, random: Random) -> None:
        keys = FixedKeySource(8)
        await app.build_manager(transport, clock=clock, random=random, keys=keys, cloud=self.cloud, features=EMBEDDED_FEATURES).run()

    async def begin(self, is_topology: bool, shape: Shape) -> None:
        """Make the cluster."""
        self.judge.allow(_needed(Shape(0, 0), shape), {"leaders": shape.leaders, "workers": shape.workers})
        if is_topology:
            await self.p.apply(samples.cluster_class(seconds=1))
            await self.p.client.create(samples.topology("c", control_plane=shape.leaders, workers={"w": shape.workers}))
        else:
            await self.p.apply(samples.cluster("c", has_control_plane_object=True))
            await self.p.apply(samples.control_plane("c", replicas=shape.leaders, seconds=1))
            await self.p.apply(samples.workers("c", "w", replicas=shape.workers, seconds=1))
        await self.settled(shape)

    async def change(self, is_topology: bool, before: Shape, after: Shape) -> None:
        """Make it another."""
        most = {
            role: max(getattr(before, role), getattr(after, role))
            + (getattr(before, f"{role}_version") != getattr(after, f"{role}_version"))
            for role in ("leaders", "workers")
        }
        self.judge.allow(_needed(before, after), most)
        if is_topology:
            workers = {"machineDeployments": [{"class": "default-worker", "name": "w", "replicas": after.workers}]}
            change = {"version": after.leaders_version, "controlPlane": {"replicas": after.leaders}, "workers": workers}
            await self.p.client.patch(Cluster, CLUSTER, {"spec": {"topology": change}})
        else:
            spec = {"replicas": after.leaders, "version": after.leaders_version}
            await self.p.client.patch(KubeadmControlPlane, CLUSTER, {"spec": spec})
            template = {"template": {"spec": {"version": after.workers_version}}}
            await self.p.client.patch(MachineDeployment, WORKERS, {"spec": {"replicas": after.workers, **template}})
        await self.settled(after)

    async def lose(self, role: str, shape: Shape) -> None:
        """A user deletes a Machine; another takes its place."""
        self.judge.allow({role: 1}, {"leaders": shape.leaders, "workers": shape.workers})
        lost = next(m for m in await self.p.client.list(Machine) if (CONTROL_PLANE_LABEL in m.metadata.labels) == (role == "leaders"))
        await self.p.client.delete(Machine, lost.key)
        await self._until(lambda machines: all(m.metadata.uid != lost.metadata.uid for m in machines), f"{lost.key} is gone")
        await self.settled(shape)

    async def settled(self, shape: Shape) -> None:
        """Wait until everything is as it should be, and known to be."""
        wanted = sorted([(True, shape.leaders_version)] * shape.leaders + [(False, shape.workers_version)] * shape.workers)

        def is_there(machines: Sequence[Machine]) -> bool:
            return wanted == sorted((CONTROL_PLANE_LABEL in m.metadata.labels, m.spec.version) for m in machines) and all(
                m.metadata.deletion_timestamp is None and is_true(m.status.conditions, "Ready") for m in machines
            )

        await self._until(is_there, f"{shape} is there and ready")

        async def is_known() -> bool:
            cluster = await self.p.cluster("c")
            nodes = await self.p.workload("c").client.list(Node)
            return is_true(cluster.status.conditions, "Available") and len(nodes) == shape.leaders + shape.workers

        await self.p.until(is_known, f"the Cluster is Available with the Nodes of {shape}", within=LONG, step=STEP)

    async def _until(self, holds: Callable[[Sequence[Machine]], bool], what: str) -> None:
        async def is_so() -> bool:
            return holds(await self.p.client.list(Machine))

        await self.p.until(is_so, what, within=LONG, step=STEP)

    async def end(self, is_topology: bool) -> None:
        """Delete the Cluster; nothing may be left of it."""
        await self.p.client.delete(Cluster, CLUSTER)

        async def is_gone() -> bool:
            return await self.p.client.find(Cluster, CLUSTER) is None

        await self.p.until(is_gone, "the Cluster is gone", within=LONG, step=STEP)
        self.world.calm()

        async def is_clean() -> bool:
            return not [key for keys in self.p.leftovers().values() for key in keys if not is_topology or "in-memory" not in str(key)]

        await self.p.until(is_clean, "nothing is left behind", within=LONG, step=STEP)
        if self.cloud.find(CLUSTER) is not None:
            self.world.violations.append("the simulated cluster is still there")
        if self.process.failure is not None:
            self.world.violations.append(f"the controllers ended: {self.process.failure!r}")
        await self.cloud.close()


def _needed(before: Shape, after: Shape) -> dict[str, int]:
    """The Machines that must be made to get from one to the other, by role."""

    def needed(role: str) -> int:
        here, there = getattr(before, role), getattr(after, role)
        is_rolled = getattr(before, f"{role}_version") != getattr(after, f"{role}_version")
        return int(max(0, there - here) + (max(here, there) if is_rolled else 0))

    return {role: needed(role) for role in ("leaders", "workers")}


async def live(world: World) -> None:
    """One life by the world's chance."""
    story = plot(Random(world.random.getrandbits(32)))
    life = Life(world)
    try:
        await life.begin(story.is_topology, story.shapes[0])
        for before, after in zip(story.shapes, story.shapes[1:], strict=False):
            await life.change(story.is_topology, before, after)
        for role in story.losses:
            await life.lose(role, story.shapes[-1])
        await life.end(story.is_topology)
    except Overdue as overdue:
        world.violations.append(str(overdue))
    if world.violations:
        raise Violation(f"{story}: " + "; ".join(dict.fromkeys(world.violations)))


def play(seed: int) -> Outcome:
    """The life of a seed."""
    return run(seed, live, severity(seed))
