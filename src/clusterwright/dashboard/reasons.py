"""The table behind a condition: one pass of our controller over the object as it is now, and the row that fires."""

from __future__ import annotations

import asyncio
from datetime import datetime

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.kit import registry
from clusterwright.dashboard.fleet import Fleet
from clusterwright.offline.bundle import assemble
from clusterwright.offline.passes import run_passes
from clusterwright.offline.record import observation_of
from clusterwright.offline.survey import Surveyor
from clusterwright.tables import explanation_as_json


class NoTable(Exception):
    """No table of ours stands behind the condition; the text says why."""


class Reasons:
    """Answers why a condition is as it is; one question at a time, because each is a pass."""

    def __init__(self, fleet: Fleet, surveyor: Surveyor | None) -> None:
        self._fleet = fleet
        self._surveyor = surveyor
        self._turn = asyncio.Lock()

    async def why(self, cluster: ObjectKey, kind: str, name: str, condition: str, now: datetime) -> Json:
        """The table of the object's condition with the value of each guard; raises NoTable."""
        entries = [e for e in registry.ENTRIES if e.kind == kind]
        if not entries:
            raise NoTable(f"{kind} is reconciled by a provider of its own: its conditions are what that provider says")
        async with self._turn:
            objects = self._fleet.objects_of(cluster)
            if not objects:
                raise NoTable(f"Cluster {cluster} is not there any more")
            observation = await observation_of(objects, cluster, now, self._surveyor, seen=self._fleet.seen)
            bundle = assemble([*objects, *self._fleet.definitions, observation])
            subject = f"{kind}/{cluster.namespace}/{name}"
            for entry in entries:
                passes = await asyncio.to_thread(run_passes, bundle, [subject], entry.name)
                if found := [t for t in passes[subject].tables if t.table == condition]:
                    return explanation_as_json(found[-1])  # asked again in the same pass: what was said last holds
        raise NoTable(f"no table of {kind} decides {condition} now: it is mirrored, or nothing has to be decided")
