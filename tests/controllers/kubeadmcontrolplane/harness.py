"""Worlds with a control plane, healthy unless told otherwise, and one pass over them through `clusterwright.decide`."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import clusterwright
from clusterwright.kubeadm import certificates as pki

Json = dict[str, Any]

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
NAMESPACE, CLUSTER, NAME = "ns", "c1", "kcp1"
UID = "5c4858e7-362a-5e42-8488-a949709258e8"
HEALTH = (
    "NodeKubeadmLabelsAndTaintsSet",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
)
GOOD = {"NodeKubeadmLabelsAndTaintsSet": "Set", "EtcdMemberHealthy": "Healthy"}


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(**parts: float) -> str:
    return stamp(NOW - timedelta(**parts))


def condition(type: str, status: str, reason: str, message: str = "", since: str = "", generation: int = 2) -> Json:
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or ago(hours=2),
        "observedGeneration": generation,
    }


@cache
def authority(purpose: str) -> Json:
    import asyncio

    from clusterwright.runtime.keys import sample_keys

    key = asyncio.run(sample_keys().new_key("RSA-2048"))
    pair = pki.new_pair(pki.Purpose(purpose), key, now=NOW, serial=1)
    return {"tls.crt": base64.b64encode(pair.certificate).decode(), "tls.key": base64.b64encode(pair.key).decode()}


@dataclass
class MachineSpec:
    """One Machine of the world, n<number> its Node and etcd member."""

    name: str
    sick: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Condition type to (status, seconds ago) for what is not True."""
    missing: tuple[str, ...] = ()
    node: str | None = ""
    provider_id: bool = True
    deleting: float | None = None
    version: str = "v1.34.1"
    kubelet: str = ""
    age: float = 0.0
    node_age: float = 20 * 3600.0
    failure_domain: str = ""
    annotations: Json = field(default_factory=dict)
    conditions: list[Json] = field(default_factory=list)
    expiry: str = ""
    infrastructure: bool = True
    config: bool = True
    join: bool = True

    @property
    def node_name(self) -> str | None:
        return "n" + self.name[1:] if self.node == "" else self.node


def machines(count: int) -> list[MachineSpec]:
    return [MachineSpec(f"m{n}", age=100000.0 - 600 * n) for n in range(1, count + 1)]


