"""The web view: made here, and served on the port of the embedded API server, or on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.serve import RunningServer
from clusterwright.cli import connect
from clusterwright.controllers.kit import registry
from clusterwright.dashboard.door import Door
from clusterwright.dashboard.fleet import Fleet
from clusterwright.dashboard.reasons import Reasons
from clusterwright.dashboard.site import PREFIX, SEGMENT, Site, link
from clusterwright.offline.survey import Surveyor
from clusterwright.offline.timeline import Decided
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.verdicts.judge import Judge

SESSIONS = "sessions.json"
"""The file for sessions in the data directory."""


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
    folder: Path | None = None,
) -> None:
    """Serve the page at an API server's port. Call `told` with a link that opens it once, and with the next link after each use.

    The page shows the verdicts of the controllers' judge. Without one, it has its own cache and judge, which work only while the page is
    open. `folder`: where sessions are kept over a restart; None: nowhere.
    """
    http = running.http
    site = page(
        stack,
        RestClient(InProcessTransport(running.server), clock=clock),
        manager,
        judge,
        clock=clock,
        random=random,
        keys=keys,
        told=told,
        kept=None if folder is None else folder / SESSIONS,
        url=running.url,
        port=http.port,
        may_invite=lambda request: http.is_allowed(request, "create", f"{PREFIX}/link"),
    )
    http.mount(SEGMENT, site)
    http.front = f"{PREFIX}/"


def page(
    stack: AsyncExitStack,
    rest: RestClient,
    manager: Manager | None = None,
    judge: Judge | None = None,
    *,
    clock: Clock,
    random: Random,
    keys: KeySource,
    told: Callable[[str], None],
    url: str,
    port: int,
    kept: Path | None = None,
    **options: Any,
) -> Site:
    """Return the page of the installation that a client reads. `options`: those of Site."""
    if judge is None:
        cache = Cache(rest, random=random)
        judge = Judge(cache, clock, always=False)
        stack.push_async_callback(judge.objects_by_cluster.close)
        for name, work in (("dashboard-cache", cache.run()), ("dashboard-judge", judge.run())):
            stack.push_async_callback(_cancelled, asyncio.create_task(work, name=name))

    def history(kind: str, key: ObjectKey) -> Sequence[Decided]:
        names = [e.name for e in registry.ENTRIES if e.kind == kind]
        return [d for name in names for d in manager.traces.of(name, key)] if manager is not None else ()

    def errors(kind: str, key: ObjectKey) -> Sequence[Json]:
        selection = {"kind": kind, "namespace": key.namespace, "name": key.name}
        return [failure.to_json() for failure in manager.failures.selected(**selection)] if manager is not None else ()

    fleet = Fleet(judge, history, errors)
    surveyor = Surveyor(rest, connect.reach, clock=clock, random=random, keys=keys)
    door = Door(random, lambda: clock.now().timestamp(), lambda token: told(link(url, token)), kept)
    return Site(door, fleet, Reasons(fleet, surveyor), clock, port, url=url, **options)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
