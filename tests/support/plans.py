"""Captures of simulated planes, and the comparison of a plan with the execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wire import Request, Response, Transport
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.app import connector
from clusterwright.plan import Captured
from clusterwright.plan.reading import capture
from clusterwright.simulation.plane import NAMESPACE, Plane

CLUSTER = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster")
CLASS = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass")
DEPLOYMENT = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineDeployment")
HEALTH_CHECK = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineHealthCheck")
MACHINE = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
CONTROL_PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
TEMPLATE = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate")


def key(name: str) -> ObjectKey:
    """Return the key of an object in the namespace of all this."""
    return ObjectKey(NAMESPACE, name)


class Counting:
    """A transport that counts the requests by method, and the Secrets that were read by name."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.methods: Counter[str] = Counter()
        self.secrets: list[str] = []
        self.bodies: list[bytes] = []

    async def send(self, request: Request) -> Response:
        self.methods[request.method] += 1
        response = await self._inner.send(request)
        if "/secrets" in request.path:
            self.secrets.append(request.path.rpartition("/secrets")[2].removeprefix("/"))
            self.bodies.append(response.body)
        return response

    async def stream(self, request: Request):
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int):
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        await self._inner.close()


async def captured(p: Plane, touched: Collection[str] = (), transport: Transport | None = None) -> Captured:
    """Capture a plane, as the command does."""
    connect = connector(p.cloud, None)

    async def reach(kubeconfig: bytes) -> Transport:
        return await connect(ObjectKey("", ""), kubeconfig)

    return await capture(transport or InProcessTransport(p.server), [NAMESPACE], p.clock.now(), reach, touched)


def without(json: Json, *names: str) -> Json:
    """Return a plan without some fields."""
    return {name: value for name, value in json.items() if name not in names}
