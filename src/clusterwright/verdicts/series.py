"""Verdicts for Prometheus: two series for each cluster, and the number of clusters by verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from clusterwright.api.meta import ObjectKey
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.metrics import Gauge, Registry
from clusterwright.verdicts.cluster_objects import ClusterObjects

MOST: Final = 5000
"""Clusters with series of their own; the others are only counted."""


class Series:
    """Listens to a Judge."""

    def __init__(self, registry: Registry) -> None:
        labels = ["namespace", "cluster"]
        self._verdict = registry.add(
            Gauge("clusterwright_cluster_verdict", "1 for the verdict on a cluster and its cause", [*labels, "verdict", "cause"])
        )
        self._since = registry.add(
            Gauge("clusterwright_cluster_not_fine_since_seconds", "Unix time at which a cluster ceased to be fine; 0 while it is", labels)
        )
        self._count = registry.add(Gauge("clusterwright_clusters", "Clusters by verdict", ["verdict"]))
        self._shown: dict[ObjectKey, tuple[str, str]] = {}
        self._states: dict[ObjectKey, State] = {}
        for state in State:
            self._count.set(lambda state=state: float(sum(1 for s in self._states.values() if s is state)), _label(state))  # type: ignore[misc]

    def told(self, cluster: ObjectKey, cluster_objects: ClusterObjects | None, verdict: Verdict | None) -> None:
        """Take the verdict on a cluster; without one, its series end."""
        shown = self._shown.get(cluster)
        if verdict is None:
            self._states.pop(cluster, None)
            if shown is not None:
                del self._shown[cluster]
                self._verdict.remove(*cluster, *shown)
                self._since.remove(*cluster)
            return
        self._states[cluster] = verdict.state
        if shown is None and len(self._shown) >= MOST:
            return
        labels = (_label(verdict.state), verdict.cause)
        if shown is not None and shown != labels:
            self._verdict.remove(*cluster, *shown)
        self._shown[cluster] = labels
        self._verdict.set(1.0, *cluster, *labels)
        self._since.set(_seconds(verdict), *cluster)


def _label(state: State) -> str:
    return str(state).replace(" ", "_")


def _seconds(verdict: Verdict) -> float:
    try:
        return datetime.fromisoformat(verdict.since).timestamp() if verdict.since and verdict.state is not State.FINE else 0.0
    except ValueError:
        return 0.0
