"""Print a line whenever the verdict on a cluster changes while `up` runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clusterwright.api.meta import ObjectKey
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import Clock
from clusterwright.verdicts.cluster_objects import ClusterObjects
from clusterwright.verdicts.judge import Judge

MANY: Final = 50
"""The number of clusters up to which every change is printed; above it, only trouble and its end."""
MOST: Final = 200
"""The number of clusters up to which each gets a line; above it, lists and pages are better."""
_TROUBLE: Final = frozenset({State.BROKEN, State.WAITING, State.UNSEEN})


class Teller:
    """Prints the changes that the judge of the plane reports."""

    def __init__(self, judge: Judge, clock: Clock, say: Callable[[str], None], shown: ObjectKey | None = None) -> None:
        """Create a printer; `shown` is a cluster whose start was just shown: its first good verdict is not printed."""
        self._judge, self._clock, self._say = judge, clock, say
        self._told: dict[ObjectKey, tuple[str, str, str]] = {shown: (State.FINE, "", "")} if shown is not None else {}
        self._are_many = False
        self._is_over = False
        judge.listen(self._listen)
        for cluster, verdict in list(judge.verdicts.items()):
            self._tell(cluster, verdict)

    def _listen(self, cluster: ObjectKey, cluster_objects: ClusterObjects | None, verdict: Verdict | None) -> None:
        if not self._is_over:
            self._count()
        if self._is_over:
            return
        if verdict is None:
            self._forget(cluster)
        else:
            self._tell(cluster, verdict)

    def _count(self) -> None:
        number = len(self._judge.objects_by_cluster.clusters())
        if number > MOST:
            self._say(f"more than {MOST} clusters: from now on, use `get clusters`, `explain` or the web view")
            self._is_over = True
        elif number > MANY and not self._are_many:
            self._say(f"more than {MANY} clusters: from now on, only problems and their end are printed")
        self._are_many = number > MANY

    def _tell(self, key: ObjectKey, verdict: Verdict) -> None:
        told = (verdict.state, verdict.object, verdict.field)  # not its words: they change with every count
        is_news = told != self._told.get(key) and (not self._are_many or verdict.state in _TROUBLE or self._is_in_trouble(key))
        self._told[key] = told
        if is_news:
            self._say(f"{self._clock.now():%H:%M:%S}  cluster {key}  {verdict.brief}")

    def _is_in_trouble(self, key: ObjectKey) -> bool:
        """Return whether the last printed state was trouble."""
        return key in self._told and self._told[key][0] in _TROUBLE

    def _forget(self, key: ObjectKey) -> None:
        if self._told.pop(key, None) is not None and not self._are_many:
            self._say(f"{self._clock.now():%H:%M:%S}  cluster {key}  Gone")
