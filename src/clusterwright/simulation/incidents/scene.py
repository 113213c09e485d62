"""The world of a scenario: a plane in virtual time, the adversary, and everything that was written so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final, Protocol

import msgspec

from clusterwright import app
from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.api.wire import Duplex, Transport
from clusterwright.apiserver.storage.store import Event, Table, object_key
from clusterwright.conditions import get, is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.manager import Manager
from clusterwright.runtimesdk.client import Post
from clusterwright.simulation.incidents.adversary import Adversary, Between
from clusterwright.simulation.plane import NAMESPACE, Plane, management_server
from clusterwright.simulation.world import Violation, World
from clusterwright.streams.pipe import duplex_pair

HOUR: Final = 3600.0


class Answers(Protocol):
    """An extension that answers runtime hooks, with the objects that register it."""

    def objects(self) -> list[Json]:
        """Return the objects that register the extension."""

    async def __call__(self, handler: Any, url: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request, as `runtimesdk.client.Post` says."""


@dataclass(frozen=True, slots=True)
class Written:
    """One write to the management cluster."""

    at: datetime
    table: str
    type: str
    name: str
    raw: bytes

    @property
    def json(self) -> Json:
        """Return the object as it was then."""
        decoded: Json = msgspec.json.decode(self.raw)
        return decoded


def _parts(obj: Json) -> tuple[str, str, str]:
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    return gvk.group, gvk.version, gvk.kind


