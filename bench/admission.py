"""Measure admission and conversion on one core.

python -m bench.admission [--seconds 2]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from clusterwright import conversion
from clusterwright.admission.hook import Access, Request
from clusterwright.admission.registry import hook_for
from clusterwright.runtime.client import Reader

CLUSTER: dict[str, Any] = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "my-cluster", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "my-cluster"}},
    "spec": {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
        "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443},
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "my-cluster"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "my-cluster"},
        "topology": {
            "classRef": {"name": "quick-start"},
            "version": "v1.34.0",
            "controlPlane": {"replicas": 3, "deletion": {"nodeDrainTimeoutSeconds": 60}},
            "variables": [{"name": "imageRepository", "value": "registry.example"}, {"name": "etcd", "value": {"tag": ""}}],
            "workers": {
                "machineDeployments": [
                    {
                        "class": "default-worker",
                        "name": f"md-{i}",
                        "replicas": 3,
                        "healthCheck": {
                            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]}
                        },
                        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
                    }
                    for i in range(2)
                ]
            },
        },
    },
    "status": {
        "phase": "Provisioned",
        "observedGeneration": 2,
        "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
        "failureDomains": [{"name": "fd1", "controlPlane": True}, {"name": "fd2", "controlPlane": False}],
        "controlPlane": {"desiredReplicas": 3, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 3},
        "conditions": [
            {"type": f"Type{i}", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for i in range(12)
        ],
    },
}


CONTROL_PLANE: dict[str, Any] = {
    "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
    "kind": "KubeadmControlPlane",
    "metadata": {"name": "my-cluster", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "my-cluster"}},
    "spec": {
        "replicas": 3,
        "version": "v1.34.0",
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        "machineNaming": {"template": "{{ .kubeadmControlPlane.name }}-{{ .random }}"},
        "machineTemplate": {
            "metadata": {"labels": {"example.com/tier": "control-plane"}, "annotations": {"example.com/contact": "somebody"}},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "my-cluster"},
                "taints": [{"key": "example.com/dedicated", "value": "x", "effect": "NoSchedule", "propagation": "Always"}],
            },
        },
        "kubeadmConfigSpec": {
            "clusterConfiguration": {
                "apiServer": {"extraArgs": [{"name": "audit-log-path", "value": "/var/log/audit"}], "certSANs": ["localhost"]},
                "etcd": {"local": {"imageTag": "3.6.4-0"}},
                "dns": {"imageTag": "v1.12.1"},
                "certificateValidityPeriodDays": 365,
            },
            "initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}},
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}},
            "files": [{"path": f"/etc/file-{n}", "owner": "root:root", "permissions": "0640", "content": "x" * 200} for n in range(5)],
            "users": [{"name": "ops", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}],
            "preKubeadmCommands": ["echo one", "echo two"],
        },
    },
}
GATES = dict.fromkeys(("ClusterTopology", "MachineTaintPropagation", "KubeadmBootstrapFormatIgnition"), True)


def validation(old: dict[str, Any] | None) -> Callable[[], object]:
    """One validation of a KubeadmControlPlane, as the API server asks for it."""
    hook = hook_for("controlplane.cluster.x-k8s.io", "KubeadmControlPlane")
    assert hook is not None
    nobody: Any = None
    reader: Reader = nobody  # its rules read nothing
    access = Access(reader)
    request = Request(
        operation="CREATE" if old is None else "UPDATE",
        kind=hook.kind,
        namespace="default",
        name="my-cluster",
        object=CONTROL_PLANE,
        old_object=old,
    )

    def work() -> None:
        try:
            hook.validate(request, GATES, access).send(None)
        except StopIteration:
            return
        raise AssertionError("the rules of a control plane wait for nothing")

    return work


def versions(group: str, kind: str) -> str:
    """Every provider has v1beta2."""
    return f"{group}/v1beta2"


def rate(work: Callable[[], object], seconds: float) -> float:
    """How often `work` can be done per second of one core: other processes on the machine do not count."""
    work()
    count, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        for _ in range(50):
            work()
        count += 50
    return count / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    seconds = parser.parse_args().seconds
    before = json.loads(json.dumps(CONTROL_PLANE).replace("v1.34.0", "v1.33.4"))
    for name, sent in (("KubeadmControlPlane created, validated", None), ("KubeadmControlPlane updated, validated", before)):
        print(f"{name:50} {rate(validation(sent), seconds):10,.0f} /s")
    old = conversion.convert(CLUSTER, "cluster.x-k8s.io/v1beta1", versions)
    without = json.loads(json.dumps(old))
    del without["metadata"]["annotations"]
    for name, obj, to in (
        ("Cluster v1beta2 to v1beta1", CLUSTER, "cluster.x-k8s.io/v1beta1"),
        ("Cluster v1beta1 to v1beta2, with its annotation", old, "cluster.x-k8s.io/v1beta2"),
        ("Cluster v1beta1 to v1beta2, without", without, "cluster.x-k8s.io/v1beta2"),
    ):
        print(f"{name:50} {rate(lambda obj=obj, to=to: conversion.convert(obj, to, versions), seconds):10,.0f} /s")


if __name__ == "__main__":
    main()
