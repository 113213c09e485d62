"""A Cluster that goes while a pass is under way: what it left is gone already, and nothing is made in its place."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import pytest

from clusterwright.api.core import Cluster, MachineDeployment
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.controllers.topology.applying import Applier
from clusterwright.controllers.topology.failures import TopologyFailed
from clusterwright.controllers.topology.object_writing import ObjectWriter
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server
from clusterwright.simulation.world import START

KEY = ObjectKey("default", "c")
DEPLOYMENT: Json = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "MachineDeployment",
    "metadata": {"name": "c-w", "namespace": "default"},
    "spec": {
        "clusterName": "c",
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "clusterName": "c",
                "bootstrap": {"dataSecretName": "d"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "t"},
            },
        },
    },
}


@pytest.mark.parametrize(("fate", "made"), [("stays", 1), ("is deleted", 0), ("is gone", 0), ("is another", 0)])
def test_nothing_is_created_for_a_cluster_under_deletion(fate: str, made: int) -> None:
    async def main() -> int:
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        client = RestClient(InProcessTransport(server), clock=clock)
        for obj in samples.cluster_class(seconds=1):
            await client.create(obj)
        cluster = samples.topology("c", workers={})
        cluster["metadata"]["finalizers"] = ["example.com/keep"] if fate == "is deleted" else []
        read = (await client.create(cluster)).json  # what the pass goes by
        if fate != "stays":
            await client.delete(Cluster, KEY)
        if fate == "is another":
            await client.create(samples.topology("c", workers={}))
        writer = ObjectWriter(client, Applier(client, clock.monotonic), dict(read), lambda *_: None, lambda *_: None)
        with nullcontext() if made else pytest.raises(TopologyFailed, match="is being deleted"):
            await writer.create(DEPLOYMENT)
        found = await client.list(MachineDeployment)
        server.close()
        return len(found)

    assert run_virtual(main()) == made
