"""Clusters of a class in virtual time: what scenarios ask of them, and extensions that answer as they are told."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.conditions import is_true
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError, ListHandlers

HOUR = 3600.0
CLUSTER = ObjectKey("default", "c")
VERSIONS = ["v1.31.2", "v1.32.1", "v1.33.0", "v1.34.1"]
SIZE = {
    "name": "size",
    "required": True,
    "schema": {"openAPIV3Schema": {"type": "string", "default": "small", "enum": ["small", "large"]}},
}
NOTE = {"name": "note", "required": False, "schema": {"openAPIV3Schema": {"type": "string", "default": "none"}}}
PATCHES = [
    {
        "name": "size",
        "definitions": [
            {
                "selector": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                    "kind": "KubeadmConfigTemplate",
                    "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
                },
                "jsonPatches": [
                    {
                        "op": "add",
                        "path": "/spec/template/spec/preKubeadmCommands",
                        "valueFrom": {"template": '- echo "{{ .size }} of {{ .builtin.cluster.name }}"\n'},
                    }
                ],
            }
        ],
    }
]


def virtual(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_virtual(scenario())


async def topology(p: Plane, change: Json) -> None:
    await p.client.patch(Cluster, CLUSTER, {"spec": {"topology": change}})


async def machines(p: Plane) -> dict[str, Machine]:
    return {m.metadata.name: m for m in await p.client.list(Machine)}


async def settled(p: Plane, version: str, workers: int, control_plane: int = 1) -> bool:
    """Whether every Machine has the version, is ready and up to date, and nothing is left to do."""
    found = list((await machines(p)).values())
    cluster = await p.cluster("c")
    deployments = await p.client.list(MachineDeployment)
    return (
        len(found) == workers + control_plane
        and all(m.spec.version == version and is_true(m.status.conditions, "Ready") for m in found)
        and is_true(cluster.status.conditions, "TopologyReconciled")
        and is_true(cluster.status.conditions, "Available")
        and all((d.status.up_to_date_replicas or 0) == (d.spec.replicas or 0) == (d.status.replicas or 0) for d in deployments)
    )


async def until_settled(p: Plane, version: str = samples.VERSION, *, workers: int, within: float = HOUR) -> None:
    async def holds() -> bool:
        return await settled(p, version, workers)

    await p.until(holds, f"everything is at {version} with {workers} workers", within=within, step=2.0)


def written(p: Plane) -> dict[tuple[str, str], bytes]:
    """Every object as it is stored, but for Events and the tokens of pools, which have lives of their own."""
    return {
        (name, str(key)): entry.raw
        for name, table in p.server.store.tables.items()
        for key, entry in table.objects.items()
        if name != "events" and not (name.startswith(("secrets", "kubeadmconfigs.")) and "-mp-" in str(key))
    }


async def until_resting(p: Plane, *, within: float = HOUR) -> None:
    """Wait until nothing was written for five minutes."""
    seen = [p.server.store.revision, p.clock.monotonic()]

    async def holds() -> bool:
        if p.server.store.revision != seen[0]:
            seen[:] = [p.server.store.revision, p.clock.monotonic()]
        return p.clock.monotonic() - seen[1] >= 300

    await p.until(holds, "nothing is written for five minutes", within=within, step=5.0)


async def only_class_left(p: Plane) -> bool:
    found = {name: [str(key) for key in keys] for name, keys in p.leftovers().items()}
    return not any("/c-" in key or key.endswith("/c") for keys in found.values() for key in keys)


class Scripted:
    """Extensions that answer as they are told; `asked` are the hooks that were, in order."""

    def __init__(self) -> None:
        self.blocking: set[str] = set()
        self.failing: set[str] = set()
        self.asked: list[str] = []

    async def call(self, question: CallHandler) -> Json:
        raise ExtensionError(f"no handler {question.handler}")

    async def call_all(self, question: CallAll) -> Json:
        self.asked.append(question.hook)
        if question.hook in self.failing:
            raise ExtensionError(f"{question.hook} is broken")
        return {"status": "Success", "message": "wait", "retryAfterSeconds": 5 if question.hook in self.blocking else 0}

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        return ("hook.ext",)
