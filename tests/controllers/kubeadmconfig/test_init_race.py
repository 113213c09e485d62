"""Three control-plane Machines race for `kubeadm init` while everything fails and the process dies at any await.

The judge sits in the store and sees every change at once: never may data for `kubeadm init` exist for two living Machines. When it
has calmed down, one Machine has it; when that one is up, all others join.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kubeadmconfig.init_lock import InitLock, Lock
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.faults import ALL_FAULTS
from clusterwright.simulation.world import Outcome, Program, Violation, World, run
from support import kubeadmconfig as harness

NS = "default"
MACHINES = ("m1", "m2", "m3")
IN_ORDINARY_TESTS = 25
IN_SOAK = 2000


def _harness() -> Any:
    return harness


@pytest.fixture(autouse=True)
async def served(new_world: Any) -> None:
    """The harness has the definitions of our kinds ready."""
    await new_world()


class Judge:
    """Sees every change of the store at once, and remembers the first thing that must not be."""

    def __init__(self, world: World) -> None:
        self.living = set(MACHINES)
        self.with_init_data: set[str] = set()
        self.violation = ""
        world.server.store.table("secrets").hooks.append(self)

    def offer(self, event: Any) -> None:
        """A Secret came, changed or went."""
        secret = msgspec.json.decode(event.entry.raw)
        name = secret["metadata"]["name"]
        value = msgspec.convert((secret.get("data") or {}).get("value", ""), bytes)
        self.with_init_data.discard(name)
        if event.type != "DELETED" and b"kubeadm init" in value:
            self.with_init_data.add(name)
        both = self.with_init_data & self.living
        if len(both) > 1 and not self.violation:
            self.violation = f"data for kubeadm init exists for {sorted(both)}"


def controller(workload: Any) -> Program:
    """The process under test: the real controller on the real runtime."""

    async def main(transport: Transport, clock: LoopClock, random: Random) -> None:
        manager = Manager(transport, clock=clock, random=random)

        _harness().add_controller(manager, random, workload)
        await manager.run()

    return main


async def race(world: World) -> None:
    harness = _harness()
    world.server.registry.add(harness._SERVED.values())
    remote = ApiServer(now=world.clock.now, random=Random(1))
    workload = harness.Workload(RestClient(InProcessTransport(remote), clock=world.clock))
    judge = Judge(world)
    random = Random(world.random.getrandbits(64))
    by_hand = harness.World()
    by_hand.judge = world.client
    world.start("controller", controller(workload))
    await by_hand.certificates()
    for name in random.sample(MACHINES, 3):
        await by_hand.control_plane_machine(name)
        await world.clock.sleep(random.uniform(0, 5))
    await by_hand.cluster()
    await world.clock.sleep(random.uniform(0, 120))
    if random.random() < 0.5:  # a Machine goes, perhaps the holder
        victim = await by_hand.holder() or random.choice(MACHINES)
        judge.living.discard(victim)
        await world.client.delete(Machine, ObjectKey(NS, victim))
        await world.client.delete(KubeadmConfig, ObjectKey(NS, victim))
        await world.clock.sleep(random.uniform(0, 120))
    world.calm()
    await world.until(lambda: _one_told(world, judge), within=3000, what="one Machine has data for init")
    if judge.violation:
        raise Violation(judge.violation)
    await by_hand.set_initialized()
    await world.until(lambda: _all_told(world, judge), within=3000, what="all others join")
    if await world.client.find(ConfigMap, ObjectKey(NS, "c1-lock")) is not None:
        raise Violation("the lock outlived the first join")
    if judge.violation:
        raise Violation(judge.violation)


async def _told(world: World, judge: Judge) -> set[str]:
    configs = await world.client.list(KubeadmConfig, namespace=NS)
    return {c.metadata.name for c in configs if c.status.data_secret_name} & judge.living


async def _one_told(world: World, judge: Judge) -> bool:
    return await _told(world, judge) == judge.with_init_data & judge.living != set()


async def _all_told(world: World, judge: Judge) -> bool:
    return await _told(world, judge) == judge.living


def _play(seed: int) -> Outcome:
    return run(seed, race, ALL_FAULTS)


def _violations(seeds: range) -> list[str]:
    return [f"seed {o.seed}: {o.violation}" for o in map(_play, seeds) if o.violation is not None]


def test_never_two_machines_with_data_for_init() -> None:
    assert _violations(range(IN_ORDINARY_TESTS)) == []


@pytest.mark.soak
def test_never_two_machines_with_data_for_init_in_many_runs() -> None:
    assert _violations(range(IN_SOAK)) == []


def test_the_random_runs_cover_enough_cases() -> None:
    """They crash, they wait, and one of them can be repeated exactly."""
    first, again = _play(3), _play(3)

    assert first.digest == again.digest
    assert first.requests > 20
    assert sum(_play(seed).crashes for seed in range(5)) > 0


def test_the_judge_notices_a_controller_without_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def always(self: InitLock, cluster: Any, machine: str) -> Lock:
        return Lock.FREE

    monkeypatch.setattr(InitLock, "acquire", always)

    assert len(_violations(range(5))) > 0
