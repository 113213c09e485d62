"""Write the workers of a topology: MachineDeployments and MachinePools, with their templates and objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
    TOPOLOGY_POOL_NAME_LABEL,
)
from clusterwright.controllers.topology.current import MACHINE_DEPLOYMENT, MACHINE_POOL
from clusterwright.controllers.topology.failures import TopologyFailed, failing, shown
from clusterwright.controllers.topology.object_writing import ObjectWriter, own
from clusterwright.runtime.client import Client
from clusterwright.topology import objects
from clusterwright.topology.desired import worker_prefix
from clusterwright.topology.model import CurrentWorker, DesiredWorker, WorkersProgress

_VERSION: Final = ("spec", "template", "spec", "version")


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """A kind of workers. `label` holds their topology name, `creating` is the context of a failed creation."""

    gvk: GroupVersionKind
    label: str
    creating: str
    rotates: bool
    """Whether it refers to templates, which are replaced when their spec changes."""


DEPLOYMENTS: Final = WorkerKind(MACHINE_DEPLOYMENT, TOPOLOGY_DEPLOYMENT_NAME_LABEL, "failed to create MachineDeployment", rotates=True)
POOLS: Final = WorkerKind(MACHINE_POOL, TOPOLOGY_POOL_NAME_LABEL, "failed to create MachinePool", rotates=False)


class WorkerWriter:
    """Writes the workers of one Cluster. Every method raises TopologyFailed."""

    def __init__(self, client: Client, writer: ObjectWriter, cluster: Json) -> None:
        self._client = client
        self._writer = writer
        self._cluster = cluster

    async def write(
        self, kind: WorkerKind, current: Mapping[str, CurrentWorker], desired: Mapping[str, DesiredWorker], marks: WorkersProgress
    ) -> None:
        """Create, change and delete workers of a kind as the topology wants."""
        new = [name for name in desired if name not in current]
        known = await self._known_live(kind, new)
        for name in new:
            if name not in known and name not in marks.pending_create:
                await self._create(kind, desired[name])
        for name, worker in desired.items():
            if name in current:
                await self._update(kind, name, current[name], worker, marks)
        for name in sorted(current.keys() - desired.keys()):
            await self._delete(current[name])

    async def _known_live(self, kind: WorkerKind, new: Sequence[str]) -> frozenset[str]:
        """Return the topology names that exist on the API server but not yet in our cache."""
        if not new:
            return frozenset()
        selector = {CLUSTER_NAME_LABEL: self._cluster["metadata"]["name"], TOPOLOGY_OWNED_LABEL: ""}
        with failing(f"failed to read {kind.gvk.kind}s for managed topology"):
            found = await self._client.live.list(kind.gvk, namespace=self._cluster["metadata"].get("namespace", ""), labels=selector)
        return frozenset(o.metadata.labels.get(kind.label, "") for o in found)

    async def _create(self, kind: WorkerKind, worker: DesiredWorker) -> None:
        created: list[Json] = []
        try:
            for part in (worker.infrastructure, worker.bootstrap):
                with failing(kind.creating):
                    await self._writer.create(part)
                created.append(part)
            await self._writer.create(worker.object)
        except TopologyFailed as error:
            await self._writer.take_back(created, worker.object, error)
            raise
        await self._writer.put_health_check(None, worker.health_check)

    async def _update(self, kind: WorkerKind, name: str, present: CurrentWorker, worker: DesiredWorker, marks: WorkersProgress) -> None:
        if present.is_deleting:
            return
        await self._writer.put_health_check(present.health_check, worker.health_check)
        if present.name in marks.pending:
            return
        created: list[Json] = []
        try:
            with failing(f"failed to reconcile {own(present.object)}"):
                await (self._templates(name, present, worker, created) if kind.rotates else self._parts(present, worker))
            await self._writer.change(present.object, worker.object, version=_VERSION)
        except TopologyFailed as error:
            await self._writer.take_back(created, worker.object, error)
            raise

    async def _templates(self, name: str, present: CurrentWorker, worker: DesiredWorker, created: list[Json]) -> None:
        """Bring the templates up to date and let the worker refer to them; add those that were created to `created`."""
        prefix, put = worker_prefix(self._cluster, name), self._writer.put_template
        if await put(present.infrastructure, worker.infrastructure, prefix, f"MD:{name}:infrastructure"):
            created.append(worker.infrastructure)
        if await put(present.bootstrap, worker.bootstrap, prefix, f"MD:{name}:bootstrap", any_kind=True):
            created.append(worker.bootstrap)
        template = worker.object["spec"]["template"]["spec"]
        template["infrastructureRef"] = objects.reference(worker.infrastructure)
        template["bootstrap"]["configRef"] = objects.reference(worker.bootstrap)

    async def _parts(self, present: CurrentWorker, worker: DesiredWorker) -> None:
        await self._writer.put(present.infrastructure, worker.infrastructure)
        await self._writer.put(present.bootstrap, worker.bootstrap)

    async def _delete(self, present: CurrentWorker) -> None:
        await self._writer.delete_health_check(present.health_check)
        if not present.is_deleting:
            await self._writer.delete(present.object, f"failed to delete {own(present.object)}")
            self._writer.record("TopologyDelete", f'Deleted {present.object["kind"]} "{shown(present.object)}"')
