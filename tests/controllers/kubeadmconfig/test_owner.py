"""Edge cases 1 to 11 of the spec: who wakes a config, and whose it is. Each test is named after its number."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmconfig import build
from clusterwright.controllers.kubeadmconfig.snapshot import BadOwnerReference, OwnerFacts, find_owner, owner_chain

NS = "default"


async def _machine(world: Any, name: str = "m1", **how: Any) -> Machine:
    return convert(await world.machine(name, **how), Machine)


async def test_a_machine_wakes_the_config_that_it_refers_to(world: Any) -> None:
    machine = await _machine(world, "my-config-1")

    assert await build.owner_to_config(machine, world.judge) == (ObjectKey(NS, "my-config-1"),)


async def test_a_machine_of_another_provider_wakes_nothing(world: Any) -> None:
    await world.machine()
    change = {"spec": {"bootstrap": {"configRef": {"kind": "OtherConfig", "apiGroup": "bootstrap.example.com"}}}}
    await world.judge.patch(Machine, ObjectKey(NS, "m1"), change)
    machine = await world.judge.get(Machine, ObjectKey(NS, "m1"))

    assert await build.owner_to_config(machine, world.judge) == ()


async def test_a_cluster_wakes_the_configs_of_machines_and_pools(world: Any) -> None:
    cluster = convert(await world.cluster(), Cluster)
    for n in range(3):
        await world.machine(f"m{n}")
        await world.pool(f"p{n}")
    await world.machine("foreign", cluster="c2")

    keys = await build.cluster_to_configs(cluster, world.judge)

    assert {k.name for k in keys} == {"m0", "m1", "m2", "p0", "p1", "p2"}


async def test_the_facts_of_an_owning_machine_are_read(world: Any) -> None:
    owner = OwnerFacts.of(await _machine(world, control_plane=True, data_secret="my-data-secret", version="v1.19.6"))

    assert (owner.cluster, owner.version, owner.data_secret_name) == (ObjectKey(NS, "c1"), "v1.19.6", "my-data-secret")
    assert owner.is_control_plane
    assert not owner.is_machine_pool


async def test_a_pool_with_the_control_plane_label_is_not_a_control_plane(world: Any) -> None:
    await world.pool(version="v1.30.1")
    await world.judge.patch(MachinePool, ObjectKey(NS, "mp1"), {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}})
    owner = OwnerFacts.of(await world.judge.get(MachinePool, ObjectKey(NS, "mp1")))

    assert (owner.is_control_plane, owner.is_machine_pool) == (False, True)
    assert (owner.version, owner.data_secret_name) == ("v1.30.1", "")


async def test_an_owner_that_does_not_exist_is_waited_for(world: Any) -> None:
    await world.cluster()
    owner = await world.machine()
    await world.config(owner=owner)
    await world.delete(Machine, "m1")

    assert await world.reconcile() is None
    assert world.transport.writes == []


async def test_a_config_without_an_owner_is_left_alone(world: Any) -> None:
    config = convert(await world.config(), KubeadmConfig)

    assert await find_owner(world.judge, config, {}) is None


async def test_node_refs_of_a_machine_are_read(world: Any) -> None:
    assert not OwnerFacts.of(await _machine(world, "a")).has_node_refs
    assert OwnerFacts.of(await _machine(world, "b", node="n")).has_node_refs


@pytest.mark.parametrize(
    ("replicas", "nodes", "expected"), [(None, 0, False), (1, 0, False), (2, 1, False), (None, 1, True), (2, 2, True), (0, 0, True)]
)
async def test_node_refs_of_a_pool_are_read(world: Any, replicas: int | None, nodes: int, expected: bool) -> None:
    pool = convert(await world.pool(replicas=replicas, nodes=nodes), MachinePool)

    assert OwnerFacts.of(pool).has_node_refs is expected


async def test_a_pool_counts_only_with_its_gate(new_world: Any) -> None:
    world = await new_world(features={"MachinePool": False})
    await world.cluster(initialized=True)
    await world.certificates()
    await world.pool_config()

    assert await world.reconcile("mp1") is None
    assert world.transport.writes == []


async def test_the_version_of_the_reference_does_not_matter(world: Any) -> None:
    await world.cluster(initialized=True)
    await world.certificates()
    owner = await world.machine()
    await world.config(owner=owner | {"apiVersion": "cluster.x-k8s.io/v1beta1"})

    assert await world.reconcile() == 300


async def test_other_owners_are_skipped(world: Any) -> None:
    machine = await world.machine()
    config = await world.config(owner=machine)
    foreign = {"apiVersion": "foo/v1", "kind": "Foo", "name": "foo", "uid": "1"}
    config["metadata"]["ownerReferences"].insert(0, foreign)

    owner = await find_owner(world.judge, convert(config, KubeadmConfig), {})

    assert owner is not None
    assert owner.metadata.name == "m1"


async def test_an_unreadable_reference_is_an_error(world: Any) -> None:
    config = await world.config(owner=await world.machine())
    config["metadata"]["ownerReferences"].insert(0, {"apiVersion": "a/b/c", "kind": "Foo", "name": "foo", "uid": "1"})

    with pytest.raises(BadOwnerReference):
        await find_owner(world.judge, convert(config, KubeadmConfig), {})


async def test_a_failing_look_up_of_the_owner_is_reported(world: Any) -> None:
    await world.cluster()
    await world.worker()
    world.refuse("GET", "/machines/m1$")

    assert (await world.failing()).startswith("failed to get owner: ")


async def test_the_owners_of_a_machine_are_known_to_the_log(world: Any) -> None:
    control_plane = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "cp", "uid": "1"}
    await world.machine()
    await world.judge.patch(Machine, ObjectKey(NS, "m1"), {"metadata": {"ownerReferences": [control_plane]}})
    machine = await world.judge.get(Machine, ObjectKey(NS, "m1"))
    pool = convert(await world.pool(), MachinePool)

    assert await owner_chain(world.judge, machine) == ("KubeadmControlPlane/cp",)
    assert await owner_chain(world.judge, pool) == ()


# --------------------------------------------------------------------------- nothing waits for a timer alone


def counts(kind: type[Any], old: Any, new: Any) -> bool:
    """Whether the controller's first watch on the kind heeds the change."""
    when = next(w.when for w in build.CONTROLLER.watches if w.kind is kind)
    assert when is not None
    return when(old, new)


