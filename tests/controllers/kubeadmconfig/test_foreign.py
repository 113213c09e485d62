"""The name of a config is a user's choice: a Secret or ConfigMap of that name that is somebody else's is never touched."""

from __future__ import annotations

import re
from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.conditions import get
from clusterwright.controllers.kubeadmconfig.init_lock import InitLock, Lock
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts
from support.kubeadmconfig import b64

NS = "default"
TYPE = "cluster.x-k8s.io/secret"
OURS = {"cluster.x-k8s.io/cluster-name": "c1"}
DATA = {"value": b64("#cloud-config"), "format": b64("cloud-config")}
SECRET = GroupVersionKind("", "v1", "Secret")


def controlled_by(kind: str, name: str, group: str) -> list[dict[str, Any]]:
    return [{"apiVersion": f"{group}/v1beta2", "kind": kind, "name": name, "uid": "u-1", "controller": True}]


KCP = controlled_by("KubeadmControlPlane", "c1", "controlplane.cluster.x-k8s.io")
CONFIG = controlled_by("KubeadmConfig", "m1", "bootstrap.cluster.x-k8s.io")
FOREIGN = {
    "a CA that a control plane made": (TYPE, OURS, KCP, {"tls.crt": b64("c"), "tls.key": b64("k")}, "KubeadmControlPlane c1"),
    "a CA that a user brings": (TYPE, OURS, [], {"tls.crt": b64("c"), "tls.key": b64("k")}, "it holds a certificate"),
    "a CA that this config made": (TYPE, OURS, CONFIG, {"tls.crt": b64("c"), "tls.key": b64("k")}, "it holds a certificate"),
    "a kubeconfig that a control plane made": (TYPE, OURS, KCP, {"value": b64("kind: Config")}, "already controlled by KubeadmControlPlane c1"),
    "a kubeconfig that a user brings": (TYPE, OURS, [], {"value": b64("kind: Config")}, "it does not hold bootstrap data"),
    "a password": ("Opaque", {}, [], {"password": b64("p")}, "its type is Opaque"),
    "bootstrap data of another cluster": (TYPE, {"cluster.x-k8s.io/cluster-name": "c2"}, [], DATA, "is 'c2', not 'c1'"),
    "bootstrap data of another config": (
        TYPE, OURS, controlled_by("KubeadmConfig", "m2", "bootstrap.cluster.x-k8s.io"), DATA, "KubeadmConfig m2 controls it"
    ),
    "data of another provider": (TYPE, OURS, controlled_by("RKE2Config", "m1", "bootstrap.cluster.x-k8s.io"), DATA, "already controlled by RKE2Config m1"),
    "data that the Machine owned in very old versions": (
        TYPE, OURS, controlled_by("Machine", "m1", "cluster.x-k8s.io"), DATA, "already controlled by Machine m1"
    ),
}  # fmt: skip


async def a_secret(world: Any, type: str, labels: Any, owners: Any, data: Any) -> Any:
    metadata = {"namespace": NS, "name": "m1", "labels": labels, "ownerReferences": owners}
    return await world.judge.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type, "data": data})


async def a_worker(world: Any) -> None:
    await world.cluster(initialized=True)
    await world.certificates()
    await world.worker()


@pytest.mark.parametrize("what", FOREIGN)
async def test_a_foreign_secret_is_left_alone_and_named(world: Any, what: str) -> None:
    type, labels, owners, data, why = FOREIGN[what]
    await a_worker(world)
    before = await a_secret(world, type, labels, owners, data)

    for _ in range(3):
        with pytest.raises(Exception, match=re.escape(why)):
            await world.reports.complete(world.reconciler, ObjectKey(NS, "m1"))

    after = await world.judge.get(SECRET, ObjectKey(NS, "m1"))
    assert after.json == before.json
    config = await world.judge.get(KubeadmConfig, ObjectKey(NS, "m1"))
    assert not config.status.data_secret_name
    told = get(config.status.conditions, "DataSecretAvailable")
    if any(owner.get("controller") and owner["kind"] != "KubeadmConfig" for owner in owners):
        assert told is None
        return
    assert told is not None
    assert (told.status, told.reason) == ("False", "NotAvailable")
    assert why in told.message
    assert "delete it if nobody needs it, or use another name" in told.message


@pytest.mark.parametrize("generated", [True, False])
async def test_a_secret_that_another_object_controls_is_an_error(world: Any, generated: bool) -> None:
    await a_worker(world)
    if generated:
        status = {"dataSecretName": "m1", "initialization": {"dataSecretCreated": True}}
        await world.judge.patch(KubeadmConfig, ObjectKey(NS, "m1"), {"status": status}, subresource="status")
    before = await a_secret(world, TYPE, OURS, KCP, DATA)

    text = "could not add KubeadmConfig m1 as ownerReference to bootstrap Secret m1, it is already controlled by KubeadmControlPlane c1"
    with pytest.raises(Exception, match=f"^{text}$"):
        await world.reports.complete(world.reconciler, ObjectKey(NS, "m1"))

    assert (await world.judge.get(SECRET, ObjectKey(NS, "m1"))).json == before.json
    told = get((await world.judge.get(KubeadmConfig, ObjectKey(NS, "m1"))).status.conditions, "DataSecretAvailable")
    assert told is None


OURS_TO_TAKE = {
    "what an earlier pass left": (TYPE, OURS, CONFIG, DATA),
    "what was restored without owners": (TYPE, OURS, [], DATA),
    "an empty Secret of our type": (TYPE, {}, [], {}),
}


@pytest.mark.parametrize("what", OURS_TO_TAKE)
async def test_bootstrap_data_of_this_config_is_adopted(world: Any, what: str) -> None:
    await a_worker(world)
    await a_secret(world, *OURS_TO_TAKE[what])

    await world.reports.complete(world.reconciler, ObjectKey(NS, "m1"))

    config = await world.judge.get(KubeadmConfig, ObjectKey(NS, "m1"))
    secret = await world.judge.get(Secret, ObjectKey(NS, "m1"))
    assert [(r.kind, r.uid, r.controller) for r in secret.metadata.owner_references] == [("KubeadmConfig", config.metadata.uid, True)]
    assert b"kubeadm join" in secret.data["value"]


async def test_a_config_map_that_is_not_a_lock_is_neither_taken_nor_deleted(world: Any) -> None:
    cluster = ClusterFacts.of(convert(await world.cluster(), Cluster))
    await world.judge.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS, "name": "c1-lock"}, "data": {"combination": "1234"}}
    )
    lock = InitLock(world.client)

    assert await lock.acquire(cluster, "m1") is Lock.DENIED
    assert await lock.release(cluster)
    assert await lock.release(cluster, held_by="m1")

    assert (await world.judge.get(ConfigMap, ObjectKey(NS, "c1-lock"))).data == {"combination": "1234"}
