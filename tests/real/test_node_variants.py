"""Real nodes in other arrangements: an external etcd, Ignition, addresses of IPv6. See `test_nodes.py` for what they need."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.serving.tls import make_authority, sign
from clusterwright.containers import naming
from clusterwright.runtime.clock import SystemClock
from real.kube import assets, free_port
from real.nodes import FROM, NAMESPACE, Nodes, ready_pods

PODS, SERVICES = "fd00:10:244::/56", "fd00:10:96::/112"
DNS = {"k8s-app": "kube-dns"}
NODE, POD = GroupVersionKind("", "v1", "Node"), GroupVersionKind("", "v1", "Pod")


def configurations(objects: Sequence[Json]) -> list[Json]:
    """Return the kubeadm configurations of control plane and workers among the objects of a cluster."""
    specs = {
        "KubeadmControlPlane": lambda o: o["spec"]["kubeadmConfigSpec"],
        "KubeadmConfigTemplate": lambda o: o["spec"]["template"]["spec"],
    }
    return [specs[obj["kind"]](obj) for obj in objects if obj["kind"] in specs]


async def bring_up(plane: Nodes, name: str, objects: Sequence[Json], step: str) -> None:
    for obj in objects:
        await plane.client.create(obj)
    with plane.timed(step):
        await plane.until(lambda: plane.is_up(name, 2, FROM), "1 + 1 is up")
        workload = await plane.workload(name)

        async def resolves() -> bool:
            return await ready_pods(workload, DNS, "kube-system") == 2

        await plane.until(resolves, "CoreDNS is ready")


async def take_down(plane: Nodes, name: str) -> None:
    with plane.timed("delete it"):
        await plane.delete(name)
    assert await plane.left() == []


@pytest.mark.parametrize("plane", [("--feature-gates", "KubeadmBootstrapFormatIgnition=true")], indirect=True, ids=["gate"])
async def test_real_nodes_boot_from_ignition(plane: Nodes) -> None:
    objects = await plane.objects("fire")
    for configuration in configurations(objects):
        configuration["format"] = "ignition"
    await bring_up(plane, "fire", objects, "1 + 1 that boots from Ignition")
    await take_down(plane, "fire")


async def test_real_nodes_have_pods_of_both_families(plane: Nodes) -> None:
    objects = await plane.objects("dual")
    (cluster,) = (obj for obj in objects if obj["kind"] == "Cluster")
    network = cluster["spec"]["clusterNetwork"]
    network["pods"]["cidrBlocks"].append(PODS)
    network["services"]["cidrBlocks"].append(SERVICES)
    await bring_up(plane, "dual", objects, "1 + 1 with addresses of both families")
    workload = await plane.workload("dual")
    ours = await workload.list(POD, namespace="kube-system", labels=DNS)
    assert [len(pod.json["status"]["podIPs"]) for pod in ours] == [2, 2]
    await take_down(plane, "dual")


async def test_real_nodes_have_addresses_of_ipv6_only(plane: Nodes) -> None:
    need_ipv6()
    objects = await plane.objects("six")
    (cluster,) = (obj for obj in objects if obj["kind"] == "Cluster")
    cluster["spec"]["clusterNetwork"] = {"pods": {"cidrBlocks": [PODS]}, "services": {"cidrBlocks": [SERVICES]}}
    for configuration in configurations(objects):
        for document in ("initConfiguration", "joinConfiguration"):
            if document in configuration:
                flags = configuration[document]["nodeRegistration"]["kubeletExtraArgs"]
                flags.append({"name": "node-ip", "value": "::"})
        if "initConfiguration" in configuration:
            configuration["initConfiguration"]["localAPIEndpoint"] = {"advertiseAddress": "::"}
    await bring_up(plane, "six", objects, "1 + 1 with addresses of IPv6 only")
    workload = await plane.workload("six")
    nodes = await workload.list(NODE)
    assert all(":" in str(a["address"]) for node in nodes for a in node.json["status"]["addresses"] if a["type"] == "InternalIP")
    await take_down(plane, "six")


def need_ipv6() -> None:
    """Skip where the host has no IPv6."""
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("NO IPV6 on this host: clusters of IPv6 were not tried")


async def test_a_control_plane_on_an_external_etcd(plane: Nodes, tmp_path: Path) -> None:
    binary = assets()
    if binary is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd: NO EXTERNAL ETCD was tried")
    network = await plane.engine.network(naming.NETWORK)
    if network is None:
        await plane.engine.create_network(naming.NETWORK, {naming.PLANE_LABEL: (plane.folder / "plane").read_text()})
        network = await plane.engine.network(naming.NETWORK)
    assert network is not None
    gateway = next(str(c["Gateway"]) for c in network["IPAM"]["Config"] if ":" not in c["Subnet"])
    etcd, url, files = external_etcd(binary / "etcd", gateway, tmp_path)
    try:
        objects = await plane.objects("ext")
        folder = "/etc/kubernetes/pki"
        external = {"endpoints": [url], "caFile": f"{folder}/etcd/ca.crt", "certFile": f"{folder}/apiserver-etcd-client.crt"}
        settings = configurations(objects)[0].setdefault("clusterConfiguration", {})
        settings["etcd"] = {"external": {**external, "keyFile": f"{folder}/apiserver-etcd-client.key"}}
        await bring_up(plane, "ext", [*secrets("ext", files), *objects], "1 + 1 on an external etcd")
        workload = await plane.workload("ext")
        assert await ready_pods(workload, {"component": "etcd"}, "kube-system") == 0
        await take_down(plane, "ext")
    finally:
        etcd.kill()
        etcd.wait()


def external_etcd(binary: Path, address: str, folder: Path) -> tuple[subprocess.Popen[bytes], str, dict[str, bytes]]:
    """An etcd of this machine that containers reach, and what its clients need."""
    now = SystemClock().now()
    authority = make_authority(now, "etcd-ca")
    serving = sign(authority, now, "etcd", hosts=[address, "127.0.0.1"])
    client = sign(authority, now, "apiserver-etcd-client", organizations=["system:masters"])
    for name, content in {"ca.crt": authority.certificate, "server.crt": serving.certificate, "server.key": serving.key}.items():
        (folder / name).write_bytes(content)
    url = f"https://{address}:{free_port()}"
    flags = [
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",
    ]
    flags += [
        f"--cert-file={folder}/server.crt",
        f"--key-file={folder}/server.key",
        f"--trusted-ca-file={folder}/ca.crt",
        "--client-cert-auth",
    ]
    with (folder / "etcd.log").open("wb") as log:
        process = subprocess.Popen([str(binary), *flags], stdout=log, stderr=log)
    return process, url, {"ca": authority.certificate, "certificate": client.certificate, "key": client.key}


def secrets(cluster: str, files: dict[str, bytes]) -> Sequence[Any]:
    def secret(purpose: str, data: dict[str, bytes]) -> Json:
        metadata = {"name": f"{cluster}-{purpose}", "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": cluster}}
        text = {key: value.decode() for key, value in data.items()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "cluster.x-k8s.io/secret", "stringData": text}

    pair = {"tls.crt": files["certificate"], "tls.key": files["key"]}
    return [secret("etcd", {"tls.crt": files["ca"]}), secret("apiserver-etcd-client", pair)]
