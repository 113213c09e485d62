"""The start of a plan: the objects of a management cluster, and those of its workload clusters, at one moment. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.ownership import Ownership, name_of


@dataclass(frozen=True, slots=True)
class Captured:
    """The objects of a management cluster, and of its workload clusters by Cluster."""

    objects: tuple[Json, ...]
    now: datetime
    workloads: Mapping[ObjectKey, tuple[Json, ...]] = field(default_factory=dict)
    features: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates of the running controllers that are known."""
    notes: tuple[str, ...] = ()
    """Things that could not be read."""

    def clusters(self) -> list[Unstructured]:
        """Return the Clusters."""
        return [o for o in map(Unstructured, self.objects) if o.kind == "Cluster"]

    def limited_to(self, names: Collection[str]) -> Captured:
        """Return the capture without the objects of Clusters that no changed object belongs to. `names`: `Kind/namespace/name`."""
        objects = [o for o in map(Unstructured, self.objects) if o.kind != "Event"]
        index = Ownership(objects)
        affected: set[str] = set()
        others: set[str] = set()
        for cluster in (o for o in objects if o.kind == "Cluster"):
            own = index.of(cluster)
            if own & set(names):
                affected |= own
            else:
                others |= own
        if not affected and not any(name.startswith("Cluster/") for name in names):
            return self  # such an object, a MachineDrainRule for example, may matter to all of them
        kept = [o.json for o in objects if (name := name_of(o.kind, *o.key)) in affected or name not in others]
        present = {o.key for o in map(Unstructured, kept) if o.kind == "Cluster"}
        workloads = {key: content for key, content in self.workloads.items() if key in present}
        return Captured(tuple(dict(o) for o in kept), self.now, workloads, self.features, self.notes)


def from_bundle(bundle: Bundle) -> Captured:
    """Return the content of a bundle."""
    observation = bundle.observation
    workloads = {_key(name): tuple(c.objects) for name, c in observation.workload_clusters.items() if c.connected}
    running = observation.running
    features = {**(running.features if running is not None else {}), **observation.features}
    notes = [f"{t.kind} could not be listed: {t.error}" for t in observation.unseen]
    if observation.unreachable:
        notes.append(f"the workload cluster could not be read: {observation.unreachable}")
    return Captured(bundle.objects, bundle.moment(), workloads, features, tuple(notes))


def _key(name: str) -> ObjectKey:
    namespace, _, bare = name.rpartition("/")
    return ObjectKey(namespace, bare)
