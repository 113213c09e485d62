"""What wakes the controller, and the shape of its tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.core.cluster import ClusterInitializationStatus, ClusterSpec, ClusterStatus, Topology
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference
from clusterwright.controllers.kubeadmcontrolplane.build import CONTROLLER, control_plane_of_cluster, control_plane_of_machine
from clusterwright.controllers.kubeadmcontrolplane.workload_watches import NodeFacts, PodHealth

GROUP = "controlplane.cluster.x-k8s.io"
READER: Any = None


def cluster(**spec: Any) -> Cluster:
    return Cluster(metadata=ObjectMeta(name="c1", namespace="ns"), spec=ClusterSpec(**spec))


def reference(group: str = GROUP, kind: str = "KubeadmControlPlane") -> ContractVersionedObjectReference:
    return ContractVersionedObjectReference(api_group=group, kind=kind, name="kcp1")


@pytest.mark.parametrize(("ref", "expected"), [
    (reference(), [ObjectKey("ns", "kcp1")]),
    (reference(group="other.io"), []),
    (reference(kind="Other"), []),
    (None, []),
])  # fmt: skip
async def test_a_cluster_wakes_its_control_plane_and_the_group_counts(ref: Any, expected: list[ObjectKey]) -> None:
    assert list(await control_plane_of_cluster(cluster(control_plane_ref=ref), READER)) == expected


@pytest.mark.parametrize(("owner", "expected"), [
    (OwnerReference(api_version=f"{GROUP}/v1beta2", kind="KubeadmControlPlane", name="kcp1", controller=True), [ObjectKey("ns", "kcp1")]),
    (OwnerReference(api_version=f"{GROUP}/v1beta1", kind="KubeadmControlPlane", name="kcp1", controller=True), [ObjectKey("ns", "kcp1")]),
    (OwnerReference(api_version=f"{GROUP}/v1beta2", kind="KubeadmControlPlane", name="kcp1"), []),
    (OwnerReference(api_version="other.io/v1", kind="KubeadmControlPlane", name="kcp1", controller=True), []),
    (OwnerReference(api_version="a/b/c", kind="KubeadmControlPlane", name="kcp1", controller=True), []),
])  # fmt: skip
async def test_a_machine_wakes_the_control_plane_that_controls_it(owner: OwnerReference, expected: list[ObjectKey]) -> None:
    machine = Machine(metadata=ObjectMeta(name="m1", namespace="ns", owner_references=(owner,)))

    assert list(await control_plane_of_machine(machine, READER)) == expected


def test_only_changes_of_the_cluster_that_matter_wake() -> None:
    old = cluster()
    provisioned = replace(old, status=ClusterStatus(initialization=ClusterInitializationStatus(infrastructure_provisioned=True)))
    relabelled = replace(old, metadata=replace(old.metadata, labels={"a": "b"}))

    cluster_matters = next(w.when for w in CONTROLLER.watches if w.kind is Cluster)
    assert cluster_matters is not None
    assert cluster_matters(None, old)
    assert not cluster_matters(old, None)
    assert not cluster_matters(old, relabelled)
    assert cluster_matters(old, provisioned)
    assert cluster_matters(old, cluster(paused=True))
    assert cluster_matters(cluster(topology=Topology(version="v1")), cluster(topology=Topology(version="v2")))


def test_the_connection_wakes_too_and_so_do_failures_that_outlast_the_grace_period() -> None:
    assert CONTROLLER.workload_wake is not None
    assert CONTROLLER.workload_wake.failing_for == timedelta(minutes=5)


def test_heartbeats_of_nodes_do_not_wake_but_health_does() -> None:
    from clusterwright.api import codec

    def node(ready: str, heartbeat: str, **meta: Any) -> Node:
        condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}
        return codec.convert({"metadata": {"name": "n1", **meta}, "status": {"conditions": [condition]}}, Node)

    quiet = node("True", "2026-01-01T00:00:00Z")
    assert NodeFacts.of(quiet) == NodeFacts.of(node("True", "2026-01-01T00:00:10Z"))
    assert NodeFacts.of(quiet) != NodeFacts.of(node("Unknown", "2026-01-01T00:00:00Z"))
    assert NodeFacts.of(quiet) != NodeFacts.of(node("True", "2026-01-01T00:00:00Z", deletionTimestamp="2026-01-01T00:00:00Z"))


def test_the_readiness_of_static_pods_wakes() -> None:
    from clusterwright.api import codec

    def pod(ready: str, phase: str = "Running") -> Pod:
        return codec.convert(
            {"metadata": {"name": "p"}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}, Pod
        )

    assert PodHealth.of(pod("True")) == PodHealth.of(pod("True"))
    assert PodHealth.of(pod("True")) != PodHealth.of(pod("False"))
    assert PodHealth.of(pod("True")) != PodHealth.of(pod("True", "Failed"))
