"""The table of a condition: run our controller's pass over the present object, and show the row that fires."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.kit import registry
from clusterwright.dashboard.fleet import Fleet
from clusterwright.offline.bundle import BadBundle, assemble
from clusterwright.offline.passes import run_passes
from clusterwright.offline.record import observation_of
from clusterwright.offline.survey import Surveyor
from clusterwright.tables import explanation_as_json

_CLUSTER: Final = "Cluster"


class NoTable(Exception):
    """The condition has no table of ours; the text says why."""


class Reasons:
    """Explains conditions; one request at a time, because each is a pass."""

    def __init__(self, fleet: Fleet, surveyor: Surveyor | None) -> None:
        self._fleet = fleet
        self._surveyor = surveyor
        self._turn = asyncio.Lock()

    async def why(self, cluster: ObjectKey, kind: str, name: str, condition: str, now: datetime) -> Json:
        """Return the table of the object's condition with the value of each guard. Raises NoTable."""
        entries = [e for e in registry.ENTRIES if e.kind == kind]
        if not entries:
            raise NoTable(f"{kind} is reconciled by another provider, which sets its conditions")
        known = self._fleet.objects_by_cluster
        await known.ready()
        async with self._turn:
            objects = known.objects_of(cluster)
            if not objects and _CLUSTER not in known.seen:
                raise NoTable("Clusters cannot be listed at present: try again")
            if not objects:
                raise NoTable(f"Cluster {cluster} does not exist")
            observation = await observation_of(objects, cluster, now, self._surveyor, seen=known.seen)
            try:
                bundle = assemble([*objects, *known.definitions, observation])
            except BadBundle as error:
                raise NoTable(f"the objects of Cluster {cluster} cannot be evaluated: {error}") from None
            subject = f"{kind}/{cluster.namespace}/{name}"
            for entry in entries:
                passes = await asyncio.to_thread(run_passes, bundle, [subject], entry.name)
                if found := [t for t in passes[subject].tables if t.table == condition]:
                    return explanation_as_json(found[-1])  # asked again in the same pass: what was said last holds
        raise NoTable(f"no table of {kind} decides {condition} now: it is mirrored, or there is nothing to decide")
