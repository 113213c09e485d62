"""The Cluster controller under its real manager, on a strict API server, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, ObjectKey, Unstructured
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.cluster.build import CONTROLLER
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.dynamic import OwnerWatches
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.workload.access import Health
from seeds.seed_worlds import CONTROL_PLANE, INFRASTRUCTURE, NAME, NAMESPACE, Json, crd

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ObjectKey(NAMESPACE, NAME)
CLUSTER = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster")
INFRA_KIND = GroupVersionKind(INFRASTRUCTURE["apiGroup"], "v1", INFRASTRUCTURE["kind"])
CONTROL_PLANE_KIND = GroupVersionKind(CONTROL_PLANE["apiGroup"], "v1", CONTROL_PLANE["kind"])
OURS = ("Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool")


class Counting:
    """Remembers what is sent."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.inner = inner
        self.sent: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        return await self.inner.send(request)

    async def stream(self, request: Request) -> Any:
        self.sent.append(request)
        return await self.inner.stream(request)


class Connections:
    """Workload clusters of which only the health is asked."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock

    def health(self, cluster: ObjectKey) -> Health:
        return Health(connected=True, last_probe_success=self._clock.now())


class Plane:
    """An API server with unknown provider kinds, a user, and a manager with the Cluster controller."""

    def __init__(self, **features: bool) -> None:
        self.clock = LoopClock(START)
        self.server = ApiServer(now=self.clock.now, random=Random(1))
        self.user = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.transport = Counting(InProcessTransport(self.server))
        self.manager = Manager(self.transport, clock=self.clock, random=Random(2), options=Options())  # type: ignore[arg-type]
        self.passes: list[tuple[float, Mapping[str, str]]] = []
        self.reconciler: Any = None
        self._features = {"MachinePool": True, **features}

    async def start(self) -> None:
        await self.user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for definition in crds():
            if definition["spec"]["names"]["kind"] in OURS:
                await self.user.create(definition)
        for reference in (INFRASTRUCTURE, CONTROL_PLANE):
            await self.user.create(served(crd(reference, v1beta2="v1")))

        def make(controller: Any) -> Any:
            deps = Dependencies(
                client=self.manager.client,
                clock=self.clock,
                random=Random(3),
                keys=sample_keys(),
                events=self.manager.events,
                workload=Connections(self.clock),  # type: ignore[arg-type]
                dynamic=OwnerWatches(controller),
                features=self._features,
                enqueue=controller.enqueue,
                reports=controller.reports,
                trace=lambda _, rows: self.passes.append((asyncio.get_running_loop().time(), rows)),
                options={},
            )
            self.reconciler = CONTROLLER.make(deps)
            return self.reconciler

        self.manager.add_controller("cluster", Cluster, make, watches=CONTROLLER.watches, concurrency=4)
        self._task = asyncio.ensure_future(self.manager.run())
        await self.settle()

    async def stop(self) -> None:
        self.manager.stop()
        await self._task

    async def settle(self, seconds: float = 2.5) -> None:
        """Long enough for every wake, and far too short for any timer net."""
        await asyncio.sleep(seconds)

    async def create(self, obj: Json, *, status: bool = True) -> None:
        bare = {k: v for k, v in obj.items() if k != "status"}
        bare["metadata"] = {
            k: v for k, v in obj["metadata"].items() if k not in {"uid", "resourceVersion", "generation", "creationTimestamp"}
        }
        made = await self.user.create(bare)
        if status and obj.get("status"):
            await self.user.patch(made.gvk, made.key, {"status": obj["status"]}, subresource="status")

    async def cluster(self) -> Unstructured:
        return await self.user.get(CLUSTER, KEY)

    async def condition(self, type: str) -> tuple[str, str, str]:
        found = (await self.cluster()).at("status", "conditions") or []
        return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == type), ("", "", ""))


def served(definition: Json) -> Json:
    """A CRD that the API server takes: any content, with a status subresource."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{**v, "schema": schema, "subresources": {"status": {}}} for v in definition["spec"]["versions"]]
    names = {
        **definition["spec"]["names"],
        "singular": definition["spec"]["names"]["kind"].lower(),
        "listKind": definition["spec"]["names"]["kind"] + "List",
    }
    return {**definition, "spec": {**definition["spec"], "names": names, "versions": versions}}


def on_a_plane(test: Callable[[Plane], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test on a started plane, in virtual time."""

    async def main() -> None:
        plane = Plane()
        await plane.start()
        try:
            await test(plane)
        finally:
            await plane.stop()

    def run() -> None:
        body: Coroutine[Any, Any, None] = main()
        run_virtual(body)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
