"""The web view of an embedded API server: wired here, served on the API server's port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from random import Random

from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.serve import RunningServer
from clusterwright.cli import connect
from clusterwright.controllers.kit import registry
from clusterwright.dashboard.door import Door
from clusterwright.dashboard.fleet import Fleet
from clusterwright.dashboard.reasons import Reasons
from clusterwright.dashboard.site import PREFIX, SEGMENT, Site
from clusterwright.offline.survey import Surveyor
from clusterwright.offline.timeline import Decided
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient


async def open_page(
    stack: AsyncExitStack,
    running: RunningServer,
    manager: Manager | None,
    *,
    clock: Clock,
    random: Random,
    keys: KeySource,
    told: Callable[[str], None],
) -> None:
    """Serve the page. `told` gets the link that opens it, for one use, and the next one as soon as that was used.

    It looks at the caches of the controllers; where there are none, at caches of its own.
    """
    rest = RestClient(InProcessTransport(running.server), clock=clock)
    if manager is not None:
        cache = manager.cache
    else:
        cache = Cache(rest, random=random)
        task = asyncio.create_task(cache.run(), name="dashboard-cache")
        stack.push_async_callback(_cancelled, task)

    def history(kind: str, key: ObjectKey) -> Sequence[Decided]:
        names = [e.name for e in registry.ENTRIES if e.kind == kind]
        return [d for name in names for d in manager.traces.of(name, key)] if manager is not None else ()

    fleet = Fleet(cache, clock, history)
    stack.push_async_callback(fleet.close)
    surveyor = Surveyor(rest, connect.reach, clock=clock, random=random, keys=keys)
    door = Door(random, clock.monotonic, lambda token: told(f"{running.url}{PREFIX}/#token={token}"))
    running.http.mount(SEGMENT, Site(door, fleet, Reasons(fleet, surveyor), clock, running.http.port))


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
