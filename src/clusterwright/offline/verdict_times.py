"""Earlier verdicts that a plane remembers, and the time since when a cluster is not fine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from clusterwright.api.copying import replace
from clusterwright.offline.timeline import Moment, Sort
from clusterwright.offline.verdict import State, Verdict
from clusterwright.offline.workings import Past


def moments(cluster: str, past: Iterable[Past]) -> Iterator[Moment]:
    """Yield the verdicts on a cluster (`Cluster/namespace/name`) for a timeline."""
    for entry in past:
        yield Moment(entry.at, cluster, Sort.VERDICT, entry.cause, entry.brief)


def since_left(verdict: Verdict, verdicts: Mapping[str, Sequence[Past]]) -> Verdict:
    """Return a verdict with the moment at which the cluster ceased to be fine, if its plane remembers it."""
    past = verdicts.get(verdict.subject.removeprefix("Cluster/"), ())
    if verdict.state is State.FINE or not past or past[-1].is_fine or not past[-1].left:
        return verdict
    return replace(verdict, since=past[-1].left)
