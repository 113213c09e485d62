"""A world with a class and a Cluster of it, and passes of the topology controller over it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.conditions import get
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from support.clocks import MovableClock

KEY = ObjectKey("default", "c")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CORE = "cluster.x-k8s.io/v1beta2"
OWNED = {"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""}


def reconciled(objects: list[Json], variables: list[Json] | None = None) -> list[Json]:
    """The objects of a class whose controller has been here."""
    made = copy.deepcopy(objects)
    made[-1]["metadata"] |= {"generation": 1, "uid": "class"}
    made[-1]["status"] = {
        "observedGeneration": 1,
        "variables": variables or [],
        "conditions": [{"type": "VariablesReady", "status": "True", "reason": "VariablesReady", "message": ""}],
    }
    return made


class Passes:
    """One world, several passes. `events` are what was recorded, `error` is how the last pass failed."""

    def __init__(
        self,
        *objects: Json,
        class_spec: dict[str, Any] | None = None,
        observation: dict[str, Any] | None = None,
        alter: Callable[[list[Json], Json], None] = lambda _class, _cluster: None,
        **topology: Any,
    ):
        """`alter` may change the objects of the class, itself the last, and the Cluster before they are there."""
        inline = [
            {"name": v["name"], "definitions": [{"from": "inline", "required": v.get("required", False), "schema": v["schema"]}]}
            for v in (class_spec or {}).get("variables", ())
        ]
        class_objects = reconciled(samples.cluster_class(**(class_spec or {})), inline)
        cluster = samples.topology("c", **topology)
        cluster["metadata"] |= {"uid": "c-uid", "generation": 1}
        alter(class_objects, cluster)
        watched = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "now": "2026-05-01T12:00:00Z", **(observation or {})}
        bundle = assemble([*crds(), *class_objects, cluster, *objects, watched])
        self.world = World(bundle, NOW, sample_keys())
        self.client: Client = self.world.client
        entry = registry.find("Cluster", "topology/cluster")
        assert entry is not None
        self.clock = MovableClock(NOW)
        self.reconciler = registry.definition(entry).make(replace(self.world.dependencies(), clock=self.clock))
        self.error = ""
        self.requeue: float | None = None

    async def run(self, times: int = 1) -> Self:
        for _ in range(times):
            self.world.journal.actions.clear()
            self.error, self.requeue = "", None
            try:
                result = await self.world.reports.complete(self.reconciler, KEY)
                self.requeue = result.requeue_after.total_seconds() if result.requeue_after else None
            except ApiError as error:
                self.error = str(error)
        return self

    @property
    def actions(self) -> list[tuple[str, str]]:
        """What the last pass did to which kinds, the Cluster apart."""
        return [(a.verb, a.kind) for a in self.world.journal.actions if a.kind != "Cluster"]

    @property
    def events(self) -> list[str]:
        return [f"{e['reason']}: {e['message']}" for e in self.world.events]

    async def cluster(self) -> Json:
        return dict((await self.client.get(GroupVersionKind.of(CORE, "Cluster"), KEY)).json)

    async def condition(self) -> tuple[str, str, str]:
        found = get((await self.client.get(Cluster, KEY)).status.conditions, "TopologyReconciled")
        assert found is not None
        return found.status, found.reason, found.message

    async def patch(self, change: Json) -> None:
        await self.client.patch(Cluster, KEY, change)

    async def topology(self, **change: Any) -> None:
        await self.patch({"spec": {"topology": change}})

    async def all(self, kind: str, api_version: str = CORE) -> list[Json]:
        """The objects of a kind that belong to the topology."""
        found: Sequence[Unstructured] = await self.client.list(GroupVersionKind.of(api_version, kind), labels=OWNED)
        return [dict(o.json) for o in found]

    async def one(self, kind: str, api_version: str = CORE) -> Json:
        (found,) = await self.all(kind, api_version)
        return found

    async def change(self, obj: Json, change: Json) -> None:
        key = ObjectKey(obj["metadata"]["namespace"], obj["metadata"]["name"])
        await self.client.patch(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), key, change)

    async def settle(self, version: str) -> None:
        """Let the control plane and every worker report that they have their versions."""
        plane = await self.one("KubeadmControlPlane", "controlplane.cluster.x-k8s.io/v1beta2")
        await self.change(plane, {"status": {"version": plane["spec"]["version"]}})
        gvk = GroupVersionKind.of(plane["apiVersion"], plane["kind"])
        key = ObjectKey("default", plane["metadata"]["name"])
        await self.client.patch(gvk, key, {"status": {"version": version}}, subresource="status")


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)
