"""Add a judge to a manager: the controllers' reports become evidence, and the verdicts are served with the traces and metrics."""

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
"""The most entries of histories in one answer."""


def add_judge(manager: Manager, *, everything: bool, folder: Path | None) -> Judge:
    """Let a manager judge its Clusters while it leads, or those of its shard. `folder`: the place of their history; None: memory only.

    `everything`: also watch kinds that no controller watches.
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
    """Return a function that returns the report of a manager's controllers on objects of a namespace."""

    def running(namespace: str, names: Collection[str]) -> Running:
        return msgspec.convert(about(manager.workings({"namespace": namespace}), names), Running)

    return running


def told_by(history: History) -> Callable[[Mapping[str, str]], Json]:
    """Return a function that answers a query with the histories of clusters; for many clusters, only the newest entries of each."""

    def told(query: Mapping[str, str]) -> Json:
        namespace, cluster = query.get("namespace", ""), query.get("cluster", "")
        wanted = [c for c in history.clusters if namespace in ("", c.namespace) and cluster in ("", c.name)]
        each = max(1, min(MOST_ENTRIES, MOST_TOLD // max(1, len(wanted)))) if query.get("only") != "now" else 1
        return {str(c): msgspec.to_builtins(history.of(c)[-each:]) for c in wanted[:MOST_TOLD]}

    return told
