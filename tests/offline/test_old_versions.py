"""A bundle may hold objects as they were written for v1beta1."""

from __future__ import annotations

import pytest

import clusterwright
from clusterwright.offline.bundle import BadBundle, assemble

OLD = {
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "default", "finalizers": ["cluster.cluster.x-k8s.io"]},
    "spec": {
        "paused": True,
        "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "DevCluster",
            "name": "r",
            "namespace": "default",
        },
    },
}


def test_an_old_cluster_is_decided_as_what_it_means() -> None:
    answer = clusterwright.decide([OLD], "Cluster/default/c")
    conditions = {c["type"]: c["status"] for c in answer["object"]["status"]["conditions"]}
    assert answer["object"]["apiVersion"] == "cluster.x-k8s.io/v1beta2"
    assert answer["object"]["spec"]["infrastructureRef"] == {
        "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "DevCluster",
        "name": "r",
    }
    assert conditions["Paused"] == "True"


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(BadBundle, match=r"document 0: Cluster default/c: spec\.paused: expected a boolean"):
        assemble([OLD | {"spec": {"paused": "yes"}}])


def test_objects_of_providers_are_left_in_the_version_of_their_contract() -> None:
    config = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "KubeadmConfig",
        "metadata": {"name": "c"},
        "status": {"ready": True},
    }
    assert assemble([config]).objects == (config,)
