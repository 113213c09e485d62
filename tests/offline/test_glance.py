"""Verdicts on many clusters at a glance: each the one that `explain` gives, from its own objects alone."""

from __future__ import annotations

import asyncio

from clusterwright.api.meta import ObjectKey
from clusterwright.cli import samples
from clusterwright.inmemory.faults import FAULT
from clusterwright.offline.glance import Fleet, read
from clusterwright.offline.testimony import Sight
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START
from offline.live import CLUSTER, DEV_MACHINE, NAMESPACE, SUBJECT, key, look, machines, up


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
    assert not any(name.endswith("/d") for name in fleet.household(key("c")))


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
