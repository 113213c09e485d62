"""How many machines a DevMachinePool makes, how they are called, and which go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import (
    Bootstrap,
    Cluster,
    ClusterInitializationStatus,
    ClusterStatus,
    ContractVersionedObjectReference,
    MachinePoolSpec,
    MachineSpec,
    MachineTemplateSpec,
)
from clusterwright.api.infrastructure import DevMachine, DevMachinePool, DevMachineSpec, DevMachineStatus
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.controllers.inmemory import poolplan as plan
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, PoolFacts
from clusterwright.controllers.inmemory.poolplan import Act, Instance, PoolScene

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UP = ClusterFacts.of(Cluster(status=ClusterStatus(initialization=ClusterInitializationStatus(infrastructure_provisioned=True))))


def a_pool(replicas: int | None, *, secret: str | None = "s", version: str = "v1.34.1") -> PoolFacts:
    spec = MachineSpec(cluster_name="c", version=version, bootstrap=Bootstrap(data_secret_name=secret))
    return PoolFacts(
        metadata=ObjectMeta(name="p"), spec=MachinePoolSpec(cluster_name="c", replicas=replicas, template=MachineTemplateSpec(spec=spec))
    )


def an_instance(
    name: str, age: int = 0, *, ready: bool = True, version: str = "v1.34.1", marked: bool = False, leaves: bool = False
) -> Instance:
    status = DevMachineStatus(conditions=(Condition(type="NodeProvisioned", status="True" if ready else "False"),))
    annotations = {plan.VERSION_ANNOTATION: version}
    infra = DevMachine(
        metadata=ObjectMeta(name=name, uid=name, creation_timestamp=NOW - timedelta(minutes=age), annotations=annotations),
        spec=DevMachineSpec(provider_id=f"in-memory://{name}"),
        status=status,
    )
    marks = {"cluster.x-k8s.io/delete-machine": ""} if marked else {}
    machine = MachineFacts(metadata=ObjectMeta(name=name, annotations=marks, deletion_timestamp=NOW if leaves else None))
    return Instance(infra, machine)


def a_scene(replicas: int | None, *instances: Instance, cluster: ClusterFacts = UP, **pool: Any) -> PoolScene:
    obj = DevMachinePool(metadata=ObjectMeta(name="p", namespace="ns", uid="u1"))
    return PoolScene(now=NOW, object=obj, pool=a_pool(replicas, **pool), cluster=cluster, instances=instances)


@pytest.mark.parametrize(
    ("scene", "act"),
    [
        pytest.param(a_scene(3, cluster=ClusterFacts.of(Cluster())), None, id="waits-for-the-cluster"),
        pytest.param(a_scene(3, secret=None), None, id="waits-for-bootstrap-data"),
        pytest.param(a_scene(3, an_instance("a")), Act.CREATE, id="too-few"),
        pytest.param(a_scene(None), Act.CREATE, id="one-by-default"),
        pytest.param(a_scene(1, an_instance("a"), an_instance("b"), secret=None), Act.REMOVE, id="too-many"),
        pytest.param(a_scene(1, an_instance("a"), an_instance("b", leaves=True)), None, id="what-leaves-does-not-count"),
        pytest.param(a_scene(1, an_instance("a")), None, id="settled"),
        pytest.param(a_scene(2, an_instance("a", version="old"), an_instance("b", ready=False)), None, id="one-replacement-at-a-time"),
        pytest.param(a_scene(2, an_instance("a", version="old"), an_instance("b")), Act.REPLACE, id="outdated"),
    ],
)
def test_the_pool_creates_and_deletes_the_right_machines(scene: PoolScene, act: Act | None) -> None:
    assert plan.SCALE.decide(scene).chosen(Act) is act


def test_a_deleted_pool_removes_its_machines_and_then_its_finalizer() -> None:
    scene = a_scene(2, an_instance("a"))
    gone = replace(scene.object, metadata=replace(scene.object.metadata, deletion_timestamp=NOW))

    with_machines = PoolScene(now=NOW, object=gone, instances=scene.instances)
    empty = PoolScene(now=NOW, object=gone)

    assert plan.SCALE.decide(with_machines).chosen(Act) is Act.EMPTY
    assert plan.SCALE.decide(empty).chosen(Act) is Act.RELEASE


def test_the_same_view_gives_the_same_names_and_never_more_machines_than_wanted() -> None:
    first = [m["metadata"]["name"] for m in plan.new_machines(a_scene(3))]
    again = [m["metadata"]["name"] for m in plan.new_machines(a_scene(3))]
    stale = [m["metadata"]["name"] for m in plan.new_machines(a_scene(3, an_instance(first[0])))]

    assert len(set(first)) == 3
    assert first == again
    assert stale == first[1:]


def test_machines_carry_what_the_contract_asks_for() -> None:
    made = plan.new_machines(a_scene(1))[0]

    assert made["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/pool-name": "p"}
    assert made["metadata"]["ownerReferences"][0]["kind"] == "DevMachinePool"
    assert "controller" not in made["metadata"]["ownerReferences"][0], "its Machine will be"


def test_the_order_in_which_machines_go() -> None:
    instances = [
        an_instance("old", 9),
        an_instance("young", 1),
        an_instance("down", 5, ready=False),
        an_instance("outdated", 7, version="v1.33.0"),
        an_instance("marked", 8, marked=True),
    ]

    assert [i.name for i in plan.surplus(a_scene(0, *instances))] == ["marked", "outdated", "down", "young", "old"]
    assert [i.name for i in plan.surplus(a_scene(4, *instances))] == ["marked"]


def test_the_pool_reports_its_machines() -> None:
    told = plan.with_status(a_scene(2, an_instance("b", 1), an_instance("a", 2), an_instance("c", leaves=True)))

    assert told.spec.provider_id_list == ("in-memory://a", "in-memory://b")
    assert (told.status.replicas, told.status.ready, told.status.infrastructure_machine_kind) == (2, True, "DevMachine")
    assert [i.instance_name for i in told.status.instances] == ["a", "b"]


def test_once_up_the_pool_counts_as_provisioned_for_good() -> None:
    scene = a_scene(3, an_instance("a"))

    assert not plan.with_status(scene).status.ready
    was = replace(scene.object, status=replace(scene.object.status, ready=True))
    assert plan.with_status(PoolScene(now=NOW, object=was, pool=scene.pool, cluster=UP, instances=scene.instances)).status.ready


def test_strays_are_machines_without_a_backing_machine() -> None:
    def a_machine(name: str, **more: Any) -> MachineFacts:
        ref = ContractVersionedObjectReference(kind=more.pop("kind", "DevMachine"), name=name)
        return MachineFacts(metadata=ObjectMeta(name=name), spec=MachineSpec(infrastructure_ref=ref, **more))

    machines = [a_machine("there"), a_machine("gone"), a_machine("lost", provider_id="in-memory://lost"), a_machine("other", kind="Vm")]

    assert [m.metadata.name for m in plan.strays_of([DevMachine(metadata=ObjectMeta(name="there"))], machines, "DevMachine")] == ["gone"]
