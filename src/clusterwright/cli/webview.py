"""The web view of an embedded API server: built here, served on the API server's port."""

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
from clusterwright.verdicts.judge import Judge


async def open_page(
    stack: AsyncExitStack,
    running: RunningServer,
    manager: Manager | None,
    judge: Judge | None = None,
    *,
    clock: Clock,
    random: Random,
    keys: KeySource,
    told: Callable[[str], None],
) -> None:
    """Serve the page. Call `told` with a link that opens it once, and with the next link after each use.

    The page shows the verdicts of the controllers' judge. Without one, it has its own cache and judge, which work only while the page is
    open.
    """
    rest = RestClient(InProcessTransport(running.server), clock=clock)
    if judge is None:
        cache = Cache(rest, random=random)
        judge = Judge(cache, clock, always=False)
        stack.push_async_callback(judge.households.close)
        for name, work in (("dashboard-cache", cache.run()), ("dashboard-judge", judge.run())):
            stack.push_async_callback(_cancelled, asyncio.create_task(work, name=name))

    def history(kind: str, key: ObjectKey) -> Sequence[Decided]:
        names = [e.name for e in registry.ENTRIES if e.kind == kind]
        return [d for name in names for d in manager.traces.of(name, key)] if manager is not None else ()

    fleet = Fleet(judge, history)
    surveyor = Surveyor(rest, connect.reach, clock=clock, random=random, keys=keys)
    door = Door(random, clock.monotonic, lambda token: told(f"{running.url}{PREFIX}/#token={token}"))
    running.http.mount(SEGMENT, Site(door, fleet, Reasons(fleet, surveyor), clock, running.http.port))


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
