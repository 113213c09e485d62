"""Who waits for a lease says for whom: somebody looks at that process, and sees it do nothing."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.leases import LeaderElector
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
        waiting = asyncio.create_task(second.acquire())
        for _ in range(5):
            await clock.sleep(5)
            await first._try()
        assert not waiting.done()
        await first.release()
        await asyncio.wait_for(waiting, 30)
        assert second.is_leader
        server.close()

    with caplog.at_level(logging.WARNING):
        run_virtual(main())

    (said,) = [vars(record)["fields"] for record in caplog.records if record.getMessage() == "Waiting for the lease"]
    assert said == {"lease": "kube-system/lease", "held_by": "first", "identity": "second"}
