"""Keeps a verdict on every Cluster of this process: whenever something of it changed, it is judged again, once for what came together.

Work is bounded. Clusters are judged one at a time, on another thread, with a rest after each that is many times as long as the work,
so that controllers are not held up. What was fine is judged again only when it changes; what was not is also looked at again after a
while, less and less often, because patience ends with time alone. Nothing is written to the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.conditions import is_true
from clusterwright.offline.glance import verdict_by_its_objects
from clusterwright.offline.observation import Running
from clusterwright.offline.ownership import name_of
from clusterwright.offline.reported import Sight
from clusterwright.offline.timeline import conditions_shown
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.logging import get_logger
from clusterwright.verdicts.cluster_objects import ClusterObjects, ObjectsByCluster
from clusterwright.verdicts.history import History

LOOK_AGAIN: Final = timedelta(seconds=30)
"""After which a cluster that is not fine is judged again though nothing happened; doubled each time, until something does."""
SELDOM: Final = timedelta(hours=1)
"""The longest of these times."""
SETTLE: Final = 1.0
"""Seconds in which changes of a cluster are taken together."""
HURRY: Final = 0.1
"""The same for a cluster that somebody looks at."""
REST: Final = 9.0
"""How long to rest after a verdict, in times of what it took."""
WATCHED_REST: Final = 1.0
"""The same while somebody looks at the list of all clusters."""

TRY_AGAIN: Final = 5.0
"""Seconds after which the API server is asked again if it did not answer."""

Told = Callable[[ObjectKey, ClusterObjects | None, Verdict | None], None]
"""Called with a cluster, what belongs to it, and the verdict; with neither when it is gone, or is not ours any more."""
_log = get_logger("verdicts")


class Judge:
    """Judges the Clusters that the informers of a cache know."""

    def __init__(
        self,
        cache: Cache,
        clock: Clock,
        *,
        everything: bool = True,
        always: bool = True,
        history: History | None = None,
        running: Callable[[str, Collection[str]], Running | None] = lambda namespace, names: None,
        is_ours: Callable[[ObjectKey, bytes], bool] = lambda cluster, raw: True,
    ) -> None:
        """`everything`: see ObjectsByCluster. `always`: also while nobody looks.

        `running` tells what the controllers say about objects of a namespace. `is_ours`: whether this process, and not another one, is to
        judge a Cluster, by its key and bytes.
        """
        self.objects_by_cluster = ObjectsByCluster(cache, self._changed, everything=everything)
        self.history = history or History()
        self.verdicts: dict[ObjectKey, Verdict] = {}
        self._clock = clock
        self._always, self._running, self._is_ours = always, running, is_ours
        self._listeners: list[Told] = []
        self._dirty: dict[ObjectKey, float] = {}
        """By Cluster: when it changed first since it was judged."""
        self._due: dict[ObjectKey, tuple[datetime, timedelta]] = {}
        """When to look again, and how long was waited for that."""
        self._wake = asyncio.Event()
        self._viewers: list[object] = []
        self._followers: dict[ObjectKey, int] = {}

    # ---------------------------------------------------------------------------------------------- interest

    def listen(self, told: Told) -> None:
        """Tell of every verdict from now on, also of one that did not change."""
        self._listeners.append(told)

    def look(self, viewer: object) -> None:
        """Somebody looks at all clusters from now on."""
        self._viewers.append(viewer)
        self._wake.set()

    def look_away(self, viewer: object) -> None:
        """They do not any more."""
        self._viewers.remove(viewer)

    def follow(self, cluster: ObjectKey) -> None:
        """Somebody looks closely at a cluster: it comes first."""
        self._followers[cluster] = self._followers.get(cluster, 0) + 1
        self._changed(cluster)
        self._wake.set()

    def unfollow(self, cluster: ObjectKey) -> None:
        """They do not any more."""
        left = self._followers.pop(cluster) - 1
        if left:
            self._followers[cluster] = left

    def reconsider(self) -> None:
        """Judge all clusters again: this process may have others than before."""
        for cluster in {*self.objects_by_cluster.clusters(), *self.verdicts}:
            self._changed(cluster)

    def _is_wanted(self, cluster: ObjectKey) -> bool:
        return self._always or bool(self._viewers) or cluster in self._followers

    def _changed(self, cluster: ObjectKey) -> None:
        self._due.pop(cluster, None)
        if cluster not in self._dirty:
            self._dirty[cluster] = self._clock.monotonic()
            self._wake.set()

    # ---------------------------------------------------------------------------------------------- the loop

    async def run(self) -> None:
        """Judge until cancelled."""
        if not self._always:
            await self._wake.wait()  # until somebody looks for the first time
        while True:
            try:
                await self.objects_by_cluster.ready()
                break
            except ApiError as error:
                _log.info("Clusters cannot be looked at yet", error=str(error))
                await self._clock.sleep(TRY_AGAIN)
        self._forget_what_is_gone()
        while True:
            self._wake.clear()
            self._fall_due()
            ready = self._ready()
            for cluster in ready:
                begun = self._clock.monotonic()
                await self._judge(cluster)
                rest = 0.0 if cluster in self._followers else WATCHED_REST if self._viewers else REST
                await self._clock.sleep(rest * (self._clock.monotonic() - begun))
                if any(c in self._dirty and c not in ready for c in self._followers):
                    break  # somebody looks closely at another one
            if not ready:
                await self._something_to_do()

    def _forget_what_is_gone(self) -> None:
        there = set(self.objects_by_cluster.clusters())
        if "Cluster" in self.objects_by_cluster.seen:
            for cluster in self.history.clusters:
                if cluster not in there:
                    self.history.forget(cluster)

    def _fall_due(self) -> None:
        now = self._clock.now()
        for cluster in [c for c, (due, _) in self._due.items() if due <= now and self._is_wanted(c)]:
            self._dirty.setdefault(cluster, 0.0)

    def _settled(self, cluster: ObjectKey) -> float:
        """Return when a changed cluster is to be judged."""
        return self._dirty[cluster] + (HURRY if self._viewers or cluster in self._followers else SETTLE)

    def _ready(self) -> list[ObjectKey]:
        """Return the clusters to judge now: those that somebody looks at first, then those that are not well."""
        now = self._clock.monotonic()
        wanted = [c for c in self._dirty if self._is_wanted(c) and self._settled(c) <= now + 1e-6]
        return sorted(wanted, key=lambda c: (c not in self._followers, self._is_calm(c)))

    def _is_calm(self, cluster: ObjectKey) -> bool:
        known = self.verdicts.get(cluster)
        if known is not None:
            return known.state is State.FINE
        entry = self.objects_by_cluster.find(cluster)
        return entry is None or _is_available(entry.raw)

    async def _something_to_do(self) -> None:
        wanted = [self._settled(c) - self._clock.monotonic() for c in self._dirty if self._is_wanted(c)]
        now = self._clock.now()
        wanted += [(due - now).total_seconds() for c, (due, _) in self._due.items() if self._is_wanted(c)]
        soonest = min(wanted, default=None)
        try:
            async with asyncio.timeout(None if soonest is None else max(0.001, soonest)):
                await self._wake.wait()
        except TimeoutError:
            return
        await self._clock.sleep(HURRY)  # many changes come at once: they are gone through once

    async def _judge(self, cluster: ObjectKey) -> None:
        """Judge one cluster and tell of it; nothing that it holds may end the verdicts on others."""
        self._dirty.pop(cluster, None)
        _, waited = self._due.pop(cluster, (None, LOOK_AGAIN / 2))
        entry = self.objects_by_cluster.find(cluster)
        if entry is None and "Cluster" not in self.objects_by_cluster.seen:
            self._dirty[cluster] = self._clock.monotonic() + SETTLE  # nobody knows yet what there is
            return
        try:
            cluster_objects = await self.objects_by_cluster.of(cluster) if entry is not None and self._is_ours(cluster, entry.raw) else None
            if cluster_objects is None:
                self._gone(cluster)
                return
            now, running = self._clock.now(), self._running(cluster.namespace, cluster_objects.names)
            known = self.objects_by_cluster
            sight = Sight(now) if cluster_objects.is_partial else Sight(now, known.seen, known.unseen, running=running)
            found = await asyncio.get_running_loop().run_in_executor(None, _verdict, cluster, cluster_objects, sight)
            verdict = self.history.note(cluster, str(cluster_objects.cluster["metadata"].get("uid") or ""), found, now)
            self.verdicts[cluster] = verdict
            for told in self._listeners:
                told(cluster, cluster_objects, verdict)
        except Exception as error:
            _log.error("Cluster cannot be judged", cluster=str(cluster), error=f"{type(error).__name__}: {error}")
            return
        if verdict.state is not State.FINE and cluster not in self._dirty:
            again = min(2 * waited, SELDOM)
            self._due[cluster] = (now + again, again)

    def _gone(self, cluster: ObjectKey) -> None:
        if self.objects_by_cluster.find(cluster) is None:
            self.history.forget(cluster)
        self.verdicts.pop(cluster, None)
        for told in self._listeners:
            told(cluster, None, None)


def _verdict(cluster: ObjectKey, cluster_objects: ClusterObjects, sight: Sight) -> Verdict:
    """Judge a cluster; on another thread, so that it is given all that it needs."""
    objects = [*cluster_objects.objects, *cluster_objects.events, *cluster_objects.common]
    return verdict_by_its_objects(name_of("Cluster", *cluster), objects, sight)


def _is_available(raw: bytes) -> bool:
    """Return whether a Cluster says that it is; False if it cannot be read."""
    try:
        return is_true(conditions_shown(Unstructured(msgspec.json.decode(raw))), "Available")
    except Exception:  # only the order of work depends on it, and whatever a Cluster holds must not end that
        return False
