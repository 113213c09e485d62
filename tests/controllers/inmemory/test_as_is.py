"""Bootstrap data that are not kubeadm's: machines boot them as they are, and the Secrets of the cluster say what comes up."""

from __future__ import annotations

import base64

import pytest

from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.kubernetes import Node, Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.tls import KeyPair, make_authority, sign
from clusterwright.conditions import get
from clusterwright.inmemory.distributions import AS_IS, BOOT, KUBEADM, PLAIN, distribution
from clusterwright.inmemory.loopback import LoopbackTransport
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.simulation.world import START
from support.provider import definition

SCRIPT = b"#!/bin/sh\ncurl -sfL https://get.example.com | sh -\n"
CA, ETCD, CLIENTS = (make_authority(START, name) for name in ("ca", "etcd", "clients"))


def encoded(pair: KeyPair) -> Json:
    return {"tls.crt": base64.b64encode(pair.certificate).decode(), "tls.key": base64.b64encode(pair.key).decode()}


def secret(name: str, data: Json) -> Json:
    labels = {"cluster.x-k8s.io/cluster-name": "c"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "data": data,
    }


def machine(name: str, *, is_control_plane: bool, config: str = "", data: bytes = SCRIPT) -> list[Json]:
    """A Machine, its simulated machine, and bootstrap data by a provider of kind `config`, or by the user."""
    _, infrastructure, made = samples.machine("c", name, is_control_plane=is_control_plane)
    found = secret(f"{name}-data", {"value": base64.b64encode(data).decode(), "format": base64.b64encode(b"shell").decode()})
    made["spec"]["bootstrap"] = {"dataSecretName": f"{name}-data"}
    if not config:
        return [found, infrastructure, made]
    made["spec"]["bootstrap"] = {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": config, "name": name}}
    status = {"dataSecretName": f"{name}-data", "initialization": {"dataSecretCreated": True}}
    metadata = {"name": name, "namespace": "default"}
    return [
        found,
        {"apiVersion": "bootstrap.cluster.x-k8s.io/v1", "kind": config, "metadata": metadata, "status": status},
        infrastructure,
        made,
    ]


def config_definition(kind: str) -> Json:
    made = definition(kind)
    made["metadata"]["name"] = f"{kind.lower()}s.bootstrap.cluster.x-k8s.io"
    made["spec"]["group"] = "bootstrap.cluster.x-k8s.io"
    made["spec"]["versions"][0]["subresources"] = {}
    return made


def cluster() -> list[Json]:
    return [*samples.cluster("c"), secret("c-ca", encoded(CA)), secret("c-etcd", encoded(ETCD)), secret("c-cca", encoded(CLIENTS))]


async def up(p: Plane, config: str = "") -> None:
    if config:
        await p.client.create(config_definition(config))
    await p.apply([*cluster(), *machine("cp", is_control_plane=True, config=config), *machine("w", is_control_plane=False, config=config)])
    await p.until_available("c", workers=1)


def test_machines_come_up_from_any_data_with_the_authorities_of_the_cluster(in_plane):
    async def body(p: Plane) -> None:
        await up(p)
        simulated = p.workload("c")
        assert simulated.serving.authority.certificate == CA.certificate
        assert [member.name for member in simulated.members()] == ["cp"]
        node = await simulated.client.get(Node, ObjectKey("", "cp"))
        assert node.spec.taints == ()
        assert not simulated.is_founded, "kubeadm has not run, and nothing says so"
        for authority, is_known in ((CA, True), (CLIENTS, True), (ETCD, False)):
            client = sign(authority, START, "admin", organizations=["system:masters"])
            reached = RestClient(LoopbackTransport(simulated, CA.certificate, client.certificate))
            if is_known:
                assert len(await reached.list(Node)) == 2
            else:
                with pytest.raises(ConnectionFailed, match="unknown certificate authority"):
                    await reached.list(Node)

    in_plane(body)


def test_a_worker_waits_until_the_api_server_answers(in_plane):
    async def body(p: Plane) -> None:
        await p.apply([*cluster(), *machine("w", is_control_plane=False)])

        async def waits() -> bool:
            found = await p.client.get(DevMachine, ObjectKey("default", "w"))
            said = get(found.status.conditions, "NodeProvisioned")
            return said is not None and "does not answer yet" in said.message

        await p.until(waits, "the machine waits for the API server")
        await p.apply(machine("cp", is_control_plane=True))
        await p.until_available("c", workers=1)
        assert not await waits()

    in_plane(body)


@pytest.mark.parametrize("config", ["RKE2Config", "TalosConfig", "AcmeConfig"])
def test_the_bootstrap_provider_is_known_by_its_kind(in_plane, config):
    async def body(p: Plane) -> None:
        await up(p, config)
        client = p.workload("c").client
        node = await client.get(Node, ObjectKey("", "cp"))
        is_rke2 = config == "RKE2Config"
        assert node.metadata.labels["node-role.kubernetes.io/control-plane"] == ("true" if is_rke2 else "")
        assert ("node-role.kubernetes.io/etcd" in node.metadata.labels) is is_rke2
        assert (await client.find(Secret, ObjectKey("kube-system", "rke2-serving")) is not None) is is_rke2

    in_plane(body)


def test_an_etcd_member_leaves_when_its_supervisor_is_asked_to(in_plane):
    async def body(p: Plane) -> None:
        await p.client.create(config_definition("RKE2Config"))
        await p.apply(cluster())
        for name in ("a", "b"):
            await p.apply(machine(name, is_control_plane=True, config="RKE2Config"))
        await p.apply(machine("w", is_control_plane=False, config="RKE2Config"))
        await p.until_available("c", control_plane=2, workers=1)
        simulated = p.workload("c")
        assert [member.name for member in simulated.members()] == ["a", "b"]

        await simulated.client.patch(Node, ObjectKey("", "a"), {"metadata": {"annotations": {"etcd.rke2.cattle.io/remove": "true"}}})

        assert [member.name for member in simulated.members()] == ["b"]
        node = await simulated.client.get(Node, ObjectKey("", "a"))
        assert node.metadata.annotations["etcd.rke2.cattle.io/removed-node-name"] == "a"
        assert simulated.is_serving

    in_plane(body)


def test_a_node_that_was_deleted_registers_again(in_plane):
    async def body(p: Plane) -> None:
        await up(p)
        client = p.workload("c").client
        before = (await client.get(Node, ObjectKey("", "w"))).metadata.uid
        await client.delete(Node, ObjectKey("", "w"))

        async def is_back() -> bool:
            found = await client.find(Node, ObjectKey("", "w"))
            return found is not None and found.metadata.uid != before

        await p.until(is_back, "the kubelet registers again")

    in_plane(body)


@pytest.mark.parametrize("data", [{"tls.crt": base64.b64encode(b"nonsense").decode()}, {}])
def test_a_damaged_authority_of_clients_is_reported_and_an_empty_one_is_ignored(in_plane, data):
    async def body(p: Plane) -> None:
        await p.apply([*cluster()[:-1], secret("c-cca", data), *machine("cp", is_control_plane=True)])

        async def state() -> bool:
            found = await p.client.get(DevMachine, ObjectKey("default", "cp"))
            said = get(found.status.conditions, "APIServerProvisioned")
            return said is not None and said.status == ("False" if data else "True") and (not data or p.workload("c").serving is None)

        await p.until(state, "the API server is up, or it is said why not")

    in_plane(body)


@pytest.mark.parametrize(
    ("config", "value", "chosen", "name"),
    [
        ("KubeadmConfig", SCRIPT, "", None),
        ("KubeadmConfig", SCRIPT, AS_IS, "plain"),
        ("RKE2Config", b"kubeadm init", "", "rke2"),
        ("RKE2Config", SCRIPT, KUBEADM, None),
        ("KThreesConfig", SCRIPT, "", "k3s"),
        ("K0sWorkerConfig", SCRIPT, "", "k0s"),
        ("AcmeConfig", SCRIPT, "", "plain"),
        ("", SCRIPT, "", "plain"),
        ("", b"kubeadm init --config x", "", None),
        ("", b"#!/bin/sh\n# no kubeadm here\n", AS_IS, "plain"),
        ("", b"kubeadm", "nonsense", None),
    ],
)
def test_how_data_are_booted_follows_from_the_config_the_data_and_the_annotation(config, value, chosen, name):
    found = distribution(config, value, chosen)

    assert (found.name if found is not None else None) == name
    assert BOOT.startswith("inmemory.clusterwright.dev/")
    assert PLAIN.labels() == {"node-role.kubernetes.io/control-plane": ""}