async def _changed(world: Any, change: dict[str, Any], subresource: str = "") -> bool:
    key = ObjectKey(NS, "c1")
    old = await world.judge.get(Cluster, key)
    await world.judge.patch(Cluster, key, change, subresource=subresource)
    return counts(Cluster, old, await world.judge.get(Cluster, key))


INITIALIZED = {
    "type": "ControlPlaneInitialized",
    "status": "True",
    "reason": "X",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("change", "subresource", "expected"),
    [
        ({"spec": {"paused": True}}, "", True),
        ({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}}, "", True),
        ({"status": {"initialization": {"infrastructureProvisioned": True}}}, "status", True),
        ({"status": {"conditions": [INITIALIZED]}}, "status", True),
        ({"spec": {"clusterNetwork": {"serviceDomain": "example.local"}}}, "", True),
        ({"status": {"phase": "Provisioned"}}, "status", False),
        ({"metadata": {"labels": {"a": "b"}}}, "", False),
    ],
)
async def test_awaited_changes_of_the_cluster_wake_a_config(world: Any, change: dict[str, Any], subresource: str, expected: bool) -> None:
    await world.cluster(infrastructure=False, endpoint=None)

    assert await _changed(world, change, subresource) is expected


async def test_a_cluster_that_appears_wakes_configs_and_one_that_goes_does_not(world: Any) -> None:
    cluster = convert(await world.cluster(), Cluster)

    assert counts(Cluster, None, cluster)
    assert not counts(Cluster, cluster, None)


