"""A small but complete controller, and the scenario that tests it: a Parent wants N Children, its status counts them.

It is here to be read, and to show that the runtime keeps its promises under every fault: `sound` survives all of them: the
desired state is reached, no surplus child ever lives, no update is lost, no read is older than the process's own writes.
`broken` makes the two mistakes that controllers make, random child names and no regard for its own writes, and is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import (
    Condition,
    Json,
    Object,
    ObjectKey,
    ObjectMeta,
    OwnerReference,
    Struct,
)
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wire import Transport
from clusterwright.conditions import set_condition
from clusterwright.runtime.client import Client, Original
from clusterwright.runtime.clock import Clock, LoopClock
from clusterwright.runtime.errors import AlreadyExists, Conflict, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Result, Watch
from clusterwright.simulation.witness import Witness
from clusterwright.simulation.world import Program, Scenario, Violation, World

GROUP: Final = "sample.clusterwright.dev"
FINALIZER: Final = f"{GROUP}/parent"
NAMESPACE: Final = "default"


class ParentSpec(Struct):
    """The wanted number of children."""

    children: int = 0


class ParentStatus(Struct):
    """The present number of children."""

    children: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class Parent(Object):
    """An object that wants children."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "Parent"
    spec: ParentSpec = ParentSpec()
    status: ParentStatus | None = None


class Child(Object):
    """An object with an owner."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "Child"


def crds() -> list[Json]:
    """Return the definitions of both kinds."""
    open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found: list[Json] = []
    for kind, plural in (("Parent", "parents"), ("Child", "children")):
        schema = {"type": "object", "properties": {"spec": open_object, "status": open_object}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
        found.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                    "scope": "Namespaced",
                    "versions": [version],
                },
            }
        )
    return found


class ParentReconciler:
    """Creates and deletes children up to the wanted number. `random`: give children random names, which is a mistake."""

    def __init__(self, client: Client, clock: Clock, random: Random | None = None) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._patcher = Patcher(client, clock)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass."""
        original = await self._client.read(Parent, key)
        if original is None:
            return Result.await_change()
        case = await ensure_finalizer(self._patcher, original, FINALIZER)
        if case in {Finalization.ADDED, Finalization.ABSENT}:
            return Result.await_change()
        parent = original.object
        children = list(await self._client.list(Child, namespace=key.namespace, owner=parent.metadata.uid))
        if case is Finalization.CLEANUP:
            return await self._clean_up(original, children)
        wanted = parent.spec.children
        if self._random is None:
            names = {f"{key.name}-{n}" for n in range(wanted)}
            missing = sorted(names - {child.metadata.name for child in children})
            surplus = [child for child in children if child.metadata.name not in names]
        else:
            missing = [f"{key.name}-{self._random.getrandbits(40):x}" for _ in range(wanted - len(children))]
            surplus = children[wanted:]
        for child in surplus:
            await self._delete(child)
        for name in missing:
            await self._create(parent, name)
        # not `children` plus what was just made: what is there is what the status says
        count = len(await self._client.list(Child, namespace=key.namespace, owner=parent.metadata.uid))
        status = parent.status or ParentStatus()
        ready = Condition(type="Ready", status="True" if count == wanted else "False", reason="Counted", message=f"{count} of {wanted}")
        conditions = set_condition(status.conditions, ready, generation=parent.metadata.generation, now=self._clock.now())
        after = replace(parent, status=replace(status, children=count, conditions=conditions))
        await self._patcher.patch(original, after, owned_conditions=("Ready",), observed_generation=True)
        return Result.await_change()

    async def _clean_up(self, original: Original[Parent], children: list[Child]) -> Result:
        for child in children:
            await self._delete(child)
        if not await self._client.list(Child, namespace=original.object.metadata.namespace, owner=original.object.metadata.uid):
            await self._patcher.patch(original, without_finalizer(original.object, FINALIZER))
        return Result.await_change()

    async def _create(self, parent: Parent, name: str) -> None:
        owner = OwnerReference(
            api_version=parent.api_version, kind=parent.kind, name=parent.metadata.name, uid=parent.metadata.uid, controller=True
        )
        # it may be ours from a pass whose answer was lost, or a predecessor's, whose event will wake us when it goes
        with suppress(AlreadyExists):
            await self._client.create(Child(metadata=ObjectMeta(namespace=parent.metadata.namespace, name=name, owner_references=(owner,))))

    async def _delete(self, child: Child) -> None:
        with suppress(NotFound):  # a Conflict is raised, and the pass run again: another one may have its name, or it may not
            await self._client.delete(Child, child.key, uid=child.metadata.uid)


def program(world: World, *, broken: bool = False) -> Program:
    """Return the controller's process."""

    async def main(transport: Transport, clock: LoopClock, random: Random) -> None:
        manager = Manager(transport, clock=clock, random=random)
        client: Client = manager.client
        if broken:
            manager.rest.observer = None
        else:
            client = Witness(manager.client, world, (Parent, Child))
        manager.add_controller(
            "parent",
            Parent,
            lambda controller: ParentReconciler(client, clock, random if broken else None),
            watches=(Watch(Child, owners(GROUP, "Parent")),),
            concurrency=2,
        )
        await manager.run()

    return main


def sound(world: World) -> Program:
    """Return the correct controller."""
    return program(world)


def broken(world: World) -> Program:
    """Return the controller with the two mistakes."""
    return program(world, broken=True)


