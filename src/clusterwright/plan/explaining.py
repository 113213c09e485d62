"""Ask `explain` why a replica does not reach its goal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.explain import explain
from clusterwright.offline.observation import Observation, WorkloadCluster
from clusterwright.offline.ownership import name_of

MOST_VERDICTS = 5
"""The most Clusters that are explained: each needs a pass over all of its objects."""


def verdicts(
    objects: Mapping[str, Mapping[str, Any]],
    definitions: Sequence[Json],
    workloads: Mapping[ObjectKey, Sequence[Json]],
    now: datetime,
    stuck: Collection[str],
) -> dict[str, str]:
    """Return the verdicts on the Clusters of stuck objects, by name."""
    clusters: dict[str, None] = {}
    for name in stuck:
        obj = Unstructured(objects.get(name, {}))
        cluster = obj.key.name if obj.kind == "Cluster" else obj.metadata.labels.get(CLUSTER_NAME_LABEL) or obj.at("spec", "clusterName")
        clusters[name_of("Cluster", obj.key.namespace, str(cluster))] = None
    seen = {str(key): WorkloadCluster(connected=True, last_probe_success=now, objects=tuple(content)) for key, content in workloads.items()}
    bundle = Bundle((*(dict(o) for o in objects.values()), *definitions), Observation(now=now, workload_clusters=seen))
    return {name: explain(bundle, name).verdict.headline for name in list(clusters)[:MOST_VERDICTS] if name in objects}
