"""For every rule that is a row: a write that keeps it and a write that breaks it. For every default: a write that needs it.

A case starts from a valid object of its kind (`BASES`); `breaks` is merged into it, `keeps` into another copy. With `old` the
write is an update of the base with that merged in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from clusterwright.admission.clusterclass import Users
from clusterwright.admission.clusterfacts import ClusterFacts, Found
from clusterwright.admission.ipam import Claim

Json = dict[str, Any]
ALL_GATES = dict.fromkeys(
    (
        "ClusterTopology",
        "ClusterTopologyWorkerVersionPinning",
        "MachinePool",
        "RuntimeSDK",
        "MachineTaintPropagation",
        "MachineSetPreflightChecks",
        "KubeadmBootstrapFormatIgnition",
    ),
    True,
)


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch, but lists of one object are merged into the first item of the list that is there."""
    if isinstance(patch, dict):
        out = dict(target) if isinstance(target, dict) else {}
        for key, value in patch.items():
            if value is None:
                out.pop(key, None)
            else:
                out[key] = merge(out.get(key), value)
        return out
    return deepcopy(patch)


def ref(kind: str, group: str = "infrastructure.cluster.x-k8s.io") -> Json:
    return {"apiGroup": group, "kind": kind, "name": "r"}


def template_ref(kind: str, group: str = "infrastructure") -> Json:
    return {"templateRef": {"apiVersion": f"{group}.cluster.x-k8s.io/v1beta2", "kind": kind, "name": "t"}}


MACHINE_SPEC: Json = {
    "clusterName": "c",
    "bootstrap": {"configRef": ref("KubeadmConfig", "bootstrap.cluster.x-k8s.io")},
    "infrastructureRef": ref("DevMachine"),
}
WORKERS = {
    "machineDeployments": [{"class": "small", "bootstrap": template_ref("KubeadmConfigTemplate", "bootstrap"), "infrastructure": template_ref("DevMachineTemplate")}],
    "machinePools": [{"class": "pool", "bootstrap": template_ref("KubeadmConfigTemplate", "bootstrap"), "infrastructure": template_ref("DevMachinePoolTemplate")}],
}  # fmt: skip
CLASS_SPEC: Json = {
    "infrastructure": template_ref("DevClusterTemplate"),
    "controlPlane": template_ref("KubeadmControlPlaneTemplate", "controlplane")
    | {"machineInfrastructure": template_ref("DevMachineTemplate")},
    "workers": WORKERS,
}
TOPOLOGY: Json = {"classRef": {"name": "cc"}, "version": "v1.33.4"}
MD_TOPOLOGY: Json = {"name": "md", "class": "small"}
MP_TOPOLOGY: Json = {"name": "mp", "class": "pool"}
SELECTOR = {"matchLabels": {"a": "b"}}


def _object(api_version: str, kind: str, spec: Json, name: str = "x") -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec}


