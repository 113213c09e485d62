"""Worlds for the MachinePool controller: a pool of three with its config, infrastructure and Nodes, as a test changes them."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import pytest

import clusterwright
from support import passes
from support.passes import crd

Json = dict[str, Any]
NOW = datetime.fromisoformat("2026-05-01T12:00:00Z")
INFRA, BOOT = "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"


def ago(seconds: float) -> str:
    """The time so long before now."""
    return f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def merged(base: Json, changes: Json) -> Json:
    """`base` with `changes` laid over it; None removes."""
    result = copy.deepcopy(base)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


def condition(type: str, status: str = "True", since: float = 3600, reason: str = "") -> Json:
    return {"type": type, "status": status, "reason": reason or type, "message": "", "lastTransitionTime": ago(since)}


def ids(*numbers: int) -> list[str]:
    return [f"generic:///ns1/vm-{n}" for n in numbers]


def owner(kind: str, name: str, uid: str, *, controller: bool = True) -> Json:
    more = {"controller": True, "blockOwnerDeletion": True} if controller else {}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": uid, **more}


def cluster(**changes: Any) -> Json:
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c1", "namespace": "ns1", "uid": "uid-c1", "generation": 1},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
        "status": {"conditions": [condition("ControlPlaneInitialized")], "initialization": {"infrastructureProvisioned": True}},
    }
    return merged(base, changes)


def pool(**changes: Any) -> Json:
    """A pool of which nothing is known yet."""
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachinePool",
        "metadata": {
            "name": "mp1",
            "namespace": "ns1",
            "uid": "uid-mp1",
            "generation": 1,
            "finalizers": ["machinepool.cluster.x-k8s.io"],
            "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
            "ownerReferences": [owner("Cluster", "c1", "uid-c1", controller=False)],
        },
        "spec": {
            "clusterName": "c1",
            "replicas": 3,
            "template": {
                "spec": {
                    "clusterName": "c1",
                    "bootstrap": {"configRef": {"apiGroup": BOOT, "kind": "Config", "name": "bc"}},
                    "infrastructureRef": {"apiGroup": INFRA, "kind": "Pool", "name": "ip"},
                }
            },
        },
        "status": {"conditions": [condition("Paused", "False", reason="NotPaused")]},
    }
    return merged(base, changes)


def running(count: int = 3, **changes: Any) -> Json:
    """A pool that has been running with so many Nodes."""
    numbers = range(1, count + 1)
    counters = {"readyReplicas": count, "availableReplicas": count}
    base = pool(
        spec={"providerIDList": ids(*numbers), "template": {"spec": {"bootstrap": {"dataSecretName": "data"}}}},
        status={
            "phase": "Running",
            "replicas": count,
            **counters,
            "upToDateReplicas": 3,
            "initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True},
            "nodeRefs": [{"apiVersion": "v1", "kind": "Node", "name": f"node-{n}", "uid": f"uid-n{n}"} for n in numbers],
            "deprecated": {"v1beta1": {**counters, "conditions": []}},
        },
    )
    return merged(base, changes)


def _provided(kind: str, group: str, name: str, **parts: Any) -> Json:
    return {
        "apiVersion": f"{group}/v1beta2",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "ns1",
            "uid": f"uid-{name}",
            "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
            "finalizers": ["generic/provider"],
            "ownerReferences": [owner("MachinePool", "mp1", "uid-mp1")],
        },
        **parts,
    }


def config(**changes: Any) -> Json:
    base = _provided("Config", BOOT, "bc", status={"dataSecretName": "data", "initialization": {"dataSecretCreated": True}})
    return merged(base, changes)


def infra(**changes: Any) -> Json:
    return merged(_provided("Pool", INFRA, "ip", spec={"providerIDList": ids(1, 2, 3)}, status={"ready": True, "replicas": 3}), changes)


def infra_machine(number: int, pool_label: str = "mp1") -> Json:
    made = _provided("Vm", INFRA, f"vm-{number}", spec={"providerID": ids(number)[0]})
    made["metadata"]["labels"]["cluster.x-k8s.io/pool-name"] = pool_label
    del made["metadata"]["ownerReferences"]
    return made


def machine(number: int, **changes: Any) -> Json:
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": f"vm-{number}",
            "namespace": "ns1",
            "uid": f"uid-m{number}",
            "generation": 1,
            "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {"cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/pool-name": "mp1"},
            "ownerReferences": [owner("MachinePool", "mp1", "uid-mp1")],
        },
        "spec": {
            "clusterName": "c1",
            "bootstrap": {"dataSecretName": ""},
            "infrastructureRef": {"apiGroup": INFRA, "kind": "Vm", "name": f"vm-{number}"},
            "version": "v1.33.1",
        },
        "status": {"conditions": [condition("Ready"), condition("Available")]},
    }
    return merged(base, changes)


def node(number: int, ready: str = "True", **changes: Any) -> Json:
    base = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "uid": f"uid-n{number}"},
        "spec": {"providerID": ids(number)[0]},
        "status": {"conditions": [condition("Ready", ready, 3600)], "nodeInfo": {"kubeletVersion": "v1.33.1"}},
    }
    return merged(base, changes)


class Answer(passes.Answer):
    """What one pass did."""

    @property
    def spec(self) -> Json:
        spec: Json = self.object.get("spec", {})
        return spec

    @property
    def refs(self) -> list[str]:
        return [r["name"] for r in self.status.get("nodeRefs", ())]


def decide(
    *objects: Json,
    nodes: Any = None,
    without: tuple[str, ...] = (),
    in_cluster: Json | None = None,
    observed: Json | None = None,
) -> Answer:
    """One pass over the pool. What is not given is as it should be; `without` names kinds that are not there."""
    given = {o["kind"] for o in objects} | set(without)
    usual = [cluster(), pool(), config(), infra()]
    world = [*objects, *(o for o in usual if o["kind"] not in given)]
    world += [crd("Config", BOOT), crd("Pool", INFRA), crd("Vm", INFRA)]
    observation = {
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Observation",
        "now": ago(0),
        "workloadClusters": {
            "ns1/c1": {
                "connected": True,
                "lastProbeSuccess": ago(5),
                "objects": [node(n) for n in (1, 2, 3)] if nodes is None else list(nodes),
                **(in_cluster or {}),
            }
        },
        **(observed or {}),
    }
    return Answer(dict(clusterwright.decide([*world, observation], "MachinePool/ns1/mp1")))


@pytest.fixture(scope="session")
def a() -> Any:
    """The builders of this file."""
    import sys

    return sys.modules[__name__]
