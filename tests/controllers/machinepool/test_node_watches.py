"""Which pool a change of a Node or of an infrastructure machine watches, and what is not applied twice."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import MachinePool, MachinePoolSpec, MachinePoolStatus
from clusterwright.api.kubernetes import Node, NodeSpec, ObjectReference
from clusterwright.api.meta import Json, ObjectKey, ObjectMeta, Unstructured
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.machinepool.node_watches import NodeWatches, pools_by_label
from clusterwright.kubeadm.naming import label_value

CLUSTER = ObjectKey("ns1", "c1")
LONG = "p" * 70


def a_pool(name: str, names: tuple[str, ...] = (), ids: tuple[str, ...] = (), cluster: str = "c1") -> MachinePool:
    refs = tuple(ObjectReference(name=n) for n in names)
    return MachinePool(
        metadata=ObjectMeta(name=name, namespace="ns1"),
        spec=MachinePoolSpec(cluster_name=cluster, provider_id_list=ids),
        status=MachinePoolStatus(node_refs=refs),
    )


def a_node(name: str = "n1", provider_id: str = "", **annotations: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, annotations=annotations), spec=NodeSpec(provider_id=provider_id))


@pytest.mark.parametrize(
    ("pools", "node", "expected"),
    [
        pytest.param([a_pool("a", names=("n1",))], a_node(), ["a"], id="by-reference"),
        pytest.param([a_pool("a", ids=("p1",))], a_node(provider_id="p1"), ["a"], id="by-provider-id"),
        pytest.param([a_pool("a", names=("n1",)), a_pool("b", ids=("p1",))], a_node(provider_id="p1"), ["a"], id="reference-first"),
        pytest.param([a_pool("a", ids=("p1",)), a_pool("b", ids=("p1",))], a_node(provider_id="p1"), [], id="ambiguous"),
        pytest.param([a_pool("a", ids=("",))], a_node(), [], id="no-id-is-no-match"),
        pytest.param([a_pool("a", names=("n1",))], a_node(**{"cluster.x-k8s.io/cluster-name": "other"}), [], id="of-another-cluster"),
    ],
)
def test_a_node_wakes_its_pool(pools: Any, node: Node, expected: list[str]) -> None:
    woken: list[str] = []
    watches = NodeWatches(lambda key, _: woken.append(key.name))
    for pool in pools:
        watches.learn(pool, CLUSTER)

    watches.node_changed(CLUSTER)(node)

    assert woken == expected


def test_a_pool_that_is_gone_is_not_woken() -> None:
    watches = NodeWatches(lambda *_: None)
    watches.learn(a_pool("a", names=("n1",)), CLUSTER)

    watches.forget(ObjectKey("ns1", "a"))

    assert watches.pools_of(CLUSTER, "n1", "") == ()


class Pools:
    """A reader of these pools."""

    def __init__(self, *pools: MachinePool) -> None:
        self.pools = pools

    async def list(self, kind: Any, *, namespace: str, labels: dict[str, str]) -> Any:
        return [p for p in self.pools if p.spec.cluster_name == labels["cluster.x-k8s.io/cluster-name"]]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"cluster.x-k8s.io/pool-name": "a"}, ["a"], id="plain"),
        pytest.param({"cluster.x-k8s.io/pool-name": label_value(LONG)}, [LONG], id="hashed"),
        pytest.param({"cluster.x-k8s.io/pool-name": "nobody"}, [], id="no-match"),
        pytest.param({}, [], id="no-label"),
        pytest.param({"cluster.x-k8s.io/pool-name": "a", "cluster.x-k8s.io/cluster-name": "c2"}, [], id="of-another-cluster"),
    ],
)
async def test_an_infrastructure_machine_wakes_its_pool(labels: dict[str, str], expected: list[str]) -> None:
    metadata = {"name": "vm", "namespace": "ns1", "labels": {"cluster.x-k8s.io/cluster-name": "c1", **labels}}

    found = await pools_by_label(Unstructured({"metadata": metadata}), Pools(a_pool("a"), a_pool(LONG)))  # type: ignore[arg-type]

    assert [key.name for key in found] == expected


class Applying:
    """Counts what is applied, and answers as a server does."""

    def __init__(self) -> None:
        self.version = 0

    async def apply(self, intent: Json, *, field_manager: str) -> Unstructured:
        self.version += 1
        return Unstructured({"metadata": {**intent["metadata"], "uid": "u", "resourceVersion": str(self.version)}})


async def test_an_intent_is_applied_again_only_if_it_or_the_machine_changed() -> None:
    client = Applying()
    applier = Applier(client)  # type: ignore[arg-type]
    pool = ObjectKey("ns1", "a")
    intent: Json = {"metadata": {"name": "m"}, "spec": {"x": 1}}

    async def apply(intent: Json, version: str) -> int:
        await applier.apply_if_changed(pool, ObjectMeta(name="m", uid="u", resource_version=version) if version else None, intent, "m")
        return client.version

    assert await apply(intent, "") == 1
    assert await apply(intent, "1") == 1
    assert await apply(intent, "9") == 2, "somebody changed the Machine"
    assert await apply({"metadata": {"name": "m"}, "spec": {"x": 2}}, "2") == 3, "the intent changed"
    applier.keep_only(pool, set())
    assert await apply({"metadata": {"name": "m"}, "spec": {"x": 2}}, "3") == 4, "nothing is remembered of what is gone"
