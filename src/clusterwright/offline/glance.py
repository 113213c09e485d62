"""Verdicts on many clusters at a glance: by what is written in their objects alone, without passes and without looking into them.

`explain` finds what nobody has written yet, too, and takes its time for it. For a list, a page or a line of progress this is enough: the
same type, from the same words, at a few milliseconds for each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.offline.asking import ask_now
from clusterwright.offline.causes import Investigation
from clusterwright.offline.listing import everything, webhooks_and_extensions
from clusterwright.offline.ownership import Ownership, name_of
from clusterwright.offline.reported import WEBHOOK_CONFIGURATIONS, Sight
from clusterwright.offline.verdict import Verdict, judge
from clusterwright.offline.verdict_times import since_left
from clusterwright.runtime.client import Client

_COMMON = frozenset({"CustomResourceDefinition", "ExtensionConfig", *WEBHOOK_CONFIGURATIONS})
"""What belongs to no cluster, and may matter to each."""


class Fleet:
    """Some objects of any namespaces, for instance all that caches hold; asked for verdicts on the Clusters among them.

    Made of a snapshot: once for all of its Clusters, and again when something has changed. To keep one verdict current, give the
    objects of its `names_of` alone.
    """

    def __init__(self, objects: Iterable[Json], sight: Sight) -> None:
        """`sight.seen` has the kinds of which all objects are given: only of these an absence is claimed."""
        given = list(objects)
        self._sight = sight
        self._events = _by_object(o for o in given if o.get("kind") == "Event")
        self._common = [o for o in given if o.get("kind") in _COMMON]
        self._ownership = Ownership(Unstructured(o) for o in given if o.get("kind") not in {"Event", *_COMMON})

    @property
    def clusters(self) -> list[ObjectKey]:
        """The Clusters, in order."""
        return sorted(o.key for o in self._ownership.objects.values() if o.kind == "Cluster")

    def names_of(self, cluster: ObjectKey) -> set[str]:
        """`Kind/namespace/name` of whatever belongs to a Cluster."""
        return self._ownership.of(self._ownership.objects[name_of("Cluster", *cluster)])

    def verdict(self, cluster: ObjectKey) -> Verdict:
        """Return the verdict on a Cluster; raises KeyError if it is not among the objects."""
        subject = name_of("Cluster", *cluster)
        names = sorted(self._ownership.of(self._ownership.objects[subject]))  # the same words every time
        objects = [dict(self._ownership.objects[name].json) for name in names]
        events = [event for name in names for event in self._events.get(name, ())]
        verdict = verdict_by_its_objects(subject, [*objects, *events, *self._common], self._sight)
        return since_left(verdict, self._sight.running.verdicts) if self._sight.running is not None else verdict

    def verdicts(self) -> Mapping[ObjectKey, Verdict]:
        """Return the verdict on every Cluster."""
        return {cluster: self.verdict(cluster) for cluster in self.clusters}


def verdict_by_its_objects(subject: str, objects: Iterable[Json], sight: Sight) -> Verdict:
    """Return the verdict on a Cluster, by what belongs to it, and nothing else: for those who know what that is."""
    investigation = Investigation(objects, subject, {}, sight, is_one_cluster=True)
    return judge(investigation, investigation.causes(), sight.now)


def own_verdict(cluster: Json, now: datetime) -> Verdict:
    """Return the verdict by what a Cluster itself says: for those who have no time for what belongs to it. It names the Cluster alone."""
    metadata = cluster["metadata"]
    return verdict_by_its_objects(name_of("Cluster", metadata.get("namespace", ""), metadata["name"]), [cluster], Sight(now))


async def read(client: Client, namespace: str, now: datetime) -> Fleet:
    """Return the clusters of a namespace as they are now, or of all namespaces, if it is empty."""
    found = await everything(client, namespace)
    found.objects += await webhooks_and_extensions(client, found)
    unseen = {str(u["kind"]): str(u["error"]) for u in found.unseen}
    running = await ask_now(client, namespace)
    return Fleet((dict(o.json) for o in found.objects), Sight(now, frozenset(found.seen), unseen, running=running))


def _by_object(events: Iterable[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for event in events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        found.setdefault(name_of(str(about.get("kind")), str(about.get("namespace") or ""), str(about.get("name"))), []).append(event)
    return found
