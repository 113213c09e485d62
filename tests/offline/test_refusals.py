"""What a rule of Cluster API forbids is read from the answer of its webhook; other answers are left alone."""

from __future__ import annotations

import pytest

from clusterwright.api.crds import crds
from clusterwright.api.meta import Json
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.refusals import Refusal, refusal

REASON = "spec.replicas: Forbidden: cannot be an even number when etcd is stacked"
KIND = 'KubeadmControlPlane.controlplane.cluster.x-k8s.io "c-x"'


def denied(webhook: str, answer: str) -> str:
    return f'failed to patch: admission webhook "{webhook}" denied the request: {answer}'


@pytest.mark.parametrize("shown", [REASON, f"[{REASON}]"])
def test_the_field_of_the_topology_that_leads_to_a_refused_field_is_found(shown: str) -> None:
    rule = refusal(denied("validation.kubeadmcontrolplane.controlplane.cluster.x-k8s.io", f"{KIND} is invalid: {shown}"))

    assert rule == Refusal("KubeadmControlPlane", "c-x", "spec.replicas", REASON)
    assert rule.in_topology == "spec.topology.controlPlane.replicas"


def test_a_field_that_no_field_of_a_topology_sets_may_be_of_the_class() -> None:
    rule = refusal(
        denied("validation.machine.cluster.x-k8s.io", 'Machine.cluster.x-k8s.io "m" is invalid: spec.version: Invalid value: "x"')
    )

    assert rule is not None
    assert rule.in_topology == "spec.topology, or its ClusterClass"


@pytest.mark.parametrize(
    "text",
    [
        denied("policy.example.com", f"{KIND} is invalid: {REASON}"),
        denied("validation.cluster.x-k8s.io.example.com", f"{KIND} is invalid: {REASON}"),
        denied("validation.cluster.cluster.x-k8s.io", "no"),
    ],
)
def test_answers_in_other_words_are_not_read(text: str) -> None:
    assert refusal(text) is None


def test_the_author_of_the_cluster_is_sent_to_the_field_of_the_topology() -> None:
    text = denied("validation.kubeadmcontrolplane.controlplane.cluster.x-k8s.io", f"{KIND} is invalid: {REASON}")
    at = "2026-01-01T00:00:00Z"
    metadata = {"name": "c", "namespace": "default", "uid": "1", "creationTimestamp": at}
    condition = {"type": "TopologyReconciled", "status": "False", "reason": "TopologyReconcileFailed", "message": text}
    cluster: Json = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": {"paused": False}}
    cluster["status"] = {"conditions": [{**condition, "lastTransitionTime": at}]}

    verdict = explain(assemble([*crds(), cluster]), "Cluster/default/c").verdict

    assert verdict.who == "the author of Cluster c"
    assert verdict.next == f"correct spec.topology.controlPlane.replicas: KubeadmControlPlane {REASON}"
    assert verdict.command == "kubectl -n default edit clusters/c"
