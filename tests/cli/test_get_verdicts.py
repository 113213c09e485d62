"""The verdicts of `get clusters`: of a handful by all that belongs to them, of more only where one does not say that it is well."""

from __future__ import annotations

from random import Random
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import get
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.world import START

WELL = [
    {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for type_ in ("Available", "ControlPlaneInitialized")
]
PLACE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters"


class Noting(InProcessTransport):
    """Notes what is asked."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.asked: list[str] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request.path)
        return await super().send(request)


def cluster(name: str) -> Json:
    reference = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "nowhere"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"controlPlaneRef": reference},
    }


def listed(number: int, *, well: int) -> tuple[dict[ObjectKey, str], list[str]]:
    """The verdicts on so many clusters, of which some say that they are well, and what was asked for them."""

    async def main() -> tuple[dict[ObjectKey, str], list[str]]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        client = RestClient(Noting(server), clock=clock)
        for n in range(number):
            await client.create(cluster(f"c{n}"))
            if n < well:
                await client.patch(Cluster, ObjectKey("default", f"c{n}"), {"status": {"conditions": WELL}}, subresource="status")
        client.transport.asked.clear()  # type: ignore[attr-defined]
        answer = await get._read(client, PLACE, (("includeObject", "Object"),), get._TABLE)
        found = await get._verdicts(client, [answer], is_wide=False)
        server.close()
        return found, client.transport.asked  # type: ignore[attr-defined]

    return run_virtual(main())


def test_a_few_clusters_are_read_completely() -> None:
    found, _ = listed(2, well=2)
    assert set(found.values()) == {"Broken: KubeadmControlPlane/nowhere"}


def test_of_many_clusters_only_those_not_reporting_available_are_read() -> None:
    found, asked = listed(12, well=11)
    assert found.pop(ObjectKey("default", "c11")) == "Broken: KubeadmControlPlane/nowhere"
    assert set(found.values()) == {"Fine"}
    assert any("/secrets" in path for path in asked)


def test_if_all_clusters_are_well_nothing_else_is_read() -> None:
    found, asked = listed(12, well=12)
    assert set(found.values()) == {"Fine"}
    assert asked == [PLACE]