@dataclass
class World:
    """What the pass sees. `members` None: etcd does not tell; "same": one per Machine with a Node."""

    machines: list[MachineSpec]
    replicas: int | None = None
    initialized: bool = True
    initialized_condition: Json | None = field(default_factory=lambda: condition("Initialized", "True", "Initialized", since=ago(hours=2)))
    external_etcd: bool = False
    deleting: bool = False
    missing_certificates: tuple[str, ...] = ()
    members: list[Json] | str | None = "same"
    connected: bool = True
    probed: str | None = field(default_factory=lambda: ago(seconds=5))
    failures: int = 0
    inspected: bool = True
    version: str = "v1.34.1"
    spec: Json = field(default_factory=dict)
    annotations: Json = field(default_factory=dict)
    conditions: list[Json] = field(default_factory=list)
    v1beta1: list[Json] = field(default_factory=list)
    failure_domains: list[str] = field(default_factory=list)
    kubeadm_config: bool | str = True
    infrastructure_provisioned: bool = True
    endpoint: bool = True
    topology: str = ""
    features: Json = field(default_factory=dict)
    workload_objects: list[Json] = field(default_factory=list)
    workload: Json = field(default_factory=dict)
    observation: Json = field(default_factory=dict)
    cluster_annotations: Json = field(default_factory=dict)
    extra: list[Json] = field(default_factory=list)
    template: bool = True
    replicas_set: bool = True

    def objects(self) -> list[Json]:
        out: list[Json] = [self._cluster(), self._control_plane()]
        if self.template:
            out.append(template())
        out += [crd("DevMachine"), crd("DevMachineTemplate")]
        purposes = ("ca", "sa", "proxy", "apiserver-etcd-client", "etcd") if self.external_etcd else ("ca", "sa", "proxy", "etcd")
        out += [secret(p) for p in purposes if p not in self.missing_certificates]
        out.append(kubeconfig())
        for spec in self.machines:
            out += machine_objects(spec, external_etcd=self.external_etcd)
        return [*out, *self.extra, self._observation()]

    def _cluster(self) -> Json:
        spec: Json = {
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": NAME},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": CLUSTER},
        }
        if self.endpoint:
            spec["controlPlaneEndpoint"] = {"host": "10.0.0.10", "port": 6443}
        if self.topology:
            spec["topology"] = {"classRef": {"name": "class"}, "version": self.topology}
        status: Json = {"initialization": {"infrastructureProvisioned": self.infrastructure_provisioned}}
        if self.failure_domains:
            status["failureDomains"] = [{"name": d, "controlPlane": True} for d in self.failure_domains]
        meta = metadata(CLUSTER, uid="701ec50c-e0b7-577f-8add-b56f73518c6e", annotations=self.cluster_annotations)
        return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": spec, "status": status}

    def _control_plane(self) -> Json:
        conditions = [*self.conditions]
        taken = {c["type"] for c in conditions}
        defaults = [
            condition("Available", "True", "Available", generation=1),
            condition("CertificatesAvailable", "True", "Available", generation=1),
            condition("EtcdClusterHealthy", "True", "Healthy", generation=1),
            condition("ControlPlaneComponentsHealthy", "True", "Healthy", generation=1),
            condition("Paused", "False", "NotPaused", generation=1),
        ]
        if self.initialized_condition is not None:
            defaults.append(self.initialized_condition)
        conditions += [c for c in defaults if c["type"] not in taken]
        config: Json = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "a", "value": "b"}]}}}
        if self.external_etcd:
            config["clusterConfiguration"] = {"etcd": external_etcd()}
        spec: Json = {
            "version": self.version,
            "kubeadmConfigSpec": config,
            "machineTemplate": {
                "spec": {
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "tmpl1"}
                }
            },
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        }
        if self.replicas_set:
            spec["replicas"] = len(self.machines) if self.replicas is None else self.replicas
        for key, value in self.spec.items():
            spec[key] = {**spec[key], **value} if isinstance(value, dict) and isinstance(spec.get(key), dict) else value
        meta = metadata(NAME, uid=UID, annotations=self.annotations)
        meta["finalizers"] = ["kubeadm.controlplane.cluster.x-k8s.io"]
        meta["ownerReferences"] = [owner("cluster.x-k8s.io/v1beta2", "Cluster", CLUSTER, "701ec50c-e0b7-577f-8add-b56f73518c6e")]
        if self.deleting:
            meta["deletionTimestamp"] = ago(seconds=30)
        status: Json = {
            "conditions": conditions,
            "deprecated": {
                "v1beta1": {
                    "conditions": self.v1beta1 or [{"type": "Available", "status": "True", "lastTransitionTime": ago(hours=1)}],
                    "readyReplicas": 0,
                    "unavailableReplicas": 0,
                    "updatedReplicas": 0,
                }
            },
        }
        if self.initialized:
            status["initialization"] = {"controlPlaneInitialized": True}
        return {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmControlPlane",
            "metadata": meta,
            "spec": spec,
            "status": status,
        }

    def _observation(self) -> Json:
        nodes = [node(m) for m in self.machines if m.node_name and m.node_name != "?"]
        objects = [*nodes, *bindings(), *self.workload_objects]
        if self.kubeadm_config:
            text = self.kubeadm_config if isinstance(self.kubeadm_config, str) else KUBEADM_CONFIG.replace("v1.34.1", self.version)
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": metadata("kubeadm-config", namespace="kube-system"),
                    "data": {"ClusterConfiguration": text},
                }
            )
        cluster: Json = {"connected": self.connected, "inspected": self.inspected, "objects": objects, "consecutiveFailures": self.failures}
        if self.probed:
            cluster["lastProbeSuccess"] = self.probed
        members: Any = self.members
        if members == "same":
            members = [member(m.node_name, leader=n == 0) for n, m in enumerate(m for m in self.machines if m.node_name)]
        if members is not None and not self.external_etcd:
            cluster["etcdMembers"] = members
        cluster.update(self.workload)
        return {
            "apiVersion": "clusterwright.dev/v1alpha1",
            "kind": "Observation",
            "now": stamp(NOW),
            "workloadClusters": {f"{NAMESPACE}/{CLUSTER}": cluster},
            "features": self.features,
            **self.observation,
        }