CORE, ADDONS, IPAM = "cluster.x-k8s.io/v1beta2", "addons.cluster.x-k8s.io/v1beta2", "ipam.cluster.x-k8s.io/v1beta2"
BOOTSTRAP, PLANE = "bootstrap.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2"
POOL_REF = {"apiGroup": "pools.example.com", "kind": "Pool", "name": "p"}
WORKER_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": MACHINE_SPEC}
BASES: dict[str, Json] = {
    "Cluster": _object(
        CORE, "Cluster", {"topology": TOPOLOGY | {"workers": {"machineDeployments": [MD_TOPOLOGY], "machinePools": [MP_TOPOLOGY]}}}
    ),
    "ClusterClass": _object(CORE, "ClusterClass", CLASS_SPEC, "cc"),
    "Machine": _object(CORE, "Machine", MACHINE_SPEC),
    "MachineSet": _object(CORE, "MachineSet", {"clusterName": "c", "selector": SELECTOR, "template": WORKER_TEMPLATE}),
    "MachineDeployment": _object(CORE, "MachineDeployment", {"clusterName": "c", "selector": SELECTOR, "template": WORKER_TEMPLATE}),
    "MachinePool": _object(CORE, "MachinePool", {"clusterName": "c", "template": {"spec": MACHINE_SPEC}}),
    "MachineHealthCheck": _object(CORE, "MachineHealthCheck", {"clusterName": "c", "selector": SELECTOR}),
    "MachineDrainRule": _object(CORE, "MachineDrainRule", {"drain": {"behavior": "Drain", "order": 1}}),
    "ClusterResourceSet": _object(ADDONS, "ClusterResourceSet", {"clusterSelector": SELECTOR, "strategy": "ApplyOnce"}),
    "ClusterResourceSetBinding": _object(ADDONS, "ClusterResourceSetBinding", {"clusterName": "c"}),
    "ExtensionConfig": _object(
        "runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig", {"clientConfig": {"url": "https://a.example.com"}, "namespaceSelector": {}}
    ),
    "IPAddress": _object(IPAM, "IPAddress", {"address": "10.0.0.1", "prefix": 24, "claimRef": {"name": "claim"}, "poolRef": POOL_REF}),
    "IPAddressClaim": _object(IPAM, "IPAddressClaim", {"poolRef": POOL_REF}),
    "KubeadmConfig": _object(BOOTSTRAP, "KubeadmConfig", {"verbosity": 1}),
    "KubeadmConfigTemplate": _object(BOOTSTRAP, "KubeadmConfigTemplate", {"template": {"spec": {"verbosity": 1}}}),
    "KubeadmControlPlane": _object(
        PLANE,
        "KubeadmControlPlane",
        {
            "replicas": 1,
            "version": "v1.34.1",
            "machineTemplate": {"spec": {"infrastructureRef": ref("DevMachineTemplate")}},
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        },
    ),
    "KubeadmControlPlaneTemplate": _object(
        PLANE,
        "KubeadmControlPlaneTemplate",
        {"template": {"spec": {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}}},
    ),
    "Scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x", "namespace": "n"}, "spec": {"replicas": 3}},
    "DevCluster": _object(INFRASTRUCTURE, "DevCluster", {"backend": {"docker": {}}}),
    "DevClusterTemplate": _object(INFRASTRUCTURE, "DevClusterTemplate", {"template": {"spec": {"backend": {"docker": {}}}}}),
    "DevMachine": _object(INFRASTRUCTURE, "DevMachine", {"backend": {"docker": {"customImage": "a"}}}),
    "DevMachineTemplate": _object(
        INFRASTRUCTURE, "DevMachineTemplate", {"template": {"spec": {"backend": {"docker": {"customImage": "a"}}}}}
    ),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One rule of one kind. `at` is the field that the broken rule names."""

    id: str
    kind: str
    breaks: Any
    at: str
    keeps: Any = field(default_factory=dict)
    old: Any = None
    """Merged into the base, it is what the write replaces; None: a create."""
    gates: Mapping[str, bool] = field(default_factory=lambda: ALL_GATES)
    keeps_gates: Mapping[str, bool] = field(default_factory=lambda: ALL_GATES)
    facts: Any = None
    keeps_facts: Any = None
    operation: str = ""
    stage: str = "rules"
    says: str = ""
    """Part of the message, where one field has several rules of one kind."""


def case(ids: str, kind: str, breaks: Any, at: str, keeps: Any = None, **rest: Any) -> Iterator[Case]:
    """A case for each id."""
    for id in ids.split():
        yield Case(id=id, kind=kind, breaks=breaks, at=at, keeps=keeps if keeps is not None else {}, **rest)


def without(*gates: str) -> Mapping[str, bool]:
    return {gate: on for gate, on in ALL_GATES.items() if gate not in gates}


def taint(key: str) -> list[Json]:
    return [{"key": key, "effect": "NoSchedule", "propagation": "Always"}]


# ----------------------------------------------------------------------------------------- facts

THE_CLASS: Json = BASES["ClusterClass"] | {"status": {"variables": []}}
FACTS = ClusterFacts(cluster_class=THE_CLASS, is_reconciled=True)


def of_class(spec: Json | None = None, variables: list[Json] | None = None, **more: Any) -> ClusterFacts:
    changed = merge(THE_CLASS, {"spec": spec or {}})
    changed["status"] = {"variables": variables or []}
    return ClusterFacts(cluster_class=changed, is_reconciled=True, **more)


def variable(schema: Json, *, required: bool = False) -> list[Json]:
    return [{"name": "v", "definitions": [{"from": "inline", "required": required, "schema": {"openAPIV3Schema": schema}}]}]


def plane(spec: str = "v1.33.4", status: str | None = "v1.33.4") -> Found:
    return Found(({"spec": {"version": spec}, "status": {"version": status} if status else {}},))


def worker(kind: str, version: str, **more: Any) -> Found:
    spec = {"selector": SELECTOR, "template": {"spec": {"version": version}}}
    return Found(({"kind": kind, "metadata": {"name": "w"}, "spec": spec, **more},))


def user(topology: Json | None = None) -> Users:
    cluster = merge(BASES["Cluster"], {"spec": {"topology": topology or {}}})
    return Users((cluster,))


CLAIM = Claim({"spec": {"poolRef": POOL_REF}})
