"""Small worlds around one Cluster, healthy unless told otherwise, and one pass of the Cluster controller on them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import clusterwright

Json = dict[str, Any]

NOW = "2026-05-01T12:00:00Z"
BEFORE = "2026-05-01T11:00:00Z"
NAMESPACE = "ns"
NAME = "c1"
UID = "11111111-1111-1111-1111-111111111111"
FINALIZER = "cluster.cluster.x-k8s.io"
LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
INFRASTRUCTURE = {"apiGroup": "infrastructure.example.com", "kind": "ExampleCluster", "name": "infra"}
CONTROL_PLANE = {"apiGroup": "controlplane.example.com", "kind": "ExampleControlPlane", "name": "cp"}
ENDPOINT = {"host": "10.0.0.10", "port": 6443}
TOPOLOGY = {"classRef": {"name": "class"}, "version": "v1.35.0"}


def merge(base: Json, change: Mapping[str, Any]) -> Json:
    """A copy of `base` with `change` laid over it; None removes."""
    result = copy.deepcopy(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def condition(type: str, status: str, reason: str = "R", message: str = "", since: str = BEFORE) -> Json:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since, "observedGeneration": 1}


NOT_PAUSED = condition("Paused", "False", "NotPaused") | {"observedGeneration": 2}


def owner(kind: str = "Cluster", name: str = NAME, uid: str = UID, api_version: str = "cluster.x-k8s.io/v1beta2") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def meta(name: str, **more: Any) -> Json:
    base = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": BEFORE,
        "generation": 1,
    }
    return merge(base, more)


def cluster(
    *conditions: Json,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    deleting: bool = False,
    **metadata: Any,
) -> Json:
    """A Cluster with both references, provisioned and initialized."""
    given = merge({"finalizers": [FINALIZER], "generation": 2, "uid": UID}, metadata)
    if deleting:
        given["deletionTimestamp"] = "2026-05-01T11:59:00Z"
        given["deletionGracePeriodSeconds"] = 0
    obj = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": meta(NAME, **given),
        "spec": {"infrastructureRef": INFRASTRUCTURE, "controlPlaneRef": CONTROL_PLANE, "controlPlaneEndpoint": ENDPOINT},
        "status": {
            "conditions": [c for c in conditions if c["type"] != "Paused"]
            + [next((c for c in conditions if c["type"] == "Paused"), NOT_PAUSED)],
            "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
        },
    }
    return merge(merge(obj, {"spec": spec or {}}), {"status": status or {}})


def provider(
    reference: Mapping[str, str], conditions: list[Any] | None, status: Mapping[str, Any], spec: Mapping[str, Any], **metadata: Any
) -> Json:
    found = {"status": dict(status)}
    if conditions is not None:
        found["status"]["conditions"] = conditions
    given = merge({"labels": {LABEL: NAME}, "ownerReferences": [owner()], "finalizers": ["example.com/provider"]}, metadata)
    return {
        "apiVersion": f"{reference['apiGroup']}/v1",
        "kind": reference["kind"],
        "metadata": meta(reference["name"], **given),
        "spec": dict(spec),
        **found,
    }


def infrastructure(
    conditions: list[Any] | None = None,
    *,
    provisioned: Any = True,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Json:
    """Infrastructure of a kind that nobody knows; Ready unless told otherwise."""
    given = [condition("Ready", "True", "Ready")] if conditions is None else conditions
    said = {} if provisioned is None else {"initialization": {"provisioned": provisioned}}
    return provider(INFRASTRUCTURE, given, merge(said, status or {}), spec or {}, **metadata)


def control_plane(
    conditions: list[Any] | None = None,
    *,
    initialized: Any = True,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Json:
    """A control plane of a kind that nobody knows; Available unless told otherwise."""
    given = [condition("Available", "True", "Available")] if conditions is None else conditions
    said = {} if initialized is None else {"initialization": {"controlPlaneInitialized": initialized}}
    return provider(CONTROL_PLANE, given, merge(said, status or {}), spec or {"replicas": 1}, **metadata)


def crd(reference: Mapping[str, str], **labels: str) -> Json:
    plural = reference["kind"].lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{reference['apiGroup']}",
            "labels": {f"cluster.x-k8s.io/{contract}": version for contract, version in labels.items()},
        },
        "spec": {
            "group": reference["apiGroup"],
            "scope": "Namespaced",
            "names": {"kind": reference["kind"], "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }


CRDS = [crd(INFRASTRUCTURE, v1beta2="v1"), crd(CONTROL_PLANE, v1beta2="v1")]
OLD_CRDS = [crd(INFRASTRUCTURE, v1beta1="v1"), crd(CONTROL_PLANE, v1beta1="v1")]


def machine(name: str, *conditions: Json, control_plane: bool = False, node: bool = True, owned: bool = True, **metadata: Any) -> Json:
    """A Machine that belongs to the Cluster directly."""
    labels = {LABEL: NAME, **({CONTROL_PLANE_LABEL: ""} if control_plane else {})}
    given = merge({"labels": labels, "ownerReferences": [owner()] if owned else [], "finalizers": ["machine.cluster.x-k8s.io"]}, metadata)
    template = {"apiGroup": "infrastructure.example.com", "kind": "ExampleMachine", "name": name}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": meta(name, **given),
        "spec": {"clusterName": NAME, "bootstrap": {"dataSecretName": name}, "infrastructureRef": template},
        "status": {"conditions": list(conditions), **({"nodeRef": {"name": name}} if node else {})},
    }


def child(kind: str, name: str, *conditions: Json, replicas: int | None = 1, owned: bool = True, **metadata: Any) -> Json:
    """A MachineDeployment, MachineSet or MachinePool."""
    given = merge({"labels": {LABEL: NAME}, "ownerReferences": [owner()] if owned else [], "finalizers": ["example.com/child"]}, metadata)
    spec: Json = {
        "clusterName": NAME,
        "selector": {},
        "template": {"spec": {"clusterName": NAME, "bootstrap": {}, "infrastructureRef": {}}},
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": meta(name, **given),
        "spec": {**spec, **({"replicas": replicas} if replicas is not None else {})},
        "status": {"conditions": list(conditions)},
    }


def secret(purpose: str, data: Mapping[str, str] | None = None) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta(f"{NAME}-{purpose}", labels={LABEL: NAME}),
        "type": "cluster.x-k8s.io/secret",
        "data": dict(data or {}),
    }


CLUSTER_CLASS = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": meta("class"), "spec": {}}
CONNECTED = {f"{NAMESPACE}/{NAME}": {"connected": True, "lastProbeSuccess": "2026-05-01T11:59:55Z"}}


def observation(**more: Any) -> Json:
    base = {
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Observation",
        "now": NOW,
        "workloadClusters": CONNECTED,
        "features": {"MachinePool": True},
    }
    return {**base, **more}


def one_pass(*objects: Json, crds: list[Json] | None = None, **observed: Any) -> Json:
    """One pass of the production reconciler on the embedded API server."""
    world = [*(CRDS if crds is None else crds), *objects, observation(**observed)]
    return dict(clusterwright.decide(world, f"Cluster/{NAMESPACE}/{NAME}"))


def conditions_of(answer: Json) -> dict[str, tuple[str, str, str]]:
    found = (answer["object"] or {}).get("status", {}).get("conditions", [])
    return {c["type"]: (c["status"], c["reason"], c.get("message", "")) for c in found}


def old_conditions_of(answer: Json) -> dict[str, tuple[str, str, str, str]]:
    found = (answer["object"] or {}).get("status", {}).get("deprecated", {}).get("v1beta1", {}).get("conditions", [])
    return {c["type"]: (c["status"], c.get("severity", ""), c.get("reason", ""), c.get("message", "")) for c in found}


def actions_of(answer: Json) -> list[tuple[str, str, str]]:
    return [(a["verb"], a["kind"], a["name"]) for a in answer["actions"]]