class Scene:
    """The world of one incident."""

    def __init__(self, world: World, *, features: Mapping[str, bool], extension: Answers | None) -> None:
        world.server.close()
        self.features = {**EMBEDDED_FEATURES, **features}
        world.server = management_server(world.clock, Random(world.random.getrandbits(64)), self.features)
        self.world = world
        self.random = Random(world.random.getrandbits(64))
        """The randomness of a scenario: times, and the objects that it hits."""
        self.cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
        self.p = Plane(world.server, self.cloud, world.clock)
        self.client = self.p.client
        self.extension = extension
        self.adversary = Adversary(self._crash_now)
        self.notes: list[tuple[datetime, str]] = []
        self.history: list[Written] = []
        self.manager: Manager | None = None
        self._mark = 0
        world.server.store.listeners.append(self._hear)
        self.process = world.start("controllers", self._controllers)

    async def _controllers(self, transport: Transport, clock: LoopClock, random: Random) -> None:
        post: Post | None = self.extension
        manager = app.build_manager(
            Between(transport, self.adversary),
            clock=clock,
            random=random,
            keys=FixedKeySource(8),
            cloud=self.cloud,
            features=self.features,
            post=post,
        )
        self.manager = manager
        await manager.run()

    def _hear(self, table: Table, event: Event) -> None:
        entry = event.entry
        self.history.append(Written(self.world.clock.now(), table.name.partition(".")[0], event.type, entry.name, entry.raw))

    # ------------------------------------------------------------------------------------------------- acting

    def _crash_now(self) -> None:
        self.process.crash()

    def did(self, text: str) -> None:
        """Record an action for the reader of the replay."""
        self.notes.append((self.world.clock.now(), text))

    async def patch(self, kind: Any, name: str, patch: Json) -> None:
        """Change an object, as a user does."""
        await self.client.patch(kind, ObjectKey(NAMESPACE, name), patch)

    async def get(self, kind: Any, name: str) -> Any:
        """Return an object."""
        return await self.client.get(kind, ObjectKey(NAMESPACE, name))

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self.world.clock.sleep(seconds)

    def cut_off(self, node: str, cluster: str = "c") -> None:
        """Block access to the Pods of a node through its kubelet from now on. The Pods keep running."""
        simulated = self.p.workload(cluster)
        dial = simulated.dial

        async def refusing(namespace: str, pod: str, port: int) -> Duplex:
            if pod.endswith(node):
                raise ConnectionRefusedError(f"the kubelet of {node} does not answer")
            return await dial(namespace, pod, port)

        simulated.dial = refusing  # type: ignore[method-assign]

    def hang(self, node: str, cluster: str = "c") -> None:
        """Let tunnels to the Pods of a node open without an answer from now on."""
        simulated = self.p.workload(cluster)
        dial = simulated.dial

        async def hanging(namespace: str, pod: str, port: int) -> Duplex:
            return duplex_pair()[0] if pod.endswith(node) else await dial(namespace, pod, port)

        simulated.dial = hanging  # type: ignore[method-assign]

    def pretend_etcd(self, machine: str, authority: KeyPair, cluster: str = "c") -> None:
        """Replace a member by a program with a certificate of another authority, and close the connections to the member."""
        simulated = self.p.workload(cluster)
        rightly = simulated.etcd_on

        def pretending(name: str) -> tuple[KeyPair, bytes] | None:
            held = rightly(name)
            return held if held is None or name != machine else (authority, held[1])

        simulated.etcd_on = pretending  # type: ignore[method-assign,assignment]

    def store_as_before(self, obj: Json) -> None:
        """Put an object into the store as an older release may have done, without today's validation."""
        server = self.world.server
        resource = server.registry.by_kind(*_parts(obj))
        assert resource is not None
        key = object_key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        server.ensure([{**obj, "spec": {}}])
        table = server.store.table(resource.storage_key)
        entry = table.objects[key]
        server.put_system(table, entry, {**msgspec.json.decode(entry.raw), "spec": obj["spec"]})
        server.drain()

    def crash(self) -> None:
        """Stop the controllers at once. They start again within seconds."""
        self.did("The controllers crash.")
        self.process.crash()

    def mark(self) -> None:
        """Start the count of `made` and `deleted` here."""
        self._mark = len(self.history)

    # ------------------------------------------------------------------------------------------------- looking

    def made(self, table: str) -> list[str]:
        """Return the names of the objects that were created since the mark, in order."""
        return [w.name for w in self.history[self._mark :] if w.table == table and w.type == "ADDED"]

    def deleted(self, table: str) -> list[str]:
        """Return the names of the objects whose deletion was asked for since the mark, in order."""
        since = [w for w in self.history[self._mark :] if w.table == table]
        return list(dict.fromkeys(w.name for w in since if w.type == "DELETED" or "deletionTimestamp" in w.json["metadata"]))

    async def machines(self, *, leaders: bool | None = None) -> list[Machine]:
        """Return the Machines that are not being deleted, by name."""
        found = [m for m in await self.client.list(Machine) if m.metadata.deletion_timestamp is None]
        chosen = [m for m in found if leaders is None or (CONTROL_PLANE_LABEL in m.metadata.labels) == leaders]
        return sorted(chosen, key=lambda m: m.metadata.name)

    async def next_host(self, known: Collection[str]) -> str:
        """Wait until there is a DevMachine that is not known, and return its name."""
        found: list[str] = []

        async def holds() -> bool:
            found[:] = [m.metadata.name for m in await self.client.list(DevMachine) if m.metadata.name not in known]
            return bool(found)

        await self.until(holds, "another machine is made", step=0.1)
        return found[0]

    async def is_gone(self, kind: Any, name: str) -> bool:
        """Return whether the first object of this name is gone. Another one may have its name."""
        found = await self.client.find(kind, ObjectKey(NAMESPACE, name))
        table = f"{kind.__name__.lower()}s"
        first = next(w.json["metadata"]["uid"] for w in self.history if w.table == table and w.name == name)
        return found is None or found.metadata.uid != first

    async def has_node(self, name: str, cluster: str = "c") -> bool:
        """Return whether a machine has its Node."""
        return await self.p.workload(cluster).client.find(Node, ObjectKey("", name)) is not None

    async def says(self, kind: Any, name: str, type_: str) -> str:
        """Return a condition as `True Reason message`; empty without the object or the condition."""
        condition = await self.p.condition(kind, name, type_)
        return f"{condition.status} {condition.reason} {condition.message}".strip() if condition is not None else ""

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, *, within: float = 900.0, step: float = 1.0) -> None:
        """Wait until something holds."""
        await self.p.until(holds, what, within=within, step=step)

    async def until_says(self, kind: Any, name: str, type_: str, part: str, *, within: float = 900.0) -> None:
        """Wait until a condition, as `says` returns it, contains a text."""

        async def holds() -> bool:
            return part in await self.says(kind, name, type_)

        try:
            await self.until(holds, f"{type_} of {kind.__name__} {name} says {part!r}", within=within)
        except AssertionError as overdue:
            raise Violation(f"{overdue}; it says {await self.says(kind, name, type_)!r}") from overdue

    async def until_machines(
        self, count: int, *, leaders: bool | None = None, version: str = "", without: Collection[str] = (), within: float = 900.0
    ) -> None:
        """Wait until there are exactly so many Machines of a version, all ready, and none is being deleted.

        `without`: names of Machines that must be gone. Another Machine may have taken the name.
        """
        gone = {next(w.json["metadata"]["uid"] for w in self.history if w.table == "machines" and w.name == name) for name in without}

        async def holds() -> bool:
            everybody = await self.client.list(Machine)
            found = [m for m in everybody if leaders is None or (CONTROL_PLANE_LABEL in m.metadata.labels) == leaders]
            return len(found) == count and all(
                m.metadata.deletion_timestamp is None
                and m.metadata.uid not in gone
                and is_true(m.status.conditions, "Ready")
                and is_true(m.status.conditions, "Available")
                and version in ("", m.spec.version)
                for m in found
            )

        what = f"{count} {'' if leaders is None else 'control plane ' if leaders else 'worker '}Machines are ready"
        try:
            await self.until(holds, what + (f" at {version}" if version else ""), within=within)
        except AssertionError as overdue:
            raise Violation(f"{overdue}; there is {await self._roll()}") from overdue

    async def _roll(self) -> str:
        def line(machine: Machine) -> str:
            ready = get(machine.status.conditions, "Ready")
            going = " (being deleted)" if machine.metadata.deletion_timestamp else ""
            return f"{machine.metadata.name}{going} at {machine.spec.version}, Ready={ready.status if ready else ''}"

        return "; ".join(line(m) for m in await self.client.list(Machine)) or "no Machine"

    def must(self, holds: bool, text: str) -> None:
        """Raise a Violation with the text unless something holds."""
        if not holds:
            raise Violation(text)
