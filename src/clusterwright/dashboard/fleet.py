"""The data of the pages about all clusters: a row for each, everything about one, and changes.

Verdicts are those of the judge of this process (`verdicts.judge`), as in history and metrics. The data about one cluster are computed only
while its page is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

import msgspec

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.dashboard.details import details
from clusterwright.dashboard.feed import GONE, Feed
from clusterwright.dashboard.views import UNSHOWN, fleet_row, object_view, parents, verdict_shown
from clusterwright.dashboard.waterfall import waterfall
from clusterwright.offline.ownership import name_of
from clusterwright.offline.timeline import Decided, Moment, Sort, timeline
from clusterwright.offline.verdict import Verdict
from clusterwright.offline.verdict_times import moments
from clusterwright.runtime.informer import Entry
from clusterwright.verdicts.cluster_objects import ClusterObjects, ObjectsByCluster
from clusterwright.verdicts.judge import Judge

FLEET_REST: Final = 0.25
CLUSTER_REST: Final = 0.5
"""Seconds between two differences for a reader."""
MOMENTS: Final = 300
"""How many moments of a timeline are shown, the newest; and as many decisions."""
KNOWN: Final = "known"
"""The key whose value is whether a cluster exists."""

History = Callable[[str, ObjectKey], Sequence[Decided]]
"""Returns the decisions about an object of a kind, oldest first."""
Errors = Callable[[str, ObjectKey], Sequence[Json]]
"""Returns the last errors of passes over an object of a kind."""


class Fleet:
    """The clusters that a judge judges."""

    def __init__(self, judge: Judge, history: History, errors: Errors = lambda kind, key: ()) -> None:
        self._judge = judge
        self._history = history
        self._errors = errors
        self._single: dict[ObjectKey, Feed] = {}
        self.clusters = Feed()
        """A row for each cluster, by namespace/name."""
        judge.listen(self._told)
        judge.objects_by_cluster.when_cluster_appears(self._introduce)

    @property
    def objects_by_cluster(self) -> ObjectsByCluster:
        """The objects of each cluster."""
        return self._judge.objects_by_cluster

    # ------------------------------------------------------------------------------------------------ reading

    async def follow_all(self) -> AsyncGenerator[Json, None]:
        """Yield the rows of all clusters, and changes in them."""
        viewer = object()
        self._judge.look(viewer)
        try:
            await self.objects_by_cluster.open()
            for key in self.objects_by_cluster.clusters():
                if (entry := self.objects_by_cluster.find(key)) is not None:
                    self._show(entry)
            async for difference in self.clusters.read(FLEET_REST):
                yield difference
        finally:
            self._judge.look_away(viewer)

    async def follow(self, cluster: ObjectKey) -> AsyncGenerator[Json, None]:
        """Yield everything about one cluster, and changes in it. KNOWN is set as soon as its existence is certain."""
        feed = self._single.setdefault(cluster, Feed())
        self._judge.follow(cluster)
        try:
            async for difference in feed.read(CLUSTER_REST):
                yield difference
        finally:
            self._judge.unfollow(cluster)
            if not feed.is_read:
                self._single.pop(cluster, None)

    async def details(self, cluster: ObjectKey, name: str) -> Json | None:
        """Return everything about the object `Kind/namespace/name` of a cluster, or None if there is none, or it is not shown."""
        await self.objects_by_cluster.ready()
        known = await self.objects_by_cluster.of(cluster)
        if known is None:
            return None
        kind, _, rest = name.partition("/")
        namespace, _, bare = rest.rpartition("/")
        errors = self._errors(kind, ObjectKey(namespace, bare))
        return await asyncio.to_thread(details, known.objects, known.events, name, errors)

    # ------------------------------------------------------------------------------------------------ telling

    def _introduce(self, cluster: Entry) -> None:
        if self.clusters.is_read:
            self._show(cluster)

    def _show(self, cluster: Entry) -> None:
        """Show a cluster at once, before its first verdict."""
        if str(cluster.key) not in self.clusters.values:
            self.clusters.put(
                str(cluster.key), fleet_row(Unstructured(msgspec.json.decode(cluster.raw)), None, self._judge.history.of(cluster.key))
            )

    def _told(self, cluster: ObjectKey, cluster_objects: ClusterObjects | None, verdict: Verdict | None) -> None:
        feed = self._single.get(cluster)
        if cluster_objects is None or verdict is None:
            self.clusters.put(str(cluster), GONE)
            if feed is not None:
                feed.replace({KNOWN: {"isThere": False}})
            return
        self.clusters.put(str(cluster), fleet_row(Unstructured(cluster_objects.cluster), verdict, self._judge.history.of(cluster)))
        if feed is not None:
            feed.replace(self._whole(cluster, cluster_objects, verdict))

    def _whole(self, cluster: ObjectKey, cluster_objects: ClusterObjects, verdict: Verdict) -> dict[str, Json]:
        shown = [o for o in map(Unstructured, cluster_objects.objects) if o.kind not in UNSHOWN]
        name = name_of("Cluster", *cluster)
        above = parents(shown, name)
        values: dict[str, Json] = {KNOWN: {"isThere": True}, "verdict": verdict_shown(verdict)}
        for obj in shown:
            view = object_view(obj, above[name_of(obj.kind, *obj.key)])
            values[f"object {view['id']}"] = view
        decisions = [d for o in shown for d in self._history(o.kind, o.key)]
        happened = [*timeline(shown, cluster_objects.events, decisions), *moments(name, self._judge.history.of(cluster))]
        for moment in newest(sorted(happened), MOMENTS):
            values[f"moment {moment.at} {moment.object} {moment.sort} {moment.about}"] = moment.to_json()
        values |= {f"steps {object_name}": steps for object_name, steps in waterfall(shown)}
        return values


def newest(moments: Sequence[Moment], most: int) -> list[Moment]:
    """Return the newest moments, and separately the newest decisions, because these are many."""
    decided = [m for m in moments if m.sort is Sort.DECISION]
    return sorted([*[m for m in moments if m.sort is not Sort.DECISION][-most:], *decided[-most:]])
