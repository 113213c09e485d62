"""Remediation storms: Nodes die, one, some, most of them; their MachineHealthCheck judges, their MachineDeployment replaces.

All controllers and the in-memory infrastructure, in virtual time, in peace and while everything between controllers and API server goes
wrong. A judge sees every deletion of a Machine in the moment it is asked for: nobody healthy goes, and nobody at all while so many
are down that remediation is held back.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from clusterwright import app
from clusterwright.api.core import Machine, MachineHealthCheck
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request
from clusterwright.conditions import get, is_true
from clusterwright.inmemory import faults
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.plane import NAMESPACE, Plane, prepare
from clusterwright.simulation.world import Violation, World, run

HOUR = 3600.0
WORKERS, LIMIT = 5, 2
LABELS = {"pool": "w"}


class Judged:
    """The controllers' way to the API server. Whom they want deleted must be down; and not too many may be down at once."""

    def __init__(self, inner: Any, down: set[str]) -> None:
        self._inner, self._down = inner, down

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send(self, request: Request) -> Any:
        if request.method == "DELETE" and "/machines/" in request.path:
            name = request.path.rpartition("/")[2]
            if name not in self._down:
                raise Violation(f"Machine {name} is deleted although its Node is well")
            if len(self._down) > LIMIT:
                raise Violation(f"Machine {name} is deleted while {len(self._down)} of {WORKERS} are down")
        return await self._inner.send(request)


class Storm:
    """The plane, and the hand that breaks and mends Nodes."""

    def __init__(self, world: World, down: set[str]) -> None:
        self.cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
        self.plane = Plane(world.server, self.cloud, world.clock)
        self.down = down

    async def machines(self) -> list[Machine]:
        found = await self.plane.client.list(Machine, labels=LABELS)
        return [m for m in found if m.metadata.deletion_timestamp is None]

    async def strike(self, count: int) -> list[str]:
        """So many Nodes die."""
        names = sorted(m.metadata.name for m in await self.machines())[:count]
        self.down.update(names)
        for name in names:
            await self.plane.annotate(DevMachine, name, {faults.FAULT: faults.NODE_DIES})
        return names

    async def mend(self, names: list[str]) -> None:
        """They come back."""
        for name in names:
            await self.plane.annotate(DevMachine, name, {faults.FAULT: None})
        self.down.difference_update(names)

    async def is_whole(self, without: list[str]) -> bool:
        """Whether there are as many healthy Machines as are wanted, and none of these."""
        machines = await self.machines()
        everybody = await self.plane.client.list(Machine, labels=LABELS)
        return (
            len(everybody) == len(machines) == WORKERS
            and not {m.metadata.name for m in machines} & set(without)
            and all(is_true(m.status.conditions, "Available") and is_true(m.status.conditions, "HealthCheckSucceeded") for m in machines)
        )

    async def allowed(self) -> str:
        check = await self.plane.client.get(MachineHealthCheck, ObjectKey(NAMESPACE, "w"))
        condition = get(check.status.conditions, "RemediationAllowed")
        return condition.status if condition else ""


async def storms(world: World) -> None:
    prepare(world.server)
    down: set[str] = set()
    storm = Storm(world, down)
    p = storm.plane

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        judged = Judged(transport, down)
        await app.build_manager(judged, clock=clock, random=random, keys=FixedKeySource(8), cloud=storm.cloud).run()

    process = world.start("controllers", controllers)
    objects = samples.cluster("c") + samples.machine("c", "cp", is_control_plane=True, seconds=1)
    objects[2]["spec"]["clusterConfiguration"].pop("encryptionAlgorithm")  # RSA signatures are the same each time
    objects += samples.workers("c", "w", replicas=WORKERS, seconds=1)
    await p.apply([*objects, samples.machine_health_check("c", "w", labels=LABELS)])
    await p.until_available("c", control_plane=1, workers=WORKERS, within=3 * HOUR)

    for count in (1, LIMIT):
        names = await storm.strike(count)
        await p.until(lambda n=names: storm.is_whole(n), f"{names} are replaced", within=6 * HOUR, step=3)  # type: ignore[misc]
        down.clear()

    names = await storm.strike(LIMIT + 2)

    async def held_back() -> bool:
        sick = [m for m in await storm.machines() if get(m.status.conditions, "HealthCheckSucceeded").status == "False"]
        return await storm.allowed() == "False" and len(sick) == LIMIT + 2

    await p.until(held_back, "remediation is held back, and says so", within=3 * HOUR, step=3)
    await p.clock.sleep(1200)  # nobody is deleted in the meantime: the judge would tell
    await storm.mend(names)
    await p.until(lambda: storm.is_whole([]), "those that came back are healthy again", within=3 * HOUR, step=3)
    if {m.metadata.name for m in await storm.machines()} < set(names):
        raise Violation("who recovered was replaced")

    async def allowed_again() -> bool:
        return await storm.allowed() == "True"

    await p.until(allowed_again, "remediation is allowed again", within=HOUR, step=3)
    victim = (await storm.strike(1))[0]
    await storm.plane.workload("c").client.delete(Node, ObjectKey("", victim))
    await p.until(lambda: storm.is_whole([victim]), "a Machine without its Node is replaced", within=6 * HOUR, step=3)
    down.update(m.metadata.name for m in await p.client.list(Machine))  # whoever goes now goes with the cluster
    if process.failure is not None:
        raise Violation(f"the controllers ended: {process.failure}")
    await storm.cloud.close()


def test_storms_in_peace() -> None:
    outcome = run(1, storms, NO_FAULTS)

    assert (str(outcome.violation), outcome.crashes) == ("None", 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1))
def test_storms_with_everything_going_wrong(seed: int) -> None:
    outcome = run(seed, storms, ALL_FAULTS)

    assert str(outcome.violation) == "None"
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 20))
def test_storms_with_everything_going_wrong_many_times(seed: int) -> None:
    assert str(run(seed, storms, ALL_FAULTS).violation) == "None"