async def test_a_released_lock_wakes_waiting_control_plane_machines(world: Any) -> None:
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m1")
    await world.control_plane_machine("m2")
    await world.worker("w1")
    await world.reconcile("m1")
    lock = await world.lock()

    assert build.is_lock(lock, None)
    assert not build.is_lock(None, lock)
    assert {k.name for k in await build.lock_to_configs(lock, world.judge)} == {"m2"}  # m1 held it
    assert not build.is_lock(ConfigMap(), None)


async def test_a_holder_that_is_gone_wakes_the_others(world: Any) -> None:
    machine = await _machine(world, "m1", control_plane=True)
    await world.machine("m2", control_plane=True)
    await world.delete(Machine, "m1")

    assert build.is_control_plane_gone(machine, None)
    assert [k.name for k in await build.gone_to_configs(machine, world.judge)] == ["m2"]
    assert not build.is_control_plane_gone(await _machine(world, "w1"), None)


@pytest.mark.parametrize("name", ["c1-ca", "c1-etcd", "c1-proxy", "c1-sa", "c1-apiserver-etcd-client"])
async def test_a_certificate_that_appears_wakes_the_configs_of_its_cluster(world: Any, name: str) -> None:
    await world.machine()
    await world.machine("foreign", cluster="c2")
    await world.secret(name, {"tls.crt": "x"}, type="Opaque")  # a user's own, without any label
    secret = await world.judge.get(Secret, ObjectKey(NS, name))

    assert build.is_certificate(None, secret)
    assert not build.is_certificate(secret, secret)
    assert not build.is_certificate(secret, None)
    assert [k.name for k in await build.certificate_to_configs(secret, world.judge)] == ["m1"]


@pytest.mark.parametrize("name", ["c1-kubeconfig", "m1", "whatever-token"])
async def test_other_secrets_are_not_certificates(world: Any, name: str) -> None:
    await world.secret(name, {"a": "b"}, labels={"cluster.x-k8s.io/cluster-name": "c1"})

    assert not build.is_certificate(None, await world.judge.get(Secret, ObjectKey(NS, name)))


async def test_a_missing_secret_that_appears_wakes_waiting_configs(world: Any) -> None:
    source = {"secret": {"name": "s", "key": "k"}}
    await world.config("file", {"files": [{"path": "/a", "contentFrom": source}]})
    await world.config("user", {"users": [{"name": "u", "passwdFrom": source}]})
    available = {
        "type": "DataSecretAvailable",
        "status": "True",
        "reason": "Available",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    await world.config("done", {"files": [{"path": "/a", "contentFrom": source}]}, status={"conditions": [available]})
    await world.config("other", {"files": [{"path": "/a", "content": "x"}]})
    await world.secret("s", {"k": "v"})
    await world.secret("ours", {"value": "v"}, type="cluster.x-k8s.io/secret")
    secret, ours = [await world.judge.get(Secret, ObjectKey(NS, name)) for name in ("s", "ours")]

    assert build.is_content(None, secret)
    assert not build.is_content(secret, secret)
    assert not build.is_content(None, ours)
    assert [k.name for k in await build.content_to_configs(secret, world.judge)] == ["file", "user"]


async def test_status_noise_of_a_machine_wakes_nothing_but_its_node_does(world: Any) -> None:
    old = await _machine(world)
    noisy = await world.judge.patch(Machine, old.key, {"status": {"phase": "Pending"}}, subresource="status")
    assert not counts(Machine, old, convert(noisy.json, Machine))
    joined = await world.judge.patch(Machine, old.key, {"status": {"nodeRef": {"name": "n"}}}, subresource="status")

    assert counts(Machine, old, convert(joined.json, Machine))


def test_the_controller_watches_all_of_it() -> None:
    assert {w.kind for w in build.CONTROLLER.watches} == {Machine, MachinePool, Cluster, ConfigMap, Secret}
    assert build.CONTROLLER.workload_wake is not None
