"""Leases are renewed on a thread of their own: an event loop that is busy with passes does not lose them."""

from __future__ import annotations

import asyncio
import threading
from random import Random
from time import monotonic

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.lease_thread import LeaseThread
from clusterwright.runtime.leases import LeaderElector, LeaseTimes
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.shards import ShardOptions
from support.patience import PATIENCE

KEY = ObjectKey("kube-system", "lease")


def api_server() -> ApiServer:
    """For one thread only: what is beside it asks another."""
    server = ApiServer(now=SystemClock().now, random=Random(1), authorizer=RbacAuthorizer())
    server.ensure_namespaces()
    server.ensure(bootstrap_roles())
    return server


async def test_a_loop_that_does_nothing_else_for_long_keeps_its_lease() -> None:
    clock, server = SystemClock(), api_server()
    fence = Fence(clock)
    async with LeaseThread(InProcessTransport(server), clock, "test", lambda *_: None) as lease_transport:
        elector = LeaderElector(
            lease_transport.client, clock, Random(1), KEY, "me", LeaseTimes(duration=300, renew_deadline=200, retry=0.02), fence
        )
        await lease_transport.run(elector.acquire)
        holding = asyncio.create_task(lease_transport.run(elector.hold))
        await asyncio.sleep(0)
        until = fence._until
        give_up = monotonic() + PATIENCE
        renewals = 0
        while renewals < 5:  # and never back to the event loop
            assert monotonic() < give_up
            if fence._until != until:
                renewals, until = renewals + 1, fence._until
        assert fence.is_open
        holding.cancel()
        await asyncio.wait([holding])
        after = fence._until
        await lease_transport.run(elector.release)
    assert until <= after
    assert not fence.is_open
    server.close()


async def test_a_cancelled_caller_returns_after_the_work_has_ended() -> None:
    clock, server = SystemClock(), api_server()
    steps: list[str] = []

    async def work() -> None:
        try:
            steps.append(threading.current_thread().name)
            await asyncio.sleep(PATIENCE)
        finally:
            await asyncio.sleep(0.05)
            steps.append("ended")

    async def fail() -> None:
        raise LookupError("there")

    async with LeaseThread(InProcessTransport(server), clock, "test", lambda *_: None) as lease_transport:
        running = asyncio.create_task(lease_transport.run(work))
        while not steps:  # noqa: ASYNC110 - the thread begins in its own time
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert steps == ["leases", "ended"]
        with pytest.raises(LookupError, match="there"):
            await lease_transport.run(fail)
    server.close()
    assert "leases" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("kind", ["leader", "member"])
async def test_a_manager_keeps_its_lease_aside_and_counts_that_with_the_rest(kind: str) -> None:
    clock, server, leases = SystemClock(), api_server(), api_server()
    shards = ShardOptions(group=KEY, belongs_to=lambda kind, key, raw: key.name, identity="me")
    options = Options(leader_election=KEY, identity="me") if kind == "leader" else Options(shards=shards)
    manager = Manager(
        InProcessTransport(server), clock=clock, random=Random(1), options=options, lease_transport=InProcessTransport(leases)
    )  # fmt: skip
    running = asyncio.create_task(manager.run())
    async with asyncio.timeout(PATIENCE):
        while not (manager._started and manager.fence.is_open):  # noqa: ASYNC110 - it has to lead first
            await asyncio.sleep(0.02)
        manager.stop()
        await running

    assert not manager.fence.is_open
    assert manager.metrics.requests.value("POST", "201") >= 1
    server.close()
    leases.close()


async def test_a_missing_right_to_leases_is_named_like_any_other() -> None:
    clock, server, leases = SystemClock(), api_server(), api_server()
    manager = Manager(
        InProcessTransport(server),
        clock=clock,
        random=Random(1),
        options=Options(leader_election=KEY, identity="me"),
        lease_transport=InProcessTransport(leases, User("nobody")),
    )
    running = asyncio.create_task(manager.run())
    async with asyncio.timeout(PATIENCE):
        while not manager.rights.missing:  # noqa: ASYNC110 - it has to ask first
            await asyncio.sleep(0.02)
        manager.stop()
        await running

    assert [str(right) for right in manager.rights.missing] == ["get leases.coordination.k8s.io in namespace kube-system"]
    assert not manager.fence.is_open
    server.close()
    leases.close()
