"""A life in which every controller has something to do, and who asked the API server for what."""

from __future__ import annotations

from collections.abc import AsyncIterator

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, ClusterClass, Machine, MachineDeployment, MachinePool
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.inmemory import faults
from clusterwright.runtime.logging import bound_fields
from clusterwright.runtime.rights import right_of
from clusterwright.simulation import samples
from clusterwright.simulation.plane import NAMESPACE, Plane

HOUR = 3600.0


class Recording:
    """A transport that remembers which controller asked for what, as rights."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.asked: dict[str, set[tuple[str, str]]] = {}
        """Verb and resource, by controller; those that no pass asked for are under the empty name."""
        self.refused: set[str] = set()

    def _note(self, request: Request, response: Response | None = None) -> None:
        right = right_of(request)
        who = str(bound_fields().get("controller", ""))
        verbs = {right.verb}
        if response is not None and request.method == "PATCH" and response.status == 201:
            verbs.add("create")  # server-side apply made it
        for verb in verbs:
            self.asked.setdefault(who, set()).add((verb, right.resource))
        if response is not None and response.status == 403:
            self.refused.add(f"{who}: {right}")

    async def send(self, request: Request) -> Response:
        response = await self.inner.send(request)
        self._note(request, response)
        return response

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        response, lines = await self.inner.stream(request)
        self._note(request, response)
        return response, lines

    async def forward(self, request: Request, port: int) -> Duplex:
        return await self.inner.forward(request, port)

    async def close(self) -> None:
        await self.inner.close()


def resource_set() -> list[Json]:
    content = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: default}\n"
    meta = {"namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**meta, "name": "addon"}, "data": {"a.yaml": content}},
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "name": "addon"},
            "type": "addons.cluster.x-k8s.io/resource-set", "stringData": {"b.yaml": content.replace("applied", "applied-too")},
        },
        {
            "apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": {**meta, "name": "addons"},
            "spec": {
                "clusterSelector": {"matchLabels": {"addons": "yes"}},
                "resources": [{"kind": "ConfigMap", "name": "addon"}, {"kind": "Secret", "name": "addon"}],
                "strategy": "Reconcile",
            },
        },
    ]  # fmt: skip


async def live(p: Plane) -> None:
    """Create, break and repair, upgrade, scale, delete: of plain clusters and of one with a topology, with pools and add-ons."""
    await p.apply(resource_set())
    await p.apply(samples.cluster("plain", has_control_plane_object=True))
    await p.apply(samples.control_plane("plain", replicas=3))
    await p.apply(samples.workers("plain", "plain-md", replicas=3))
    await p.apply(samples.machine_pool("plain", "plain-pool", replicas=1))
    await p.client.create(samples.machine_health_check("plain", "plain-mhc", labels={"pool": "plain-md"}))
    await p.client.patch(Cluster, ObjectKey(NAMESPACE, "plain"), {"metadata": {"labels": {"addons": "yes"}}})
    await p.apply(samples.cluster_class())
    await p.apply([samples.topology("managed")])
    await p.until_available("plain", control_plane=3, workers=4, within=HOUR)
    await p.until_available("managed", control_plane=1, workers=1, within=HOUR)

    workers = [m for m in await p.client.list(Machine) if m.metadata.labels.get("cluster.x-k8s.io/deployment-name") == "plain-md"]
    await p.annotate(DevMachine, workers[0].spec.infrastructure_ref.name, {faults.FAULT: "node-dies"})
    await p.until_gone(Machine, workers[0].metadata.name, within=HOUR)
    await p.until_available("plain", control_plane=3, workers=4, within=HOUR)

    await p.client.patch(KubeadmControlPlane, ObjectKey(NAMESPACE, "plain"), {"spec": {"version": "v1.35.0"}})
    more = samples.topology("managed", workers={"md-0": 2})["spec"]["topology"]["workers"]
    await p.client.patch(Cluster, ObjectKey(NAMESPACE, "managed"), {"spec": {"topology": {"workers": more}}})

    async def upgraded() -> bool:
        labels = {"cluster.x-k8s.io/cluster-name": "plain", "cluster.x-k8s.io/control-plane": ""}
        machines = await p.client.list(Machine, labels=labels)
        return len(machines) == 3 and all(m.spec.version == "v1.35.0" for m in machines)

    await p.until(upgraded, "the control plane is upgraded", within=2 * HOUR, step=5)
    await p.until_available("plain", control_plane=3, workers=4, within=HOUR)
    await p.until_available("managed", control_plane=1, workers=2, within=HOUR)
    await p.client.patch(MachineDeployment, ObjectKey(NAMESPACE, "plain-md"), {"spec": {"replicas": 2}})
    await p.client.patch(MachinePool, ObjectKey(NAMESPACE, "plain-pool"), {"spec": {"replicas": 2}})
    await p.until_available("plain", control_plane=3, workers=4, within=HOUR)
    await p.client.patch(KubeadmControlPlane, ObjectKey(NAMESPACE, "plain"), {"spec": {"replicas": 1}})
    await p.until_available("plain", control_plane=1, workers=4, within=HOUR)
    for name in ("plain", "managed"):
        await p.client.delete(Cluster, ObjectKey(NAMESPACE, name))
    for name in ("plain", "managed"):
        await p.until_gone(Cluster, name, within=HOUR)
    await p.client.delete(ClusterClass, ObjectKey(NAMESPACE, "in-memory"))
