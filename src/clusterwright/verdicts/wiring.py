"""The judge of a manager: what its controllers say is evidence, and its verdicts are served with their traces and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.offline.observation import Running
from clusterwright.offline.workings import about
from clusterwright.runtime.manager import Manager
from clusterwright.verdicts.cluster_objects import CLUSTER
from clusterwright.verdicts.history import MOST_ENTRIES, History
from clusterwright.verdicts.judge import Judge
from clusterwright.verdicts.series import Series
from clusterwright.verdicts.store import Store

MOST_TOLD: Final = 2000
"""Entries of histories in one answer."""


def add_judge(manager: Manager, *, everything: bool, folder: Path | None) -> Judge:
    """Let a manager judge its Clusters as long as it leads, or those of its share; `folder` keeps their history, None: nothing does.

    `everything`: also objects are looked at that no controller watches, which costs watches of their kinds.
    """
    history = History(Store(folder) if folder is not None else None)

    def is_ours(cluster: ObjectKey, raw: bytes) -> bool:
        return manager.holds(CLUSTER, cluster, raw)

    judge = Judge(manager.cache, manager.clock, everything=everything, history=history, running=running_of(manager), is_ours=is_ours)
    judge.listen(Series(manager.registry).told)
    manager.add_part("verdicts", judge.run)
    manager.when_shared(judge.reconsider)
    manager.add_witness("verdicts", told_by(history))
    return judge


def running_of(manager: Manager) -> Callable[[str, Collection[str]], Running]:
    """Return what tells what the controllers of a manager say about objects of a namespace."""

    def running(namespace: str, names: Collection[str]) -> Running:
        return msgspec.convert(about(manager.workings({"namespace": namespace}), names), Running)

    return running


def told_by(history: History) -> Callable[[Mapping[str, str]], Json]:
    """Return what answers a query with the histories of clusters: of many only the newest entries of each."""

    def told(query: Mapping[str, str]) -> Json:
        namespace, cluster = query.get("namespace", ""), query.get("cluster", "")
        wanted = [c for c in history.clusters if namespace in ("", c.namespace) and cluster in ("", c.name)]
        each = max(1, min(MOST_ENTRIES, MOST_TOLD // max(1, len(wanted)))) if query.get("only") != "now" else 1
        return {str(c): msgspec.to_builtins(history.of(c)[-each:]) for c in wanted[:MOST_TOLD]}

    return told