KUBEADM_CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: c1
controlPlaneEndpoint: 10.0.0.10:6443
kubernetesVersion: v1.34.1
networking: {dnsDomain: cluster.local, podSubnet: 192.168.0.0/16, serviceSubnet: 10.128.0.0/12}
"""


def metadata(name: str, *, uid: str = "", namespace: str = NAMESPACE, annotations: Json | None = None, created: str = "") -> Json:
    meta: Json = {
        "name": name,
        "creationTimestamp": created or ago(hours=25),
        "uid": uid or f"uid-{name}",
        "generation": 2,
        "resourceVersion": "7",
    }
    if namespace:
        meta["namespace"] = namespace
    if annotations:
        meta["annotations"] = dict(annotations)
    return meta


def owner(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True, "blockOwnerDeletion": True}


def control_plane_owner() -> Json:
    return owner("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", NAME, UID)


def labels() -> Json:
    return {"cluster.x-k8s.io/cluster-name": CLUSTER, "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": NAME}


def external_etcd() -> Json:
    return {"external": {"endpoints": ["https://10.1.1.1:2379"], "caFile": "/ca", "certFile": "/crt", "keyFile": "/key"}}


def template() -> Json:
    meta = metadata("tmpl1")
    meta["ownerReferences"] = [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": CLUSTER, "uid": "701ec50c-e0b7-577f-8add-b56f73518c6e"}
    ]
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevMachineTemplate",
        "metadata": meta,
        "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
    }


def crd(kind: str) -> Json:
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            **metadata(f"{plural}.infrastructure.cluster.x-k8s.io", namespace=""),
            "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
        },
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [{"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def secret(purpose: str) -> Json:
    meta = metadata(f"{CLUSTER}-{purpose}")
    meta["labels"] = {"cluster.x-k8s.io/cluster-name": CLUSTER}
    meta["ownerReferences"] = [control_plane_owner()]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "cluster.x-k8s.io/secret",
        "data": authority("ca" if purpose == "apiserver-etcd-client" else purpose),
    }


def kubeconfig() -> Json:
    meta = metadata(f"{CLUSTER}-kubeconfig")
    meta["labels"] = {"cluster.x-k8s.io/cluster-name": CLUSTER}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "Opaque",
        "data": {"value": base64.b64encode(b"apiVersion: v1\nkind: Config\n").decode()},
    }


def member(name: str | None, *, id: str = "", leader: bool = False, learner: bool = False, alarms: list[str] | None = None) -> Json:
    identity = id or str(1000 + sum((name or "").encode()))
    return {"name": name or "", "id": identity, "isLearner": learner, "leader": leader, "alarms": alarms or []}


def node(spec: MachineSpec) -> Json:
    meta = metadata(str(spec.node_name), namespace="", created=ago(seconds=spec.node_age))
    meta["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": {"providerID": f"dev://{spec.name}", "taints": [taint]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(hours=20)}]},
    }


def bindings() -> list[Json]:
    out = []
    for name, role in (("kubeadm:cluster-admins", "cluster-admin"), ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin")):
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        out.append(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": metadata(name, namespace=""),
                "roleRef": ref,
                "subjects": [],
            }
        )
    return out


def machine_objects(spec: MachineSpec, *, external_etcd: bool = False) -> list[Json]:
    created = ago(seconds=spec.age)
    uid = f"uid-{spec.name}"
    meta = metadata(
        spec.name,
        uid=uid,
        created=created,
        annotations={"pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup": "", **spec.annotations},
    )
    meta["annotations"] = {k: v for k, v in meta["annotations"].items() if v is not None}
    meta |= {"labels": labels(), "ownerReferences": [control_plane_owner()], "finalizers": ["machine.cluster.x-k8s.io"]}
    if spec.deleting is not None:
        meta["deletionTimestamp"] = ago(seconds=spec.deleting)
    conditions = [
        condition("Ready", "True", "Ready"),
        condition("Available", "True", "Available"),
        condition("UpToDate", "True", "UpToDate"),
    ]
    for type in HEALTH:
        if type in spec.missing or (external_etcd and "Etcd" in type):
            continue
        held, seconds = spec.sick.get(type, ("True", 7200.0))
        reason = GOOD.get(type, "Running") if held == "True" else "Failed"
        conditions.append(condition(type, held, reason, "" if held == "True" else "sick", since=ago(seconds=seconds)))
    taken = {c["type"] for c in spec.conditions}
    conditions = [c for c in conditions if c["type"] not in taken] + spec.conditions
    gates = [t for t in HEALTH if not (external_etcd and "Etcd" in t)]
    body: Json = {
        "clusterName": CLUSTER,
        "version": spec.version,
        "bootstrap": {
            "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": spec.name},
            "dataSecretName": spec.name,
        },
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": spec.name},
        "deletion": {"nodeDeletionTimeoutSeconds": 10},
        "readinessGates": [{"conditionType": t} for t in gates],
    }
    if spec.provider_id:
        body["providerID"] = f"dev://{spec.name}"
    if spec.failure_domain:
        body["failureDomain"] = spec.failure_domain
    status: Json = {
        "conditions": conditions,
        "deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(hours=1)}]}},
    }
    if spec.node_name:
        status["nodeRef"] = {"name": spec.node_name}
    if spec.kubelet:
        status["nodeInfo"] = {"kubeletVersion": spec.kubelet}
    if spec.expiry:
        status["certificatesExpiryDate"] = spec.expiry
    out: list[Json] = [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": meta, "spec": body, "status": status}]
    child = owner("cluster.x-k8s.io/v1beta2", "Machine", spec.name, uid)
    if spec.config:
        config_meta = metadata(
            spec.name, created=created, annotations={"machine.cluster.x-k8s.io/certificates-expiry": "2027-05-01T12:00:00Z"}
        )
        config_meta |= {"labels": labels(), "ownerReferences": [child]}
        config: Json = {"joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"kubeletExtraArgs": [{"name": "a", "value": "b"}]}}}
        cluster: Json = {"featureGates": {"ControlPlaneKubeletLocalMode": True}}
        if external_etcd:
            cluster["etcd"] = globals()["external_etcd"]()
        config["clusterConfiguration"] = cluster
        out.append(
            {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                "kind": "KubeadmConfig",
                "metadata": config_meta,
                "spec": config,
                "status": {},
            }
        )
    if spec.infrastructure:
        infra_meta = metadata(
            spec.name,
            created=created,
            annotations={
                "cluster.x-k8s.io/cloned-from-name": "tmpl1",
                "cluster.x-k8s.io/cloned-from-groupkind": "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
            },
        )
        infra_meta |= {"labels": labels(), "ownerReferences": [child]}
        out.append(
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachine",
                "metadata": infra_meta,
                "spec": {"providerID": f"dev://{spec.name}", "backend": {"inMemory": {}}},
                "status": {},
            }
        )
    return out


@dataclass
class Answer:
    """What the pass did."""

    raw: Json

    @property
    def object(self) -> Json:
        found: Json = self.raw["object"]
        return found

    def condition(self, type: str) -> tuple[str, str, str] | None:
        return conditions_of(self.object).get(type)

    def on_machine(self, name: str, type: str) -> tuple[str, str, str] | None:
        """A condition that the pass wrote on a Machine; None if the Machine was not touched or has none."""
        return conditions_of(self.raw["others"].get(f"Machine/{name}", {})).get(type)

    @property
    def requeue(self) -> float | None:
        seconds: float | None = self.raw["requeueAfterSeconds"]
        return seconds

    @property
    def error(self) -> str | None:
        text: str | None = self.raw["error"]
        return text

    @property
    def actions(self) -> list[tuple[str, str, str]]:
        return [(a["verb"], a["kind"], a["name"]) for a in self.raw["actions"]]

    def did(self, verb: str, kind: str) -> list[str]:
        return [n for v, k, n in self.actions if (v, k) == (verb, kind)]


def conditions_of(obj: Json) -> dict[str, tuple[str, str, str]]:
    found = (obj.get("status") or {}).get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], c.get("message", "")) for c in found}


def run(world: World) -> Answer:
    return Answer(dict(clusterwright.decide(world.objects(), f"KubeadmControlPlane/{NAMESPACE}/{NAME}")))
