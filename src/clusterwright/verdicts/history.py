"""The history of each cluster: its verdicts by time, in bounded number, and the time since when it is not fine."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from clusterwright.api.copying import replace
from clusterwright.api.meta import ObjectKey
from clusterwright.offline.verdict import State, Verdict
from clusterwright.offline.workings import Past

MOST_CLUSTERS: Final = 5000
MOST_ENTRIES: Final = 100
"""The most entries of one cluster."""
LONGEST: Final = timedelta(days=30)
"""The age from which entries are dropped, except the last one of each cluster."""


class Kept(Protocol):
    """Storage in which the history survives the process."""

    def load(self) -> Iterator[tuple[ObjectKey, str, Past]]:
        """Yield cluster, uid and entry, oldest first."""
        ...

    def add(self, cluster: ObjectKey, uid: str, entry: Past) -> None:
        """Keep one more entry."""
        ...

    def drop(self, cluster: ObjectKey, until: str = "") -> None:
        """Forget a cluster, or its entries up to a moment."""
        ...

    def close(self) -> None:
        """Close the storage."""
        ...


class Nowhere:
    """Storage that keeps nothing."""

    def load(self) -> Iterator[tuple[ObjectKey, str, Past]]:
        """Yield nothing."""
        return iter(())

    def add(self, cluster: ObjectKey, uid: str, entry: Past) -> None:
        """Do nothing."""

    def drop(self, cluster: ObjectKey, until: str = "") -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class _Life:
    uid: str
    entries: deque[Past]


class History:
    """The verdicts of all clusters of a process. An entry is a verdict that differs from the one before by state, cause or object."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._kept = kept or Nowhere()
        self._lives: OrderedDict[ObjectKey, _Life] = OrderedDict()
        for cluster, uid, entry in self._kept.load():
            life = self._lives.get(cluster)
            if life is None or life.uid != uid:
                life = self._lives[cluster] = _Life(uid, deque(maxlen=MOST_ENTRIES))
            life.entries.append(entry)

    def note(self, cluster: ObjectKey, uid: str, verdict: Verdict, now: datetime) -> Verdict:
        """Remember a verdict. Return it with the moment at which the cluster ceased to be fine as its `since`."""
        if verdict.state is State.UNSEEN:
            return verdict  # it describes the reader, not the cluster
        life = self._lives.get(cluster)
        if life is None or life.uid != uid:
            self.forget(cluster)
            life = self._lives[cluster] = _Life(uid, deque(maxlen=MOST_ENTRIES))
            if len(self._lives) > MOST_CLUSTERS:
                self.forget(next(iter(self._lives)))
        last = life.entries[-1] if life.entries else None
        is_fine = verdict.state is State.FINE
        if last is not None and not last.is_fine and not is_fine:
            left = last.left
        else:
            left = "" if is_fine else _moment(verdict, now, last)
        if last is None or last.of != (str(verdict.state), verdict.cause, verdict.object):
            entry = Past(f"{now:%Y-%m-%dT%H:%M:%SZ}", str(verdict.state), verdict.brief, verdict.cause, verdict.object, left)
            is_full = len(life.entries) == MOST_ENTRIES
            life.entries.append(entry)
            self._kept.add(cluster, uid, entry)
            if is_full or life.entries[0].at < f"{now - LONGEST:%Y-%m-%dT%H:%M:%SZ}":
                self._prune(cluster, life, now)
        return replace(verdict, since=left) if left else verdict

    def _prune(self, cluster: ObjectKey, life: _Life, now: datetime) -> None:
        oldest = f"{now - LONGEST:%Y-%m-%dT%H:%M:%SZ}"
        while len(life.entries) > 1 and life.entries[0].at < oldest:
            life.entries.popleft()
        self._kept.drop(cluster, until=life.entries[0].at)

    def forget(self, cluster: ObjectKey) -> None:
        """Drop a cluster that is gone."""
        if self._lives.pop(cluster, None) is not None:
            self._kept.drop(cluster)

    def of(self, cluster: ObjectKey) -> Sequence[Past]:
        """Return the entries of a cluster, oldest first."""
        life = self._lives.get(cluster)
        return tuple(life.entries) if life is not None else ()

    def close(self) -> None:
        """Close the storage of the history."""
        self._kept.close()

    @property
    def clusters(self) -> list[ObjectKey]:
        """The clusters with a history."""
        return list(self._lives)


def _moment(verdict: Verdict, now: datetime, last: Past | None) -> str:
    """Return the moment at which the cluster ceased to be fine: that of the cause, but not before it was last known to be fine."""
    at = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    begun = verdict.since if verdict.since and verdict.since <= at else at
    return max(begun, last.at) if last is not None else begun
