"""Two Clusters name the same infrastructure object: the first one keeps it, and nobody writes without end."""

from __future__ import annotations

import asyncio

from clusterwright.api.core import Cluster
from clusterwright.api.infrastructure import DevCluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.testing import NAMESPACE, Plane, samples, with_plane


def second() -> Json:
    """A Cluster that names the infrastructure of the cluster c."""
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c"}
    metadata = {"name": "d", "namespace": NAMESPACE}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": {"infrastructureRef": reference}}


@with_plane()
async def test_the_second_cluster_is_refused_and_writes_stay_bounded(plane: Plane) -> None:
    await plane.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=1))
    await plane.until_available("c")
    before = await plane.dev_cluster("c")

    await plane.client.create(second())
    told = await plane.until_condition(Cluster, "d", "InfrastructureReady", "Unknown")
    written = plane.server.store.revision
    await asyncio.sleep(600)

    assert plane.server.store.revision - written < 100
    after = await plane.dev_cluster("c")
    assert after.metadata.resource_version == before.metadata.resource_version
    assert after.metadata.labels["cluster.x-k8s.io/cluster-name"] == "c"
    assert told.reason == "InternalError"

    await plane.client.delete(Cluster, ObjectKey(NAMESPACE, "d"))
    await plane.until_gone(Cluster, "d")
    assert await plane.client.find(DevCluster, ObjectKey(NAMESPACE, "c")) is not None
