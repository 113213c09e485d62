"""The infrastructure of clusters, made by a provider of `clusterwright.provider`, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from clusterwright import provider
from clusterwright.api.core import Cluster, FailureDomain, Machine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.kit.watching import cluster as of_cluster
from clusterwright.provider import InfraCluster, InfraClusters, ProvisionFailed, Site
from clusterwright.runtime.client import Reader
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.reconcile import Watch
from clusterwright.testing import NAMESPACE, Plane, run_virtual, samples, virtual_plane
from support.provider import GROUP, definition

API_VERSION = f"{GROUP}/v1"
KEY = ObjectKey(NAMESPACE, "c")


class RackCluster(InfraCluster):
    api_version: str = API_VERSION
    kind: str = "RackCluster"


async def _rows_of(machine: Machine, reader: Reader) -> list[ObjectKey]:
    return [*await of_cluster(machine, reader)]


class Rows(InfraClusters[RackCluster]):
    """A row of racks for a cluster: it takes three looks to build."""

    kind = RackCluster
    finalizer = f"rackcluster.{GROUP}"
    watches = (Watch(Machine, _rows_of),)
    built: ClassVar[dict[str, int]] = {}
    seen: ClassVar[list[str]] = []
    says_no: ClassVar[bool] = False
    stopped: ClassVar[str] = ""

    async def provision(self, obj: RackCluster, cluster: Cluster) -> Site | None:
        if Rows.says_no:
            raise ProvisionFailed("there is no row left")
        assert Rows.finalizer in obj.metadata.finalizers
        Rows.seen = [m.metadata.name for m in await self.client.list(Machine, namespace=obj.metadata.namespace)]
        looks = Rows.built[cluster.metadata.name] = Rows.built.get(cluster.metadata.name, 0) + 1
        domains = (FailureDomain(name="row-7", control_plane=True),)
        return Site(host="127.0.0.1", port=7443, failure_domains=domains, stopped=Rows.stopped) if looks >= 3 else None

    async def remove(self, obj: RackCluster, cluster: Cluster | None) -> bool:
        return Rows.built.pop(obj.metadata.name, None) is None


@pytest.fixture(autouse=True)
def _nothing_built() -> None:
    Rows.built, Rows.seen, Rows.says_no, Rows.stopped = {}, [], False, ""


def objects() -> list[Json]:
    """A Cluster whose infrastructure is a RackCluster."""
    found = [o for o in samples.cluster("c") if o["kind"] == "Cluster"]
    for obj in found:
        obj["spec"]["infrastructureRef"] = {"apiGroup": GROUP, "kind": "RackCluster", "name": "c"}
    return [*found, {"apiVersion": API_VERSION, "kind": "RackCluster", "metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {}}]


def played(story: Any) -> None:
    def rows(manager: Manager) -> None:
        provider.add(manager, Rows)

    async def scenario() -> None:
        async with virtual_plane(crds=[definition("RackCluster")], setup=rows) as plane:
            await plane.apply(objects())
            await story(plane)

    run_virtual(scenario())


def test_a_cluster_gets_its_infrastructure_and_gives_it_back() -> None:
    async def story(plane: Plane) -> None:
        await plane.until_condition(RackCluster, "c", "Ready", "True")
        await plane.until_condition(Cluster, "c", "InfrastructureReady", "True")
        cluster = await plane.client.get(Cluster, KEY)
        endpoint = cluster.spec.control_plane_endpoint
        assert endpoint is not None
        assert (endpoint.host, endpoint.port) == ("127.0.0.1", 7443)
        assert [d.name for d in cluster.status.failure_domains] == ["row-7"]

        await plane.client.delete(Cluster, KEY)
        await plane.until_gone(RackCluster, "c")
        assert Rows.built == {}

    played(story)


def test_further_watches_wake_a_cluster() -> None:
    async def story(plane: Plane) -> None:
        await plane.until_condition(RackCluster, "c", "Ready", "True")
        await plane.apply([o for o in samples.machine("c", "cp-0", is_control_plane=True) if o["kind"] == "Machine"])
        await asyncio.sleep(5)
        assert Rows.seen == ["cp-0"], "long before the look that is due after a minute"

    played(story)


def test_failures_and_stops_are_reported() -> None:
    async def story(plane: Plane) -> None:
        await plane.until_condition(RackCluster, "c", "Ready", "True")
        Rows.stopped = "the row has no power"
        said = await plane.until_condition(RackCluster, "c", "Ready", "False")
        assert (said.reason, said.message) == ("Stopped", "the row has no power")

        Rows.says_no = True
        await asyncio.sleep(120)
        said = await plane.until_condition(RackCluster, "c", "Ready", "False")
        assert (said.reason, said.message) == ("ProvisioningFailed", "there is no row left")

    played(story)