class Judge:
    """Checks every change of the store immediately, and records the worst state."""

    def __init__(self, world: World) -> None:
        self._allowed: dict[str, int] = {}
        self._living: dict[str, dict[str, None]] = {}
        self.violation = ""
        world.server.store.table(f"children.{GROUP}").hooks.append(self)

    def allow(self, parent: str, children: int) -> None:
        """Record how many children the user wants: never more than the most that were ever wanted may exist."""
        self._allowed[parent] = max(children, self._allowed.get(parent, 0))

    def offer(self, event: Any) -> None:
        """Handle a change of a child."""
        obj = msgspec.json.decode(event.entry.raw)
        parent, name = obj["metadata"]["ownerReferences"][0]["name"], obj["metadata"]["name"]
        living = self._living.setdefault(parent, {})
        if event.type == "DELETED":
            living.pop(name, None)
        else:
            living[name] = None
        if len(living) > self._allowed.get(parent, 0) and not self.violation:
            self.violation = f"{parent} has {len(living)} children, of {self._allowed.get(parent, 0)} wanted at most"


class Users:
    """Creates, scales, labels, shares and deletes two Parents, and checks the results."""

    def __init__(self, world: World, judge: Judge) -> None:
        self._world = world
        self._judge = judge
        self._random = Random(world.random.getrandbits(64))
        self.wanted: dict[str, int] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._foreign: dict[str, list[str]] = {}

    async def act(self, step: int) -> None:
        """Run some user actions, at some times."""
        await self._world.clock.sleep(self._random.uniform(0, 30))
        name = self._random.choice(["ada", "bob"])
        if name not in self.wanted:
            await self._make(name)
            return
        match self._random.randrange(7):
            case 0 | 1:
                self.wanted[name] = self._random.randrange(0, 6)
                self._judge.allow(name, self.wanted[name])
                await _patch(self._world, name, {"spec": {"children": self.wanted[name]}})
            case 2 | 3:
                self._labels[name][f"step-{step}"] = "kept"
                await _patch(self._world, name, {"metadata": {"labels": self._labels[name]}})
            case 4 | 5:
                self._foreign[name].append(f"{GROUP}/step-{step}")
                await _add_foreign(self._world, name, f"{GROUP}/step-{step}")
            case 6:
                await self.delete(name)

    async def _make(self, name: str) -> None:
        children = self._random.randrange(1, 5)
        parent = Parent(metadata=ObjectMeta(namespace=NAMESPACE, name=name), spec=ParentSpec(children=children))
        with suppress(AlreadyExists):  # it is still being deleted
            await self._world.client.create(parent)
            self.wanted[name], self._labels[name], self._foreign[name] = children, {}, []
            self._judge.allow(name, children)

    async def delete(self, name: str) -> None:
        """Delete a Parent; the foreign finalizers are removed first, ours must then be removed."""
        del self.wanted[name]
        found = await self._world.client.get(Parent, ObjectKey(NAMESPACE, name))
        await _patch(self._world, name, {"metadata": {"finalizers": [f for f in found.metadata.finalizers if f == FINALIZER]}})
        await self._world.client.delete(Parent, ObjectKey(NAMESPACE, name))

    async def problem(self) -> str:
        """Return a problem in the present state; empty if there is none."""
        parents = {parent.metadata.name: parent for parent in await self._world.client.list(Parent)}
        if parents.keys() != self.wanted.keys():
            return f"there are {sorted(parents)}, of {sorted(self.wanted)} wanted"
        for name, parent in parents.items():
            children = await self._world.client.list(Child, owner=parent.metadata.uid)
            status, wanted = parent.status or ParentStatus(), self.wanted[name]
            if len(children) != wanted or status.children != wanted or status.observed_generation != parent.metadata.generation:
                return f"{name}: {len(children)} children, status {status.children}, wanted {wanted}"
            if not {FINALIZER, *self._foreign[name]} <= set(parent.metadata.finalizers):
                return f"{name}: lost update of finalizers"
            if not {*self._foreign[name]} <= {condition.type for condition in status.conditions}:
                return f"{name}: lost update of conditions"
            if dict(parent.metadata.labels) != self._labels[name]:
                return f"{name}: lost update of labels"
        if len(await self._world.client.list(Child)) != sum(self.wanted.values()):
            return "there are children without a parent"
        return ""


def scenario(make: Callable[[World], Program], *, steps: int = 12) -> Scenario:
    """Run user actions under faults; then calm down and check the result; then delete everything."""

    async def play(world: World) -> None:
        for crd in crds():
            await world.client.create(crd)
        judge = Judge(world)
        users = Users(world, judge)
        world.start("controller", make(world))
        for step in range(steps):
            await users.act(step)
        world.calm()
        await world.until_nothing(users.problem, within=3000)
        for name in list(users.wanted):
            await users.delete(name)
        await world.until_nothing(users.problem, within=3000)
        await world.clock.sleep(1000)
        problems = [judge.violation, *world.violations, *(check() for check in world.checks.values())]
        if found := next(filter(None, problems), ""):
            raise Violation(found)

    return play


async def _patch(world: World, name: str, patch: Json) -> None:
    await world.client.patch(gvk_of(Parent), ObjectKey(NAMESPACE, name), patch)


async def _add_foreign(world: World, name: str, finalizer: str) -> None:
    """Act as another controller: add its finalizer and its condition, with locks."""
    key = ObjectKey(NAMESPACE, name)
    for subresource in ("", "status"):
        while True:
            found = await world.client.get(Parent, key)
            locked = {"resourceVersion": found.metadata.resource_version}
            if subresource:
                conditions = [msgspec.to_builtins(c) for c in found.status.conditions] if found.status else []
                conditions.append(
                    {"type": finalizer, "status": "True", "reason": "Foreign", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                )
                patch: Json = {"metadata": locked, "status": {"conditions": conditions}}
            else:
                patch = {"metadata": {**locked, "finalizers": [*found.metadata.finalizers, finalizer]}}
            try:
                await world.client.patch(gvk_of(Parent), key, patch, subresource=subresource)
                break
            except Conflict:
                continue
