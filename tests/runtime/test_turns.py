"""Controllers of one process write one object at the same time: no conflict, and nothing lost."""

import asyncio
from random import Random
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.patch import Patcher
from clusterwright.simulation.sample import Parent, ParentStatus


class Counting:
    """Requests take a moment each way, so that writers would meet; what is refused is counted."""

    def __init__(self, inner):
        self.inner = inner
        self.conflicts = self.writes = 0

    async def send(self, request):
        await asyncio.sleep(0.005)
        response = await self.inner.send(request)
        self.writes += request.method == "PATCH"
        self.conflicts += response.status == 409
        await asyncio.sleep(0.005)
        return response

    def __getattr__(self, name):
        return getattr(self.inner, name)


async def test_writers_of_one_process_do_not_meet_in_conflicts(world):
    transport = Counting(InProcessTransport(world.server))
    manager = Manager(transport, clock=SystemClock(), random=Random(1))
    nobody: Any = None
    manager.add_controller("parent", Parent, lambda controller: nobody)
    await world.make()
    group = asyncio.ensure_future(manager.cache.run())
    await manager.cache.informer(Parent)
    await manager.cache.synced()
    found = await manager.client.list(Parent)
    key = found[0].key
    patcher = Patcher(manager.client, SystemClock(), Random(2))

    async def controller(name):
        for turn in range(5):
            original: Any = await manager.client.read(Parent, key)
            await asyncio.sleep(0.01)  # a pass takes its time
            was = replace(original.object, status=original.object.status or ParentStatus())
            mine = Condition(type=name, status="True", reason=f"Turn{turn}", message="", last_transition_time=SystemClock().now())
            others = tuple(c for c in was.status.conditions if c.type != name)
            finalizers = (*was.metadata.finalizers, f"example.com/{name.lower()}-{turn}")
            after = replace(
                was, status=replace(was.status, conditions=(*others, mine)), metadata=replace(was.metadata, finalizers=finalizers)
            )
            await patcher.patch(original, after, owned_conditions=(name,))

    await asyncio.gather(*(controller(f"C{n}") for n in range(6)))
    stored = await manager.client.live.get(Parent, key)
    group.cancel()
    await asyncio.wait([group])

    assert {c.type: c.reason for c in stored.status.conditions if c.type.startswith("C")} == {f"C{n}": "Turn4" for n in range(6)}
    assert len([f for f in stored.metadata.finalizers if f.startswith("example.com/c")]) == 30
    assert transport.writes == 60
    assert transport.conflicts == 0
