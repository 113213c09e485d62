"""A version of a topology changes only when the last change has arrived everywhere: on real API servers, one of them the workload's."""

from __future__ import annotations

import random
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest

from admission.admission_cases import ALL_GATES, BASES, MP_TOPOLOGY, Json, merge
from clusterwright.admission import Workloads, chain
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, ClusterClass, MachinePool
from clusterwright.api.crds import crds
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import TOPOLOGY_POOL_NAME_LABEL
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import Invalid
from clusterwright.runtime.rest import RestClient

OWNED = {"cluster.x-k8s.io/cluster-name": "x", "topology.cluster.x-k8s.io/owned": ""}
CLUSTER = ObjectKey("n", "x")
UP = {"spec": {"topology": {"version": "v1.34.0"}}}


def server(**parts: Any) -> ApiServer:
    return ApiServer(now=lambda: datetime(2030, 1, 1, tzinfo=UTC), random=random.Random(1), **parts)


def condition(kind: str) -> Json:
    return {"type": kind, "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}


async def plane(workloads: Workloads) -> RestClient:
    """A Cluster of v1.33.4 with a control plane and a MachinePool that have arrived there."""
    made = server(admission=chain(ALL_GATES, workloads))
    made.ensure([*crds(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}])
    client = RestClient(InProcessTransport(made))
    await client.create(BASES["ClusterClass"])
    status = {"observedGeneration": 1, "conditions": [condition("VariablesReady")]}
    await client.patch(ClusterClass, ObjectKey("n", "cc"), {"status": status}, subresource="status")
    kcp = merge(BASES["KubeadmControlPlane"], {"spec": {"version": "v1.33.4"}})
    created = await client.create(kcp)
    await client.patch(created.gvk, CLUSTER, {"status": {"version": "v1.33.4"}}, subresource="status")
    ref = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "x"}
    await client.create(merge(BASES["Cluster"], {"spec": {"controlPlaneRef": ref}}))
    spec = {"clusterName": "x", "template": {"spec": {"clusterName": "x", "version": "v1.33.4"}}}
    await client.create(merge(BASES["MachinePool"], {"metadata": {"labels": OWNED}, "spec": spec}))
    await client.patch(MachinePool, CLUSTER, {"status": {"nodeRefs": [{"name": "node"}]}}, subresource="status")
    return client


async def workload(kubelet: str) -> RestClient:
    client = RestClient(InProcessTransport(server()))
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
    info = {"nodeInfo": {"kubeletVersion": kubelet}}
    await client.patch(Node, ObjectKey("", "node"), {"status": info}, subresource="status")
    return client


@pytest.mark.parametrize(("kubelet", "refused"), [("v1.33.4", False), ("v1.33.3", True), ("v1.33.4-eks-113cf36", False)])
async def test_nodes_of_a_pool_are_read_from_the_workload_cluster(kubelet: str, refused: bool) -> None:
    """CL-38."""
    workloads, inside = Workloads(), await workload(kubelet)

    async def open_(cluster: ObjectKey) -> Reader:
        assert cluster == CLUSTER
        return inside

    workloads.lend(open_)
    client = await plane(workloads)

    if refused:
        with pytest.raises(Invalid, match=r"still MachinePools completing a previous upgrade: \[x\]"):
            await client.patch(Cluster, CLUSTER, UP)
    else:
        await client.patch(Cluster, CLUSTER, UP)
    topology = (await client.get(Cluster, CLUSTER)).spec.topology
    assert topology is not None
    assert topology.version == ("v1.33.4" if refused else "v1.34.0")


@pytest.mark.parametrize(
    ("versions", "refused"),
    [
        (["v1.33.4"], ""),
        (["v1.33.3", "v1.33.4"], "control plane is still completing a previous upgrade"),
        (["v1.33.4-eks-113cf36"], ""),
        (["v1.33.4", "v1.33.3"], "are in the wrong order"),
    ],
)
async def test_13341_the_versions_that_a_control_plane_reports_decide_whether_it_has_arrived(versions: list[str], refused: str) -> None:
    """CL-36."""
    workloads, inside = Workloads(), await workload("v1.33.4")

    async def open_(_cluster: ObjectKey) -> Reader:
        return inside

    workloads.lend(open_)
    client = await plane(workloads)
    status = {"status": {"versions": [{"version": v, "replicas": 1} for v in versions]}}
    await client.patch(KubeadmControlPlane, CLUSTER, status, subresource="status")

    with pytest.raises(Invalid, match=refused) if refused else nullcontext():
        await client.patch(Cluster, CLUSTER, UP)


async def test_without_connections_a_pool_keeps_its_version() -> None:
    client = await plane(Workloads())

    with pytest.raises(Invalid, match="unable to get client for workload cluster: nobody here has connections"):
        await client.patch(Cluster, CLUSTER, UP)
    await client.patch(Cluster, CLUSTER, {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize(
    ("kubelet", "refused"), [("v1.33.3", ""), ("v1.31.9", ""), ("v1.30.9", "runs v1.30.9, which is more than 3 minor")]
)
async def test_nodes_of_a_pinned_pool_may_be_behind_but_not_too_far(kubelet: str, refused: str) -> None:
    """CL-38 does not ask for pinned pools, CL-51 does."""
    workloads, inside = Workloads(), await workload("v1.33.4")

    async def open_(_cluster: ObjectKey) -> Reader:
        return inside

    workloads.lend(open_)
    client = await plane(workloads)
    await client.patch(MachinePool, CLUSTER, {"metadata": {"labels": {TOPOLOGY_POOL_NAME_LABEL: "mp"}}})
    pinned = {"spec": {"topology": {"workers": {"machinePools": [MP_TOPOLOGY | {"version": "v1.33.4"}]}}}}
    await client.patch(Cluster, CLUSTER, pinned)
    await inside.patch(Node, ObjectKey("", "node"), {"status": {"nodeInfo": {"kubeletVersion": kubelet}}}, subresource="status")

    with pytest.raises(Invalid, match=refused) if refused else nullcontext():
        await client.patch(Cluster, CLUSTER, UP)


async def test_a_pin_is_set_only_where_the_pool_has_arrived() -> None:
    """CL-48."""
    workloads, inside = Workloads(), await workload("v1.33.3")

    async def open_(_cluster: ObjectKey) -> Reader:
        return inside

    workloads.lend(open_)
    client = await plane(workloads)
    pinned = {"spec": {"topology": {"workers": {"machinePools": [MP_TOPOLOGY | {"version": "v1.33.4"}]}}}}

    with pytest.raises(Invalid, match=r"machinePools\[mp\].version: .*still MachinePools completing a previous upgrade: \[x\]"):
        await client.patch(Cluster, CLUSTER, pinned)


async def test_a_cluster_whose_class_is_gone_can_still_be_deleted() -> None:
    """CL-30 holds for Clusters that live."""
    client = await plane(Workloads())
    await client.patch(Cluster, CLUSTER, {"metadata": {"finalizers": ["example.com/a"]}})
    await client.delete(Cluster, CLUSTER)
    # past admission: nobody else can take a class from a Cluster
    transport = client.transport
    assert isinstance(transport, InProcessTransport)
    classes = transport.server.store.table("clusterclasses.cluster.x-k8s.io")
    transport.server.remove_system(classes, classes.objects["n/cc"])

    await client.patch(Cluster, CLUSTER, {"metadata": {"finalizers": None}})

    assert await client.find(Cluster, CLUSTER) is None
