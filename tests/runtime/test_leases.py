"""Who waits for a lease says for whom: somebody looks at that process, and sees it do nothing."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.leases import LEASE, LeaderElector, LeadershipLost
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.world import START


def test_a_candidate_names_the_holder_once_and_leads_when_it_lets_go(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        client = RestClient(InProcessTransport(server), clock=clock)
        key = ObjectKey("kube-system", "lease")
        first, second = (LeaderElector(client, clock, Random(n), key, name) for n, name in enumerate(("first", "second")))
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


def test_who_is_no_holder_any_more_stops_at_once_and_takes_nothing_back() -> None:
    """However that came about: the Lease was deleted, or another wrote itself into it. Somebody else may be at work already."""

    async def main(interfere: str) -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        client = RestClient(InProcessTransport(server), clock=clock)
        key, fence = ObjectKey("kube-system", "lease"), Fence(clock)
        leader = LeaderElector(client, clock, Random(1), key, "leader", fence=fence)
        await leader.acquire()
        holding = asyncio.create_task(leader.hold())
        await clock.sleep(3)
        assert fence.is_open
        if interfere == "delete":
            await client.delete(LEASE, key)
        else:
            await client.patch(LEASE, key, {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 1}})
        with pytest.raises(LeadershipLost, match="taken away" if interfere == "delete" else "held by another"):
            await asyncio.wait_for(holding, 3)
        assert not fence.is_open
        assert not leader.is_leader
        left = await client.find(LEASE, key)
        assert (left and left.at("spec", "holderIdentity")) == (None if interfere == "delete" else "another")
        server.close()

    for interfere in ("delete", "write"):
        run_virtual(main(interfere))


def test_a_lease_that_somebody_annotated_is_still_held() -> None:
    async def main() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        client = RestClient(InProcessTransport(server), clock=clock)
        key, fence = ObjectKey("kube-system", "lease"), Fence(clock)
        leader = LeaderElector(client, clock, Random(1), key, "leader", fence=fence)
        await leader.acquire()
        holding = asyncio.create_task(leader.hold())
        for n in range(20):
            await client.patch(LEASE, key, {"metadata": {"annotations": {"note": str(n)}}})
            await clock.sleep(2)
            assert fence.is_open
        lease = await client.get(LEASE, key)
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
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        fence = Fence(clock)
        leader = LeaderElector(
            RestClient(Slow(server), clock=clock), clock, Random(1), ObjectKey("kube-system", "lease"), "me", fence=fence
        )
        await leader.acquire()
        holding = asyncio.create_task(leader.hold())
        for _ in range(600):
            await clock.sleep(0.1)
            assert fence.is_open
        holding.cancel()
        server.close()

    run_virtual(main())
