"""Make a replica of a management cluster in virtual time: the embedded API server with its objects, all controllers, simulated machines.

Nothing of it reaches the original: the replica has its own API server in memory, and secrets are stand-ins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json, Unstructured
from clusterwright.apiserver.server import ApiServer
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.observation import Observation
from clusterwright.offline.record import slim_definition
from clusterwright.offline.standins import with_stand_ins
from clusterwright.plan import booting, foreign, nodes
from clusterwright.plan.captured import Captured
from clusterwright.plan.secrets import blank
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtimesdk.client import Post
from clusterwright.simulation.plane import Plane, management_server, plane

_LEFT_OUT: Final = frozenset(
    {"Event", "Namespace", "Lease", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "APIService", "Node", "Pod",
     "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Deployment"}
)  # fmt: skip
"""Kinds of a management cluster that the replica does without."""


@asynccontextmanager
async def replica(captured: Captured, *, seed: int, post: Post | None = None, coming: Sequence[Json] = ()) -> AsyncIterator[Plane]:
    """Yield a running replica, whose time begins at the moment of the capture. For use inside `run_virtual`.

    `coming`: manifests that will be applied, whose kinds may need stand-ins for their providers.
    """
    clock, keys = LoopClock(captured.now), FixedKeySource(f"plan/{seed}")
    random = Random(f"plan/{seed}")  # a simulated original may have the same seed, but no object may get the uid of another
    features = {**EMBEDDED_FEATURES, **captured.features}
    stood_in = await with_stand_ins(Bundle(tuple(blank(captured.objects)), Observation(now=captured.now)), captured.now, keys)
    objects, workloads = nodes.as_simulated(foreign.asking(booting.again(stood_in.objects)[0]), captured.workloads, captured.now)
    server = management_server(clock, random, features, lambda server: _fill(server, objects))
    cloud = Cloud(now=clock.now, random=random, keys=keys, contents=workloads)
    providers = foreign.Providers(server, clock, random, [*captured.objects, *coming])
    try:
        providers.start()
        async with plane(clock, seed=random.getrandbits(60), server=server, cloud=cloud, docker=True, features=features, post=post) as made:
            yield made
    finally:
        await providers.stop()
        await cloud.close()
        server.close()


def _fill(server: ApiServer, objects: Sequence[Json]) -> None:
    """Load the objects of a capture."""
    _define(server, objects)
    server.ensure(_namespaces(objects))
    server.load(o for o in objects if o.get("kind") not in {*_LEFT_OUT, "CustomResourceDefinition"})


def _define(server: ApiServer, objects: Iterable[Json]) -> None:
    """Serve the kinds of others: by their schemas, or without any if the capture has none."""
    ours = {entry.name for entry in server.store.table("customresourcedefinitions.apiextensions.k8s.io").objects.values()}
    for crd in objects:
        if crd.get("kind") != "CustomResourceDefinition" or crd["metadata"]["name"] in ours:
            continue
        versions = crd.get("spec", {}).get("versions") or []
        if all(version.get("schema") for version in versions):
            server.ensure([_without_webhook(crd)])
        else:
            server.load([crd])


def _without_webhook(crd: Json) -> Json:
    """Return a CRD that is served without its conversion webhook, which the replica must not call."""
    metadata = {k: v for k, v in crd["metadata"].items() if k in {"name", "labels", "annotations"}}
    return {
        **{k: v for k, v in crd.items() if k != "status"},
        "metadata": metadata,
        "spec": {**crd["spec"], "conversion": {"strategy": "None"}},
    }


def _namespaces(objects: Sequence[Json]) -> list[Json]:
    known = {o["metadata"]["name"]: o["metadata"].get("labels") or {} for o in objects if o.get("kind") == "Namespace"}
    names = {str(o["metadata"].get("namespace") or "") for o in objects} | set(known)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": known.get(name, {})}, "spec": {}}
        for name in sorted(names - {""})
    ]


def content(server: ApiServer) -> dict[str, Mapping[str, Any]]:
    """Return the objects of a replica by name, without Events and what every API server has."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, table in server.store.tables.items():
        if name in _ALWAYS_THERE or "rbac.authorization.k8s.io" in name:
            continue
        for entry in table.objects.values():
            obj = msgspec.json.decode(entry.raw)
            if foreign.is_stand_in(obj):
                continue
            found[f"{obj['kind']}/{entry.namespace}/{entry.name}" if entry.namespace else f"{obj['kind']}/{entry.name}"] = obj
    return found


def definitions(server: ApiServer) -> list[Json]:
    """Return the CRDs of a replica without their schemas."""
    entries = server.store.table("customresourcedefinitions.apiextensions.k8s.io").objects.values()
    return [slim_definition(Unstructured(msgspec.json.decode(entry.raw))) for entry in entries]


_ALWAYS_THERE: Final = frozenset({"namespaces", "events", "customresourcedefinitions.apiextensions.k8s.io"})
