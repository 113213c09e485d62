"""What is worked on together: a Cluster with all its objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.controllers.belonging import belongs_to

MACHINE = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
CONTROL_PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
OWNER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "u"}
LABEL = {"cluster.x-k8s.io/cluster-name": "c"}


def of(kind: GroupVersionKind, name: str = "x", *, spec: Any = None, **metadata: Any) -> str:
    raw = json.dumps({"metadata": {"name": name, "namespace": "ns", **metadata}, "spec": spec}).encode()
    return belongs_to(kind, ObjectKey("ns", name), raw)


@pytest.mark.parametrize(
    "name",
    [
        of(GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster"), "c"),
        of(MACHINE, spec={"clusterName": "c"}),
        of(MACHINE, spec={"clusterName": "c"}, labels={"cluster.x-k8s.io/cluster-name": "other"}),  # what cannot change, counts
        of(CONTROL_PLANE, ownerReferences=[OWNER]),
        of(CONTROL_PLANE, spec={"clusterName": 7}, labels=LABEL),
        of(GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1", "FooMachine"), labels=LABEL),
        of(GroupVersionKind("addons.cluster.x-k8s.io", "v1beta2", "ClusterResourceSetBinding"), "c", spec={"clusterName": "c"}),
    ],
)
def test_all_objects_of_a_cluster_are_in_one_group(name: str) -> None:
    assert name == "Cluster ns/c"


@pytest.mark.parametrize(
    "name",
    [
        of(CONTROL_PLANE),
        of(CONTROL_PLANE, ownerReferences=[{**OWNER, "apiVersion": "example.com/v1"}]),
        of(CONTROL_PLANE, labels={"cluster.x-k8s.io/cluster-name": 7}),
        belongs_to(MACHINE, ObjectKey("ns", "x"), b"no JSON"),
    ],
)
def test_an_object_without_a_known_cluster_waits(name: str) -> None:
    assert name == ""


def test_an_object_outside_of_clusters_is_its_own_group() -> None:
    kinds = [GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass"), GroupVersionKind("apiextensions.k8s.io", "v1", "X")]

    assert [of(kind, "a", labels=LABEL) for kind in kinds] == ["ClusterClass ns/a", "X ns/a"]
