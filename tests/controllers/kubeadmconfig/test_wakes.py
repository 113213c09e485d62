"""Nothing waits for a timer: whatever a config waits for wakes it at once, on the real runtime in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kubeadmconfig.build import CONTROLLER
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.reconcile import Watch
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.world import Outcome, World, run
from support import kubeadmconfig as harness

NS = "default"
PATIENCE = 5.0
"""Seconds: less than any requeue of the tables."""

Hands = Any
Act = Callable[[Hands, Any], Awaitable[None]]


@pytest.fixture(autouse=True)
async def served(new_world: Any) -> None:
    """The harness has the definitions of our kinds ready."""
    await new_world()


async def _status(client: Any, change: dict[str, Any]) -> None:
    await client.patch(Cluster, ObjectKey(NS, "c1"), {"status": change}, subresource="status")


async def _infrastructure(hands: Hands, client: Any) -> None:
    await _status(client, {"initialization": {"infrastructureProvisioned": True}})


async def _initialized(hands: Hands, client: Any) -> None:
    await hands.set_initialized()


async def _endpoint(hands: Hands, client: Any) -> None:
    await client.patch(Cluster, ObjectKey(NS, "c1"), {"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}})


async def _unpaused(hands: Hands, client: Any) -> None:
    await client.patch(Cluster, ObjectKey(NS, "c1"), {"spec": {"paused": None}})


async def _certificate(hands: Hands, client: Any) -> None:
    await hands.certificates("ca")


async def _secret(hands: Hands, client: Any) -> None:
    await hands.secret("s", {"k": "v"})


async def _holder_gone(hands: Hands, client: Any) -> None:
    await client.delete(Machine, ObjectKey(NS, "m0"))


async def _cluster(hands: Hands, client: Any) -> None:
    await hands.cluster(initialized=True)


FROM_SECRET = {"files": [{"path": "/a", "contentFrom": {"secret": {"name": "s", "key": "k"}}}]}
ALL = ("ca", "etcd", "proxy", "sa")

# what is waited for -> the Cluster, the certificates that are there, the config, and what happens
WAITS: dict[str, tuple[dict[str, Any] | None, tuple[str, ...], str, dict[str, Any] | None, Act]] = {
    "the Cluster": (None, ALL, "worker", None, _cluster),
    "infrastructure": ({"infrastructure": False, "initialized": True}, ALL, "worker", None, _infrastructure),
    "first control-plane node": ({}, ALL, "worker", None, _initialized),
    "endpoint": ({"initialized": True, "endpoint": None}, ALL, "worker", None, _endpoint),
    "the end of a pause": ({"initialized": True, "paused": True}, ALL, "worker", None, _unpaused),
    "a certificate": ({"initialized": True}, ("sa",), "worker", None, _certificate),
    "a Secret": ({"initialized": True}, ALL, "worker", FROM_SECRET, _secret),
    "a dead holder of the init lock": ({}, ALL, "control_plane_machine", None, _holder_gone),
    "the join instead of init": ({}, ALL, "control_plane_machine", None, _initialized),
}


def _play(what: str, watches: tuple[Watch, ...] = CONTROLLER.watches) -> Outcome:
    cluster, certificates, kind, spec, act = WAITS[what]

    async def scenario(world: World) -> None:
        world.server.registry.add(harness._SERVED.values())
        remote = RestClient(InProcessTransport(ApiServer(now=world.clock.now, random=Random(1))), clock=world.clock)
        hands = harness.World()
        hands.judge = world.client

        async def program(transport: Transport, clock: LoopClock, random: Random) -> None:
            manager = Manager(transport, clock=clock, random=random)

            harness.add_controller(manager, random, harness.Workload(remote), watches=watches)
            await manager.run()

        async def told() -> bool:
            return bool((await world.client.get(KubeadmConfig, ObjectKey(NS, "m1"))).status.data_secret_name)

        await hands.certificates(*certificates)
        if cluster is not None:
            await hands.cluster(**cluster)
        world.start("controller", program)
        if kind == "control_plane_machine":
            await hands.control_plane_machine("m0")
            await world.clock.sleep(10)
        await getattr(hands, kind)("m1", spec=spec)
        await world.clock.sleep(1001.5)  # long enough for every requeue, and for failures to be tried rarely
        assert not await told()
        await act(hands, world.client)
        await world.until(told, within=PATIENCE, what=f"data after {what}")

    return run(1, scenario)


@pytest.mark.parametrize("what", WAITS)
def test_a_config_does_not_wait_for_a_timer(what: str) -> None:
    assert _play(what).violation is None


@pytest.mark.parametrize(
    ("what", "without"), [("endpoint", Cluster), ("a certificate", Secret), ("a dead holder of the init lock", Machine)]
)
def test_without_its_watch_a_config_waits_for_a_timer(what: str, without: Any) -> None:
    watches = tuple(w for w in CONTROLLER.watches if w.kind is not without)

    assert _play(what, watches).violation is not None
