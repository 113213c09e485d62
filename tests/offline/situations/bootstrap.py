"""Situations of bootstrap data, tokens and certificates."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.kubeadm import certificates as pki
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.simulation.world import START
from offline.live import CONFIG_TEMPLATE, NAMESPACE, SECRET, key, machines, whole
from offline.situations.making import of_samples, scale, the
from offline.situations.truth import Make, Situation

_CONFIG = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig")


def _encoded(data: dict[str, bytes]) -> Json:
    return {k: base64.b64encode(v).decode() for k, v in data.items()}


def secret(name: str, data: dict[str, bytes], type_: str = "cluster.x-k8s.io/secret") -> Json:
    labels = {"cluster.x-k8s.io/cluster-name": "c"}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": metadata, "data": _encoded(data)}


def own_authority(how: str) -> Make:
    """A CA that its author made, with a mistake, before the cluster."""

    async def make(p: Plane) -> None:
        keys = sample_keys()
        first, second = await keys.new_key(pki.DEFAULT_ALGORITHM), await keys.new_key(pki.DEFAULT_ALGORITHM)
        old = timedelta(days=365 * 11) if how == "expired" else timedelta()
        pair = pki.new_ca(first, now=START - old, serial=1)
        stranger = pki.new_ca(second, now=START, serial=2)
        data = {
            "misnamed": {"ca.crt": pair.certificate, "ca.key": pair.key},
            "mismatched": {"tls.crt": pair.certificate, "tls.key": stranger.key},
            "expired": {"tls.crt": pair.certificate, "tls.key": pair.key},
        }[how]
        await p.client.create(secret("c-ca", data))
        await p.apply(whole())

    return make


async def token_gone(p: Plane) -> None:
    """The tokens of the workload cluster vanish while a slow worker boots."""
    await p.client.patch(
        GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate"),
        key("md"),
        {
            "spec": {
                "template": {
                    "spec": {"backend": {"inMemory": {"vm": {"provisioning": {"startupDuration": "60s"}}}}},
                }
            }
        },
    )
    await scale(p, 2)
    client = p.workload("c").client
    for _ in range(55):
        await asyncio.sleep(1)
        for found in await client.list(SECRET, namespace="kube-system"):
            if found.metadata.name.startswith("bootstrap-token-"):
                await client.delete(SECRET, found.key)


async def data_gone(p: Plane) -> None:
    """The bootstrap data of a Machine that boots are deleted."""
    template = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate")
    slow = {"backend": {"inMemory": {"vm": {"provisioning": {"startupDuration": "60s"}}}}}
    await p.client.patch(template, key("md"), {"spec": {"template": {"spec": slow}}})
    before = set(await machines(p, control_plane=False))
    await scale(p, 2)
    await asyncio.sleep(10)
    (new,) = set(await machines(p, control_plane=False)) - before
    await p.client.delete(SECRET, key(new))


async def lock_left(p: Plane) -> None:
    """A lock of the first Machine is left that nobody can read."""
    metadata = {"name": "c-lock", "namespace": NAMESPACE}
    await p.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"lock-information": "{unfinished"}})
    await p.apply(whole())


async def own_data_never(p: Plane) -> None:
    _, infra, machine = samples.machine("c", "pet", is_control_plane=False)
    machine["spec"]["bootstrap"] = {"dataSecretName": "pet-user-data"}
    await p.apply([infra, machine])


async def wrong_hashes(p: Plane) -> None:
    token = {"caCertHashes": [f"sha256:{'0' * 64}"]}
    await p.client.patch(
        CONFIG_TEMPLATE, key("md"), {"spec": {"template": {"spec": {"joinConfiguration": {"discovery": {"bootstrapToken": token}}}}}}
    )
    await scale(p, 2)


async def config_gone(p: Plane) -> None:
    """The bootstrap config of a Machine that runs is deleted."""
    await p.client.delete(_CONFIG, key((await machines(p, control_plane=False))[0]))


async def boots_in_vain(p: Plane) -> None:
    """A worker runs and never gets a Node."""
    slow = {"backend": {"inMemory": {"node": {"provisioning": {"startupDuration": "100000s"}}}}}
    template = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachineTemplate")
    await p.client.patch(template, key("md"), {"spec": {"template": {"spec": slow}}})
    await scale(p, 2)


def no_password(objects: list[Json]) -> None:
    spec = the(objects, "KubeadmConfigTemplate")["spec"]["template"]["spec"]
    spec["users"] = [{"name": "ops", "passwdFrom": {"secret": {"name": "ops-password", "key": "p"}}}]


def external_etcd(objects: list[Json]) -> None:
    spec = the(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
    spec["clusterConfiguration"]["etcd"] = {
        "external": {"endpoints": ["https://etcd:2379"], "caFile": "/ca", "certFile": "/crt", "keyFile": "/key"}
    }


SITUATIONS = [
    Situation(
        name="own CA with other keys", make=own_authority("misnamed"), object="Secret/c-ca", field="data*", who="author of Secret",
        next="rename|tls.crt", never="backup", needs_cluster=False,
    ),
    Situation(
        name="own CA whose key is of another", make=own_authority("mismatched"), object="Secret/c-ca", field="data*",
        who="author of Secret", next="belong|match|pair", never="backup|nothing has reconciled", needs_cluster=False,
    ),
    Situation(
        name="own CA that is expired", make=own_authority("expired"), object="Secret/c-ca", field="data*", who="author of Secret",
        next="valid|renew|new", what="expired", never="nothing has reconciled", needs_cluster=False,
    ),
    Situation(
        name="token gone while a worker boots", make=token_gone, object="Machine/md-*|KubeadmConfig/md-*|DevMachine/md-*",
        what="token", next="delete Machine", never="create Secret",
    ),
    Situation(
        name="bootstrap data gone while a worker boots", make=data_gone, object="Secret/md-*", field="spec.bootstrap.dataSecretName",
        next="delete Machine", never="create Secret",
    ),
    Situation(
        name="lock that cannot be read", make=lock_left, object="ConfigMap/c-lock", field="data*", next="delete",
        needs_cluster=False,
    ),
    Situation(
        name="own data never made", make=own_data_never, object="Secret/pet-user-data", field="spec.bootstrap.dataSecretName",
        who="author of Machine", next="create Secret pet-user-data",
    ),
    Situation(
        name="wrong hashes of the CA", make=wrong_hashes, object="DevMachine/md-*|KubeadmConfigTemplate/md|KubeadmConfig/md-*",
        who="KubeadmConfigTemplate md", next="caCertHashes",
    ),
    Situation(
        name="bootstrap config of a running Machine gone", make=config_gone, object="KubeadmConfig/md-*", next="delete Machine",
        never="create KubeadmConfig|kubectl edit|-n default edit",
    ),
    Situation(
        name="worker that runs and never joins", make=boots_in_vain, object="DevMachine/md-*|Machine/md-*", never="token",
    ),
    Situation(
        name="password from no Secret", make=of_samples(no_password), object="Secret/ops-password", field="spec.users*",
        who="author of", needs_cluster=False,
    ),
    Situation(
        name="external etcd without its Secret", make=of_samples(external_etcd), object="Secret/c-*",
        field="*etcd.external", who="author of KubeadmControlPlane", next="create Secret", needs_cluster=False,
    ),
]  # fmt: skip
