"""What `up` tells of its clusters while it runs: a line whenever the verdict on one is another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.offline import glance
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.informer import Entry, Informer

MOST: Final = 50
"""Clusters of which lines can be read; who has more looks at lists and pages."""
SETTLE: Final = 0.5
"""Seconds for what changes together."""
REST: Final = 9.0
"""How long to rest after a look, in times of what it took: controllers come first."""
LOOK_AGAIN: Final = timedelta(seconds=30)
"""After which a cluster that is not fine is judged again though nothing happened: patience ends with time alone."""


class Teller:
    """Follows the Clusters that controllers know anyway, and reads what belongs to one only when it says something else than before."""

    def __init__(self, cache: Cache, client: Client, clock: Clock, say: Callable[[str], None]) -> None:
        self._cache, self._client, self._clock, self._say = cache, client, clock, say
        self._dirty: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()
        self._said: dict[ObjectKey, tuple[str, str]] = {}
        """By Cluster: what it said itself when it was judged last."""
        self._told: dict[ObjectKey, tuple[str, str, str]] = {}
        self._due: dict[ObjectKey, datetime] = {}

    async def run(self) -> None:
        """Tell until there are too many clusters for that."""
        informer = await self._cache.informer(Cluster)
        informer.subscribe(self._changed)
        while True:
            await self._something_to_do()
            await self._clock.sleep(SETTLE)
            if sum(1 for _ in informer.entries()) > MOST:
                self._say(f"more than {MOST} clusters: from now on only `get clusters`, `explain` and the web view tell how they are")
                return
            begun = self._clock.monotonic()
            try:
                await self._judge(informer)
            except ApiError:
                self._wake.set()  # the next look may succeed
            await self._clock.sleep(REST * (self._clock.monotonic() - begun))

    def _changed(self, old: Entry | None, new: Entry | None, initial: bool) -> None:
        self._dirty[(new or old).key] = None  # type: ignore[union-attr]  # one of them is there
        self._wake.set()

    async def _something_to_do(self) -> None:
        soonest = min(self._due.values(), default=None)
        try:
            async with asyncio.timeout(None if soonest is None else max(0.0, (soonest - self._clock.now()).total_seconds())):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    async def _judge(self, informer: Informer) -> None:
        now = self._clock.now()
        wanted = {key for key, due in self._due.items() if due <= now}
        dirty, self._dirty = self._dirty, {}
        for key in dirty:
            entry = informer.find(key)
            if entry is None:
                self._forget(key)
            elif (own := _own(msgspec.json.decode(entry.raw), now)) != self._said.get(key):
                self._said[key] = own
                wanted.add(key)
        for namespace in sorted({key.namespace for key in wanted}):
            fleet = await glance.read(self._client, namespace, now)
            for key in sorted(wanted & set(fleet.clusters)):
                self._tell(key, fleet.verdict(key), now)

    def _tell(self, key: ObjectKey, verdict: Verdict, now: datetime) -> None:
        self._due.pop(key, None)
        if verdict.state is not State.FINE:
            self._due[key] = now + LOOK_AGAIN
        told = (verdict.state, verdict.object, verdict.field)  # not its words: they change with every count
        if told != self._told.get(key):
            self._told[key] = told
            self._say(f"{now:%H:%M:%S}  cluster {key}  {verdict.brief}")

    def _forget(self, key: ObjectKey) -> None:
        self._due.pop(key, None)
        self._said.pop(key, None)
        if self._told.pop(key, None) is not None:
            self._say(f"{self._clock.now():%H:%M:%S}  cluster {key}  Gone")


def _own(cluster: Json, now: datetime) -> tuple[str, str]:
    """What is to be thought of a Cluster by its own words."""
    verdict = glance.own_verdict(cluster, now)
    return verdict.state, verdict.field
