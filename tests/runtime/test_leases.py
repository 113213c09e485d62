"""Who waits for a lease says for whom: somebody looks at that process, and sees it do nothing."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.leases import LEASE, LeaderElector, LeadershipLost
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.world import START

KEY = ObjectKey("kube-system", "lease")


async def a_leader(
    transport: type[InProcessTransport],
) -> tuple[ApiServer, RestClient, LeaderElector, Fence, asyncio.Task[None]]:
    """Who has acquired the lease and holds it, in a task."""
    clock = LoopClock(START)
    server = management_server(clock, Random(1))
    client, fence = RestClient(transport(server), clock=clock), Fence(clock)
    leader = LeaderElector(client, clock, Random(1), KEY, "leader", fence=fence)
    await leader.acquire()
    return server, client, leader, fence, asyncio.create_task(leader.hold())


def test_a_candidate_names_the_holder_once_and_leads_when_it_lets_go(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        client = RestClient(InProcessTransport(server), clock=clock)
        first, second = (LeaderElector(client, clock, Random(n), KEY, name) for n, name in enumerate(("first", "second")))
        await first.acquire()
        holding, waiting = asyncio.create_task(first.hold()), asyncio.create_task(second.acquire())
        await clock.sleep(25)
        assert not waiting.done()
        holding.cancel()
        await asyncio.wait([holding])
        await first.release()
        await asyncio.wait_for(waiting, 30)
        assert second.is_leader
        server.close()

    with caplog.at_level(logging.WARNING):
        run_virtual(main())

    (said,) = [vars(record)["fields"] for record in caplog.records if record.getMessage() == "Waiting for the lease"]
    assert said == {"lease": "kube-system/lease", "held_by": "first", "identity": "second"}


def test_a_former_holder_stops_at_once_and_does_not_retake_the_lease() -> None:
    """However that came about: the Lease was deleted, or another wrote itself into it. Somebody else may be at work already."""

    async def main(interfere: str) -> None:
        server, client, leader, fence, holding = await a_leader(InProcessTransport)
        await asyncio.sleep(3)
        assert fence.is_open
        if interfere == "delete":
            await client.delete(LEASE, KEY)
        else:
            await client.patch(LEASE, KEY, {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 1}})
        with pytest.raises(LeadershipLost, match="was deleted" if interfere == "delete" else "held by another"):
            await asyncio.wait_for(holding, 3)
        assert not fence.is_open
        assert not leader.is_leader
        left = await client.find(LEASE, KEY)
        assert (left and left.at("spec", "holderIdentity")) == (None if interfere == "delete" else "another")
        server.close()

    for interfere in ("delete", "write"):
        run_virtual(main(interfere))


def test_a_lease_that_somebody_annotated_is_still_held() -> None:
    async def main() -> None:
        server, client, _, fence, holding = await a_leader(InProcessTransport)
        for n in range(20):
            await client.patch(LEASE, KEY, {"metadata": {"annotations": {"note": str(n)}}})
            await asyncio.sleep(2)
            assert fence.is_open
        lease = await client.get(LEASE, KEY)
        assert (lease.at("metadata", "annotations", "note"), lease.at("spec", "leaseTransitions")) == ("19", 0)
        assert not holding.done()
        holding.cancel()
        server.close()

    run_virtual(main())


class Slow(InProcessTransport):
    """Answers after a while."""

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(4.5)
        return await super().send(request)


def test_an_api_server_that_answers_slowly_does_not_cost_the_lease() -> None:
    async def main() -> None:
        server, _, _, fence, holding = await a_leader(Slow)
        for _ in range(600):
            await asyncio.sleep(0.1)
            assert fence.is_open
        holding.cancel()
        server.close()

    run_virtual(main())
