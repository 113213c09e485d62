"""The whole story on real nodes: kubeadm, kubelet, etcd and containerd in containers of an engine of this machine.

`CLUSTERWRIGHT_NODE_IMAGE` names the node image; `CLUSTERWRIGHT_NODE_VERSIONS` its tags. What each step took is printed at the end.
"""

from __future__ import annotations

import asyncio

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.runtime.rest import RestClient
from real.nodes import FROM, NAMESPACE, OLDEST, TO, Nodes, container_of, ready_pods
from support import engines

SHOP = {"app": "shop"}


def guarded_app() -> list[Json]:
    """Two Pods, of which a budget wants one at any time."""
    container = {"name": "shop", "image": engines.IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": SHOP},
    }
    pod = {"containers": [container], "terminationGracePeriodSeconds": 1, "topologySpreadConstraints": [spread]}
    meta = {"name": "shop", "namespace": "default"}
    template = {"metadata": {"labels": SHOP}, "spec": pod}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 2, "selector": {"matchLabels": SHOP}, "template": template}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": {"minAvailable": 1, "selector": {"matchLabels": SHOP}}},
    ]  # fmt: skip


async def test_a_cluster_of_real_nodes_lives(plane: Nodes) -> None:
    key, md = ObjectKey(NAMESPACE, "real"), ObjectKey(NAMESPACE, "real-md-0")
    with plane.timed("1 + 1"):
        await plane.create("real", 1, 1)
        await plane.until(lambda: plane.is_up("real", 2, FROM), "1 + 1 is up")
    workload = await plane.workload("real")
    with plane.timed("CoreDNS after that"):
        await plane.until(lambda: has(workload, {"k8s-app": "kube-dns"}, 2, "kube-system"), "CoreDNS is ready")

    with plane.timed("to 3 + 2, the plane killed and started again after 15 s"):
        await plane.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 3}})
        await plane.client.patch(MachineDeployment, md, {"spec": {"replicas": 2}})
        await asyncio.sleep(15)
        await plane.kill()
        await plane.start()
        await plane.until(lambda: plane.is_up("real", 5), "3 + 2 is up")
    assert await plane.etcd_members("real") == sorted(node_of(m) for m in await plane.leaders("real"))

    await plane.cli("load", "image", "real", engines.IMAGE, "--engine", plane.engine.address)
    for obj in guarded_app():
        await workload.create(obj)
    await plane.until(lambda: has(workload, SHOP, 2), "the app runs")
    victim = (await plane.workers("real"))[0]
    with plane.timed("a worker deleted whose Pods have a PodDisruptionBudget, and replaced"):
        await plane.client.delete(Machine, victim.key)
        await plane.until(lambda: kept_up(plane, workload, victim.metadata.name), "the worker is gone, and the app stayed")
        await plane.until(lambda: plane.is_up("real", 5), "3 + 2 is up again")

    with plane.timed(f"control plane of 3 from {FROM} to {TO}"):
        await plane.client.patch(KubeadmControlPlane, key, {"spec": {"version": TO}})
        await plane.until(lambda: upgraded(plane, "real", leaders=True), "the control plane is upgraded", within=900)
    for obj in guarded_app():  # the budget would hold new workers back, which do not have the image, and a dead one for five minutes
        await workload.delete(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), ObjectKey("default", "shop"))
    with plane.timed(f"2 workers from {FROM} to {TO}"):
        await plane.client.patch(MachineDeployment, md, {"spec": {"template": {"spec": {"version": TO}}}})
        await plane.until(lambda: plane.is_up("real", 5, TO), "the workers are upgraded", within=900)

    await plane.client.create(health_check("DoesNotExist"))
    victim = (await plane.workers("real"))[0]
    with plane.timed("a worker's container removed by hand, replaced by a MachineHealthCheck (20 s)"):
        await plane.engine.remove(container_of(victim))
        await plane.until(lambda: is_replaced(plane, victim), "the worker is replaced")
    await plane.client.delete(MachineHealthCheck, key)
    await plane.client.create(health_check("Exists"))
    victim = (await plane.leaders("real"))[0]
    with plane.timed("a control plane machine's container removed by hand, replaced by a MachineHealthCheck (20 s)"):
        await plane.engine.remove(container_of(victim))
        await plane.until(lambda: is_replaced(plane, victim), "the control plane machine is replaced", within=600)
    assert await plane.etcd_members("real") == sorted(node_of(m) for m in await plane.leaders("real"))
    await plane.client.delete(MachineHealthCheck, key)

    with plane.timed("control plane 3 to 1"):
        await plane.client.patch(KubeadmControlPlane, key, {"spec": {"replicas": 1}})
        await plane.until(lambda: plane.is_up("real", 3), "1 + 2 is up")
    assert await plane.etcd_members("real") == [node_of(m) for m in await plane.leaders("real")]

    with plane.timed("delete 1 + 2"):
        await plane.delete("real")
    assert await plane.left() == []


def node_of(machine: Machine) -> str:
    """The name of a Machine's Node, which is also that of its member of etcd."""
    return machine.status.node_ref.name if machine.status.node_ref else ""


async def has(workload: RestClient, labels: dict[str, str], number: int, namespace: str = "default") -> bool:
    return await ready_pods(workload, labels, namespace) == number


async def kept_up(plane: Nodes, workload: RestClient, name: str) -> bool:
    assert await ready_pods(workload, SHOP) >= 1, "the budget was not kept"
    return await plane.client.find(Machine, ObjectKey(NAMESPACE, name)) is None


async def upgraded(plane: Nodes, name: str, *, leaders: bool) -> bool:
    found = await (plane.leaders(name) if leaders else plane.workers(name))
    return await plane.is_up(name, 5) and {m.spec.version for m in found} == {TO}


async def is_replaced(plane: Nodes, victim: Machine) -> bool:
    names = {m.metadata.name for m in await plane.machines("real")}
    return victim.metadata.name not in names and await plane.is_up("real", 5)


def health_check(operator: str) -> Json:
    """Workers have no label of the control plane (`DoesNotExist`), its machines do (`Exists`)."""
    checks = {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 20}], "nodeStartupTimeoutSeconds": 0}
    selector = {"matchExpressions": [{"key": CONTROL_PLANE_LABEL, "operator": operator}]}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "real", "namespace": NAMESPACE},
        "spec": {"clusterName": "real", "selector": selector, "checks": checks},
    }


async def test_a_topology_of_real_nodes_is_upgraded(plane: Nodes) -> None:
    """With three tags this is the upgrade to another minor version."""
    with plane.timed("3 + 2 of a ClusterClass in one go"):
        await plane.create("classy", 3, 2, "--flavor", "topology", version=OLDEST)
        await plane.until(lambda: plane.is_up("classy", 5, OLDEST), "3 + 2 is up")
    with plane.timed(f"the class's cluster from {OLDEST} to {FROM if OLDEST != FROM else TO}"):
        version = FROM if OLDEST != FROM else TO
        await plane.client.patch(Cluster, ObjectKey(NAMESPACE, "classy"), {"spec": {"topology": {"version": version}}})
        await plane.until(lambda: plane.is_up("classy", 5, version), "all are upgraded", within=900)
    with plane.timed("delete 3 + 2"):
        await plane.delete("classy")
    assert await plane.left() == []
