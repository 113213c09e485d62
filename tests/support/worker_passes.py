"""Passes of the worker controllers, one after the other, in one world without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.crds import crds
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import assemble
from clusterwright.offline.contracts import complete
from clusterwright.offline.world import World
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples

Json = dict[str, Any]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ObjectKey("default", "w")


class Plane:
    """A world in which passes can be run one after the other."""

    def __init__(self, objects: Sequence[Json], observation: Json | None = None) -> None:
        extra = [{"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", **(observation or {})}]
        self.world = World(complete(assemble([*crds(), *objects, *extra])), NOW, sample_keys())
        self.client = self.world.client
        self._reconcilers: dict[str, Any] = {}

    def reconciler(self, kind: str, client: Any = None) -> Any:
        entry = registry.find(kind)
        assert entry is not None
        deps = self.world.dependencies()
        return registry.definition(entry).make(replace(deps, client=client) if client else deps)

    def reconciler_named(self, kind: str, name: str) -> Any:
        """The reconciler of one of several controllers of a kind."""
        entry = registry.find(kind, name)
        assert entry is not None
        return registry.definition(entry).make(self.world.dependencies())

    async def reconcile(self, kind: str, key: ObjectKey = KEY, times: int = 1) -> str:
        """Run passes; the error of the last one."""
        reconciler = self._reconcilers.setdefault(kind, self.reconciler(kind))
        error = ""
        for _ in range(times):
            try:
                await self.world.reports.complete(reconciler, key)
                error = ""
            except ApiError as raised:
                error = str(raised)
        return error

    async def machines(self) -> list[Machine]:
        return list(await self.client.list(Machine))

    async def machine_sets(self) -> list[MachineSet]:
        return list(await self.client.list(MachineSet))

    def writes(self) -> int:
        return len(self.world.journal.actions)


def objects(kind: str, replicas: int = 2, **spec: Any) -> list[Json]:
    made = [*samples.cluster("c")[:1], *samples.workers("c", "w", kind=kind, replicas=replicas, **spec)]
    for n, obj in enumerate(made):
        obj["metadata"] = {**obj["metadata"], "uid": f"uid-{n}", "creationTimestamp": "2026-05-01T11:00:00Z"}
    return made
