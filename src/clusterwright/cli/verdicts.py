"""Print a line whenever the verdict on a cluster changes while `up` runs."""

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

MANY: Final = 50
"""Clusters of which all lines can be read; of more only trouble is told, and its end."""
MOST: Final = 200
"""The number of clusters that get a line each; with more, lists and pages are better."""
_TROUBLE: Final = frozenset({State.BROKEN, State.WAITING, State.UNSEEN})
SETTLE: Final = 0.5
"""Seconds for what changes together."""
REST: Final = 9.0
"""How long to rest after a look, in times of what it took: controllers come first."""
LOOK_AGAIN: Final = timedelta(seconds=30)
"""After which a cluster that is not fine is judged again though nothing happened: patience ends with time alone."""


class Teller:
    """Follows the Clusters that controllers know anyway, and reads what belongs to one only when it says something else than before."""

    def __init__(self, cache: Cache, client: Client, clock: Clock, say: Callable[[str], None], shown: ObjectKey | None = None) -> None:
        """`shown` is a cluster whose start was just shown: nobody needs to be told that it is fine."""
        self._cache, self._client, self._clock, self._say = cache, client, clock, say
        self._dirty: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()
        self._said: dict[ObjectKey, tuple[str, str]] = {}
        """By Cluster: what it said itself when it was judged last."""
        self._told: dict[ObjectKey, tuple[str, str, str]] = {shown: (State.FINE, "", "")} if shown is not None else {}
        self._are_many = False
        self._due: dict[ObjectKey, datetime] = {}

    async def run(self) -> None:
        """Tell until there are too many clusters for that."""
        informer = await self._cache.informer(Cluster)
        informer.subscribe(self._changed)
        while True:
            await self._something_to_do()
            await self._clock.sleep(SETTLE)
            number = sum(1 for _ in informer.entries())
            if number > MOST:
                self._say(f"more than {MOST} clusters: from now on only `get clusters`, `explain` and the web view tell how they are")
                return
            if number > MANY and not self._are_many:
                self._say(f"more than {MANY} clusters: from now on only trouble is told, and its end")
            self._are_many = number > MANY
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
        due = {key for key, moment in self._due.items() if moment <= now}
        dirty, self._dirty = self._dirty, {}
        wanted: set[ObjectKey] = set()
        for key in {**dirty, **dict.fromkeys(due)}:
            entry = informer.find(key)
            if entry is None:
                self._forget(key)
            elif (own := _own(msgspec.json.decode(entry.raw), now)) != self._said.get(key) or key in due:
                self._said[key] = own
                wanted.add(key)
        for key in [key for key in wanted if self._are_many and not self._is_in_trouble(key) and self._said[key][0] not in _TROUBLE]:
            wanted.discard(key)
            self._look_again(key, self._said[key][0], now)
        for namespace in sorted({key.namespace for key in wanted}):
            fleet = await glance.read(self._client, namespace, now)
            for key in sorted(wanted & set(fleet.clusters)):
                self._tell(key, fleet.verdict(key), now)

    def _tell(self, key: ObjectKey, verdict: Verdict, now: datetime) -> None:
        self._look_again(key, verdict.state, now)
        told = (verdict.state, verdict.object, verdict.field)  # not its words: they change with every count
        is_news = told != self._told.get(key) and (not self._are_many or verdict.state in _TROUBLE or self._is_in_trouble(key))
        self._told[key] = told
        if is_news:
            self._say(f"{now:%H:%M:%S}  cluster {key}  {verdict.brief}")

    def _look_again(self, key: ObjectKey, state: str, now: datetime) -> None:
        self._due.pop(key, None)
        if state != State.FINE:
            self._due[key] = now + LOOK_AGAIN

    def _is_in_trouble(self, key: ObjectKey) -> bool:
        """Return whether that was told last."""
        return key in self._told and self._told[key][0] in _TROUBLE

    def _forget(self, key: ObjectKey) -> None:
        self._due.pop(key, None)
        self._said.pop(key, None)
        if self._told.pop(key, None) is not None and not self._are_many:
            self._say(f"{self._clock.now():%H:%M:%S}  cluster {key}  Gone")


def _own(cluster: Json, now: datetime) -> tuple[str, str]:
    """Return what is to be thought of a Cluster by its own words."""
    verdict = glance.own_verdict(cluster, now)
    return verdict.state, verdict.field
