"""Worlds for the MachineHealthCheck controller: a Cluster that is up, and Machines whose Nodes are as a test says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import clusterwright
from support.passes import Answer

Json = dict[str, Any]
NOW = datetime.fromisoformat("2026-05-01T12:00:00Z")
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"


def ago(seconds: float) -> str:
    """The time so long before now."""
    return f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def condition(type: str, status: str = "True", since: float = 86_400, reason: str = "") -> Json:
    return {"type": type, "status": status, "reason": reason or type, "message": "", "lastTransitionTime": ago(since)}


def cluster(**conditions: Json | None) -> Json:
    found = {
        "ControlPlaneInitialized": condition("ControlPlaneInitialized"),
        "InfrastructureReady": condition("InfrastructureReady"),
        **conditions,
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c1", "namespace": "ns1", "uid": "uid-c1", "generation": 1},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
        "status": {"conditions": [c for c in found.values() if c], "initialization": {"infrastructureProvisioned": True}},
    }


def machine(name: str, *, node: bool = True, created: float = 86_400, labels: Json | None = None, **more: Any) -> Json:
    """A Machine; `more`: annotations, conditions, deleting, ownerReferences."""
    metadata: Json = {
        "name": name,
        "namespace": "ns1",
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": ago(created),
        "finalizers": ["machine.cluster.x-k8s.io"],
        "labels": {CLUSTER_LABEL: "c1", "pool": "a", **(labels or {})},
        "annotations": more.get("annotations", {}),
    }
    if more.get("deleting"):
        metadata["deletionTimestamp"] = ago(60)
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "GenericInfrastructureMachine", "name": name}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": metadata,
        "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": ref},
        "status": {
            "conditions": more.get("conditions", []),
            **({"nodeRef": {"name": f"node-{name}"}} if node else {}),
            **more.get("status", {}),
        },
    }


def node(name: str, ready: str = "True", since: float = 3600, **more: Json) -> Json:
    """The Node of the Machine of that name."""
    conditions = [condition("Ready", ready, since, "Kubelet"), *more.values()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{name}", "uid": f"n-{name}"},
        "status": {"conditions": conditions},
    }


RULES = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("False", "Unknown")]


def check(*, remediation: Json | None = None, metadata: Json | None = None, status: Json | None = None, **checks: Any) -> Json:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "mhc1", "namespace": "ns1", "uid": "uid-mhc1", "generation": 2, **(metadata or {})},
        "spec": {
            "clusterName": "c1",
            "selector": {"matchLabels": {"pool": "a"}},
            "checks": {"unhealthyNodeConditions": RULES, **checks},
            **({"remediation": remediation} if remediation else {}),
        },
        "status": {"conditions": [condition("Paused", "False", reason="NotPaused")], **(status or {})},
    }


TEMPLATE_REF = {"templateRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RebootTemplate", "name": "rt"}}


def template() -> Json:
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "RebootTemplate",
        "metadata": {"name": "rt", "namespace": "ns1", "uid": "uid-rt"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"times": 3}}},
    }


def request(name: str) -> Json:
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "Reboot",
        "metadata": {"name": name, "namespace": "ns1", "uid": f"uid-r-{name}"},
    }


def decide(*objects: Json, nodes: Any = (), in_cluster: Json | None = None, observed: Json | None = None) -> Answer:
    """One pass over the check in a world of these objects; Cluster and check are added where there is none."""
    kinds = {o["kind"] for o in objects}
    world = [*objects, *([cluster()] if "Cluster" not in kinds else []), *([check()] if "MachineHealthCheck" not in kinds else [])]
    observation = {
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Observation",
        "now": ago(0),
        "workloadClusters": {"ns1/c1": {"connected": True, "lastProbeSuccess": ago(5), "objects": list(nodes), **(in_cluster or {})}},
        **(observed or {}),
    }
    return Answer(dict(clusterwright.decide([*world, observation], "MachineHealthCheck/ns1/mhc1")))


@pytest.fixture(scope="session")
def a() -> Any:
    """The builders of this file."""
    import sys

    return sys.modules[__name__]
