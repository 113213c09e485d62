"""The whole story on real nodes: kubeadm, kubelet, etcd and containerd in containers of an engine of this machine.

`CLUSTERWRIGHT_NODE_IMAGE` names the node image; `CLUSTERWRIGHT_NODE_VERSIONS` its two tags. Each step's duration is printed at the end.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck
from clusterwright.api.kubernetes import Pod
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.api.yamlreader import load_all
from clusterwright.apiserver.serving.tls import make_authority, sign
from clusterwright.containers import naming
from clusterwright.engine import Engine
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.rest import RestClient
from real.kube import assets, free_port
from real.nodes import IMAGE, NAMESPACE, VERSIONS, Nodes, container_of, nodes
from support import engines

FROM, TO = VERSIONS
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
MISSING = "CLUSTERWRIGHT_NODE_IMAGE names no node image: NO REAL NODES were tried"


@pytest_asyncio.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Nodes]:
    if not IMAGE:
        pytest.skip(MISSING)
    if reason := engines.why_not():
        pytest.skip(reason)
    engine = Engine(engines.found()[0])
    try:
        await engines.have_haproxy(engine)
        if not await engine.has_image(engines.IMAGE):
            await engine.import_image(engines.IMAGE, engines.files())
        async with nodes(tmp_path, engine, engines.HAPROXY_IMAGE) as made:
            yield made
    finally:
        await engine.close()


def shown(plane: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write("\n" + "".join(f"| {step} | {seconds:.0f} s |\n" for step, seconds in plane.times))


async def create(plane: Nodes, name: str, control_plane: int, workers: int, *flags: str) -> None:
    counts = ("--control-plane-machines", str(control_plane), "--worker-machines", str(workers))
    await plane.cli("create", "cluster", name, "--infrastructure", "docker", "--kubernetes-version", FROM, *counts, *flags)


async def delete(plane: Nodes, name: str) -> None:
    await plane.client.delete(Cluster, ObjectKey(NAMESPACE, name))
    await plane.until(lambda: plane.gone(name), f"{name} is gone, and so are its containers")


def guarded_app() -> list[Json]:
    """Two Pods, of which a budget wants one at any time."""
    labels = {"app": "shop"}
    container = {"name": "shop", "image": engines.IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {"containers": [container], "terminationGracePeriodSeconds": 1, "topologySpreadConstraints": [spread]}
    meta = {"name": "shop", "namespace": "default"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}},
    ]  # fmt: skip


async def ready_pods(workload: RestClient, labels: dict[str, str], namespace: str = "default") -> int:
    pods = await workload.list(Pod, namespace=namespace, labels=labels)
    return sum(any(c.type == "Ready" and c.status == "True" for c in p.status.conditions) for p in pods)


async def workers(plane: Nodes, name: str) -> list[Machine]:
    return [m for m in await plane.machines(name) if CONTROL_PLANE_LABEL not in m.metadata.labels]


async def test_a_cluster_of_real_nodes_lives(plane: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    key, md = ObjectKey(NAMESPACE, "real"), ObjectKey(NAMESPACE, "real-md-0")
    try:
        with plane.timed("1 + 1"):
            await create(plane, "real", 1, 1)
            await plane.until(lambda: plane.is_up("real", 2, FROM), "1 + 1 is up")
        workload = await plane.workload("real")
        dns = {"k8s-app": "kube-dns"}
        with plane.timed("CoreDNS after that"):
            await plane.until(lambda: ready_two(workload, dns), "CoreDNS is ready")

        with plane.timed("to 3 + 2, the plane killed and started again after 15 s"):
            await plane.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 3}})
            await plane.client.patch(MachineDeployment, md, {"spec": {"replicas": 2}})
            await asyncio.sleep(15)
            await plane.kill()
            await plane.start()
            await plane.until(lambda: plane.is_up("real", 5), "3 + 2 is up")
        assert await ready_pods(workload, {"component": "etcd"}, "kube-system") == 3

        await plane.cli("load", "image", "real", engines.IMAGE)
        for obj in guarded_app():
            await workload.create(obj)
        await plane.until(lambda: ready_two(workload, {"app": "shop"}), "the app runs")
        victim = next(m for m in await workers(plane, "real"))
        with plane.timed("a worker deleted whose Pods have a PodDisruptionBudget"):
            await plane.client.delete(Machine, victim.key)
            await plane.until(lambda: kept_up(plane, workload, victim.metadata.name), "the worker is gone, and the app stayed")
            await plane.until(lambda: plane.is_up("real", 5), "3 + 2 is up again")

        with plane.timed(f"control plane of 3 from {FROM} to {TO}"):
            await plane.client.patch(KubeadmControlPlane, key, {"spec": {"version": TO}})
            await plane.until(lambda: upgraded(plane, "real", leaders=True), "the control plane is upgraded", within=900)
        with plane.timed(f"2 workers from {FROM} to {TO}"):
            await plane.cli("load", "image", "real", engines.IMAGE)
            await plane.client.patch(MachineDeployment, md, {"spec": {"template": {"spec": {"version": TO}}}})
            await plane.until(lambda: plane.is_up("real", 5, TO), "the workers are upgraded", within=900)

        for obj in guarded_app():  # a dead Node's Pods would be guarded for five minutes
            await workload.delete(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), ObjectKey("default", "shop"))
        await plane.client.create(health_check())
        victim = (await workers(plane, "real"))[0]
        with plane.timed("a worker's container removed by hand, replaced by a MachineHealthCheck (20 s)"):
            await plane.engine.remove(container_of(victim))
            await plane.until(lambda: is_replaced(plane, victim), "the worker is replaced")
        await plane.client.delete(MachineHealthCheck, ObjectKey(NAMESPACE, "real"))

        with plane.timed("control plane 3 to 1"):
            await plane.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 1}})
            await plane.until(lambda: plane.is_up("real", 3), "1 + 2 is up")
        assert await ready_pods(workload, {"component": "etcd"}, "kube-system") == 1

        with plane.timed("delete 1 + 2"):
            await delete(plane, "real")
        assert await plane.containers() == []
        assert await plane.engine.volumes({naming.PLANE_LABEL: (plane.folder / "plane").read_text()}) == []
    finally:
        shown(plane, capsys)


async def ready_two(workload: RestClient, labels: dict[str, str]) -> bool:
    namespace = "kube-system" if "k8s-app" in labels else "default"
    return await ready_pods(workload, labels, namespace) == 2


async def kept_up(plane: Nodes, workload: RestClient, name: str) -> bool:
    assert await ready_pods(workload, {"app": "shop"}) >= 1, "the budget was not kept"
    return await plane.client.find(Machine, ObjectKey(NAMESPACE, name)) is None


async def upgraded(plane: Nodes, name: str, *, leaders: bool) -> bool:
    found = [m for m in await plane.machines(name) if (CONTROL_PLANE_LABEL in m.metadata.labels) is leaders]
    return await plane.is_up(name, 5) and {m.spec.version for m in found} == {TO}


async def is_replaced(plane: Nodes, victim: Machine) -> bool:
    names = {m.metadata.name for m in await workers(plane, "real")}
    return victim.metadata.name not in names and await plane.is_up("real", 5)


def health_check() -> Json:
    checks = {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 20}], "nodeStartupTimeoutSeconds": 0}
    selector = {"matchExpressions": [{"key": CONTROL_PLANE_LABEL, "operator": "DoesNotExist"}]}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "real", "namespace": NAMESPACE},
        "spec": {"clusterName": "real", "selector": selector, "checks": checks},
    }


async def test_a_topology_of_real_nodes_is_upgraded(plane: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        with plane.timed("1 + 1 of a ClusterClass"):
            await create(plane, "classy", 1, 1, "--flavor", "topology")
            await plane.until(lambda: plane.is_up("classy", 2, FROM), "1 + 1 is up")
        with plane.timed(f"the class's cluster from {FROM} to {TO}"):
            await plane.client.patch(Cluster, ObjectKey(NAMESPACE, "classy"), {"spec": {"topology": {"version": TO}}})
            await plane.until(lambda: plane.is_up("classy", 2, TO), "both are upgraded", within=600)
        with plane.timed("delete it"):
            await delete(plane, "classy")
    finally:
        shown(plane, capsys)


async def test_a_control_plane_on_an_external_etcd(plane: Nodes, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    binary = assets()
    if binary is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd: NO EXTERNAL ETCD was tried")
    network = await plane.engine.network(naming.NETWORK)
    if network is None:
        await plane.engine.create_network(naming.NETWORK, {naming.PLANE_LABEL: (plane.folder / "plane").read_text()})
        network = await plane.engine.network(naming.NETWORK)
    assert network is not None
    gateway = str(network["IPAM"]["Config"][0]["Gateway"])
    etcd, url, files = external_etcd(binary / "etcd", gateway, tmp_path)
    try:
        objects = [o for o in load_all(await dry_run(plane), trusted=True) if o]
        for obj in [*secrets("ext", files), *objects]:
            if obj["kind"] == "KubeadmControlPlane":
                folder = "/etc/kubernetes/pki"
                external = {"endpoints": [url], "caFile": f"{folder}/etcd/ca.crt", "certFile": f"{folder}/apiserver-etcd-client.crt"}
                settings = obj["spec"]["kubeadmConfigSpec"].setdefault("clusterConfiguration", {})
                settings["etcd"] = {"external": {**external, "keyFile": f"{folder}/apiserver-etcd-client.key"}}
            await plane.client.create(obj)
        with plane.timed("1 + 1 on an external etcd"):
            await plane.until(lambda: plane.is_up("ext", 2, FROM), "1 + 1 is up")
        workload = await plane.workload("ext")
        assert await ready_pods(workload, {"component": "etcd"}, "kube-system") == 0
        with plane.timed("delete it"):
            await delete(plane, "ext")
    finally:
        etcd.kill()
        etcd.wait()
        shown(plane, capsys)


async def dry_run(plane: Nodes) -> str:
    return await plane.cli("create", "cluster", "ext", "--infrastructure", "docker", "--kubernetes-version", FROM, "--dry-run")


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
