"""Virtual time: however long a node takes to boot, the token in its data is valid when it tries to join.

The workload cluster cleans up as a real one does: a token that has expired is deleted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachinePool
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.world import Outcome, World, run
from support import kubeadmconfig as harness

NS = "default"
HOUR = 3600.0
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


@pytest.fixture(autouse=True)
async def served(new_world: Any) -> None:
    """The harness has the definitions of our kinds ready."""
    await new_world()


class Scene:
    """A running controller, a workload cluster that deletes expired tokens, and hands to arrange with."""

    def __init__(self, world: World, options: dict[str, Any]) -> None:
        self.options = options

        self.world = world
        world.server.registry.add(harness._SERVED.values())
        world.server.watches.bookmark_interval = HOUR  # a week of bookmarks would be most of the work
        self.remote = RestClient(InProcessTransport(ApiServer(now=world.clock.now, random=Random(1))), clock=world.clock)
        self.workload = harness.Workload(self.remote)
        self.hands = harness.World()
        self.hands.judge = world.client
        self._no_watches = harness.NoWatches()

    async def start(self) -> None:
        await self.hands.certificates()
        await self.hands.cluster(initialized=True)
        self.world.start("controller", self._program)
        self._cleaner = asyncio.ensure_future(self._clean())

    async def _program(self, transport: Transport, clock: LoopClock, random: Random) -> None:
        manager = Manager(transport, clock=clock, random=random)

        harness.add_controller(manager, random, self.workload, options=self.options)
        await manager.run()

    async def _clean(self) -> None:
        while True:
            for secret in await self.remote.list(Secret, namespace="kube-system"):
                end = secret.data.get("expiration")
                if end is not None and datetime.fromisoformat(end.decode()) < self.world.clock.now():
                    await self.remote.delete(Secret, secret.key)
            await self.world.clock.sleep(600)

    async def can_join(self, name: str) -> bool:
        """Whether a node that boots now, with the data as stored now, is let in."""
        data = (await self.world.client.get(Secret, ObjectKey(NS, name))).data["value"].decode()
        (token,) = set(TOKEN.findall(data))
        secret = await self.remote.find(Secret, ObjectKey("kube-system", f"bootstrap-token-{token[:6]}"))
        if secret is None or secret.data["token-secret"].decode() != token[7:]:
            return False
        return datetime.fromisoformat(secret.data["expiration"].decode()) > self.world.clock.now()

    async def has_data(self, name: str) -> bool:
        return await self.world.client.find(Secret, ObjectKey(NS, name)) is not None


def play(story: Callable[[Scene], Awaitable[None]], **options: Any) -> Outcome:
    async def scenario(world: World) -> None:
        scene = Scene(world, options)
        await scene.start()
        try:
            await story(scene)
        finally:
            scene._cleaner.cancel()

    return run(1, scenario)


@pytest.mark.parametrize("kind", ["worker", "control_plane_machine"])
def test_a_machine_that_takes_three_hours_to_boot_can_join(kind: str) -> None:
    async def story(scene: Scene) -> None:
        await getattr(scene.hands, kind)("m1")
        await scene.world.until(lambda: scene.has_data("m1"), within=60, what="data")
        data = await scene.hands.data("m1")
        await scene.world.client.patch(Machine, ObjectKey(NS, "m1"), {"spec": {"providerID": "dev://1"}})  # it boots with this data
        for _ in range(18):
            await scene.world.clock.sleep(HOUR / 6)
            assert await scene.can_join("m1")
        assert await scene.hands.data("m1") == data  # the same token, prolonged: the data on the machine is what it is
        await scene.world.client.patch(Machine, ObjectKey(NS, "m1"), {"status": {"nodeRef": {"name": "n1"}}}, subresource="status")
        await scene.world.clock.sleep(HOUR)
        assert not await scene.can_join("m1")  # nobody keeps it alive any longer

    assert play(story).virtual_seconds > 4 * HOUR


def test_a_machine_pool_that_is_scaled_after_a_week_can_grow() -> None:
    async def story(scene: Scene) -> None:
        await scene.hands.pool_config("mp1", replicas=1, nodes=1)
        await scene.world.until(lambda: scene.has_data("mp1"), within=60, what="data")
        seen = set()
        for _ in range(7 * 24):
            await scene.world.clock.sleep(HOUR)
            assert await scene.can_join("mp1")
            seen.add(await scene.hands.token("mp1"))
        assert len(seen) > 100  # rotated, not prolonged
        await scene.world.client.patch(MachinePool, ObjectKey(NS, "mp1"), {"spec": {"replicas": 2}})
        for _ in range(6):  # the new node takes its time with the data of this moment
            await scene.world.clock.sleep(HOUR / 6)
            assert await scene.can_join("mp1")

    # a longer life than the default only makes the test shorter
    assert play(story, **{"bootstrap-token-ttl": timedelta(hours=1)}).virtual_seconds > 7 * 24 * HOUR


def test_a_deleted_token_is_replaced_before_the_machine_is_created() -> None:
    async def story(scene: Scene) -> None:
        await scene.hands.worker("m1")
        await scene.world.until(lambda: scene.has_data("m1"), within=60, what="data")
        (secret,) = await scene.remote.list(Secret, namespace="kube-system")
        await scene.remote.delete(Secret, secret.key)
        await scene.world.clock.sleep(600)
        assert await scene.can_join("m1")

    play(story)


def test_an_hour_without_connection_does_not_cost_the_machine_that_is_not_built_yet() -> None:
    async def story(scene: Scene) -> None:
        await scene.hands.worker("m1")
        await scene.world.until(lambda: scene.has_data("m1"), within=60, what="data")
        scene.workload.connected = False
        await scene.world.clock.sleep(HOUR)
        scene.workload.connected = True
        await scene.world.clock.sleep(1200)
        assert await scene.can_join("m1")

    play(story)
