"""Verdicts on many clusters at a glance: each the one that `explain` gives, from its own objects alone."""

from __future__ import annotations

import asyncio
from random import Random

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.inmemory.faults import FAULT
from clusterwright.offline.glance import Fleet, read
from clusterwright.offline.listing import everything
from clusterwright.offline.reported import Sight
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import management_server, plane
from clusterwright.simulation.world import START
from offline import faults_of_neighbours
from offline.live import CLUSTER, DEV_MACHINE, NAMESPACE, SUBJECT, key, look, machines, up


class Busy(InProcessTransport):
    """An API server that is written to between two lists: the Secrets were listed, then one is made, and who names it."""

    is_done = False

    async def send(self, request: Request) -> Response:
        response = await super().send(request)
        if request.path.endswith("/secrets") and not self.is_done:
            self.is_done = True
            client = RestClient(InProcessTransport(self.server))
            metadata = {"name": "late", "namespace": "default"}
            await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
            spec = {
                "clusterSelector": {"matchLabels": {"a": "b"}},
                "resources": [{"kind": "Secret", "name": "late"}],
                "strategy": "ApplyOnce",
            }
            api = "addons.cluster.x-k8s.io/v1beta2"
            await client.create({"apiVersion": api, "kind": "ClusterResourceSet", "metadata": metadata, "spec": spec})
        return response


def test_what_is_made_while_others_are_listed_is_not_missing() -> None:
    async def main() -> set[str]:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        found = await everything(RestClient(Busy(server), clock=clock), "default")
        server.close()
        return {f"{o.kind}/{o.key.name}" for o in found.objects}

    assert {"ClusterResourceSet/late", "Secret/late"} <= run_virtual(main())


def test_every_cluster_of_a_namespace_has_its_own_verdict() -> None:
    async def main() -> tuple[Fleet, Verdict]:
        async with plane(LoopClock(START)) as p:
            await up(p)
            await p.apply([*samples.cluster("d", has_control_plane_object=True)])  # its control plane was never made
            await p.apply([*samples.cluster("e", has_control_plane_object=True), *samples.control_plane("e", replicas=1)])
            await p.client.patch(CLUSTER, key("e"), {"spec": {"paused": True}})
            await asyncio.sleep(60)
            (worker,) = await machines(p, control_plane=False)
            await p.annotate(DEV_MACHINE, worker, {FAULT: "kubelet-stops"})
            await asyncio.sleep(60)
            return await read(p.client, NAMESPACE, p.clock.now()), (await look(p)).verdict

    fleet, explained = run_virtual(main())
    found = {name: verdict for (_, name), verdict in fleet.verdicts().items()}
    assert {name: v.state for name, v in found.items()} == {"c": State.BROKEN, "d": State.BROKEN, "e": State.WAITING}
    assert (found["c"].headline, found["c"].who) == (explained.headline, explained.who)
    assert found["c"].subject == SUBJECT
    assert found["d"].object == "KubeadmControlPlane/default/d"
    assert found["e"].object == "Cluster/default/e"
    assert not any(name.endswith("/d") for name in fleet.names_of(key("c")))


def test_what_was_not_listed_is_not_called_absent() -> None:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OtherCluster", "name": "c"}
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
        "spec": {"infrastructureRef": reference, "controlPlaneRef": reference},
    }
    one = ObjectKey("ns", "c")
    unseen = Fleet([cluster], Sight(START, frozenset({"Cluster"}), {"OtherCluster": "forbidden"})).verdict(one)
    seen = Fleet([cluster], Sight(START, frozenset({"Cluster", "OtherCluster"}))).verdict(one)
    assert (unseen.state, "does not exist" in unseen.what) == (State.UNSEEN, False)
    assert "forbidden" in unseen.what
    assert (seen.object, "does not exist" in seen.what) == ("OtherCluster/ns/c", True)


def test_an_extension_that_holds_a_cluster_is_named_at_a_glance_too() -> None:
    fault = next(f for f in faults_of_neighbours.FAULTS if f.name == "hook holds creation")

    async def main() -> tuple[Verdict, Verdict]:
        async with fault.stage(LoopClock(START)) as p:
            await fault.make(p)
            await asyncio.sleep(60)
            return (await look(p)).verdict, (await read(p.client, NAMESPACE, p.clock.now())).verdict(key("c"))

    whole, glimpse = run_virtual(main())
    assert (glimpse.state, glimpse.object, glimpse.what) == (whole.state, whole.object, whole.what)
    assert glimpse.object == "ExtensionConfig/ext"
