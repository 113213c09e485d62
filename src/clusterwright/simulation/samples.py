"""Sample clusters as manifests: what `up --demo` applies, and what tests and benchmarks bring up."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.simulation.defaults import KUBERNETES_VERSION

VERSION = KUBERNETES_VERSION
_CLUSTER = "cluster.x-k8s.io/v1beta2"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
_CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2"


def cluster(name: str, namespace: str = "default", *, has_control_plane_object: bool = False) -> list[Json]:
    """Return a Cluster on in-memory infrastructure, without Machines."""
    spec: Json = {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name},
    }
    if has_control_plane_object:
        spec["controlPlaneRef"] = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": name}
    return [
        {"apiVersion": _CLUSTER, "kind": "Cluster", "metadata": {"name": name, "namespace": namespace}, "spec": spec},
        {
            "apiVersion": _INFRASTRUCTURE,
            "kind": "DevCluster",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"backend": {"inMemory": {}}},
        },
    ]


def machine(
    cluster_name: str, name: str, namespace: str = "default", *, is_control_plane: bool, seconds: float = 0, version: str = VERSION
) -> list[Json]:
    """Return a stand-alone Machine with its bootstrap configuration and infrastructure. `seconds`: the duration of each stage."""
    labels = {CLUSTER_NAME_LABEL: cluster_name}
    if is_control_plane:
        labels[CONTROL_PLANE_LABEL] = ""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    # the init Machine is chosen by a lock, so every control-plane Machine carries what init and join need
    bootstrap: Json = {
        "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}}
    }
    if is_control_plane:
        bootstrap |= {
            "clusterConfiguration": {"apiServer": {"certSANs": ["localhost", "127.0.0.1"]}, "encryptionAlgorithm": "ECDSA-P256"},
            "initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}},
        }
        bootstrap["joinConfiguration"]["controlPlane"] = {"localAPIEndpoint": {"bindPort": 6443}}
    return [
        {"apiVersion": _BOOTSTRAP, "kind": "KubeadmConfig", "metadata": metadata, "spec": bootstrap},
        {"apiVersion": _INFRASTRUCTURE, "kind": "DevMachine", "metadata": metadata, "spec": {"backend": {"inMemory": _stages(seconds)}}},
        {
            "apiVersion": _CLUSTER,
            "kind": "Machine",
            "metadata": metadata,
            "spec": {
                "clusterName": cluster_name,
                "version": version,
                "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name},
            },
        },
    ]


def control_plane(name: str, namespace: str = "default", *, replicas: int, seconds: float = 0, version: str = VERSION) -> list[Json]:
    """Return a KubeadmControlPlane with the template of its machines."""
    extra = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}}
    template = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": f"{name}-control-plane"}
    return [
        {
            "apiVersion": _INFRASTRUCTURE,
            "kind": "DevMachineTemplate",
            "metadata": {"name": f"{name}-control-plane", "namespace": namespace},
            "spec": {"template": {"spec": {"backend": {"inMemory": _stages(seconds)}}}},
        },
        {
            "apiVersion": _CONTROL_PLANE,
            "kind": "KubeadmControlPlane",
            "metadata": {"name": name, "namespace": namespace, "labels": {CLUSTER_NAME_LABEL: name}},
            "spec": {
                "replicas": replicas,
                "version": version,
                "machineTemplate": {"spec": {"infrastructureRef": template}},
                "kubeadmConfigSpec": {
                    "clusterConfiguration": {
                        "apiServer": {"certSANs": ["localhost", "127.0.0.1"]},
                        "encryptionAlgorithm": "ECDSA-P256",
                    },
                    "initConfiguration": extra,
                    "joinConfiguration": extra,
                },
            },
        },
    ]


def machine_pool(
    cluster_name: str, name: str, namespace: str = "default", *, replicas: int, seconds: float = 0, version: str = VERSION
) -> list[Json]:
    """Return a MachinePool of workers with its bootstrap configuration and infrastructure."""
    metadata = {"name": name, "namespace": namespace, "labels": {CLUSTER_NAME_LABEL: cluster_name}}
    extra = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}}
    return [
        {"apiVersion": _BOOTSTRAP, "kind": "KubeadmConfig", "metadata": metadata, "spec": {"joinConfiguration": extra}},
        {
            "apiVersion": _INFRASTRUCTURE,
            "kind": "DevMachinePool",
            "metadata": metadata,
            "spec": {"backend": {"inMemory": _stages(seconds)}},
        },
        {
            "apiVersion": _CLUSTER,
            "kind": "MachinePool",
            "metadata": metadata,
            "spec": {
                "clusterName": cluster_name,
                "replicas": replicas,
                "template": {
                    "spec": {
                        "clusterName": cluster_name,
                        "version": version,
                        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": name},
                    }
                },
            },
        },
    ]


def machine_health_check(
    cluster_name: str, name: str, namespace: str = "default", *, labels: Mapping[str, str], at_most: str = "40%"
) -> Json:
    """Return a MachineHealthCheck of the Machines with these labels: a Node unready for five minutes, or that does not join, is replaced.

    Nothing is replaced while more than `at_most` of them are unhealthy.
    """
    rules = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")]
    return {
        "apiVersion": _CLUSTER,
        "kind": "MachineHealthCheck",
        "metadata": {"name": name, "namespace": namespace, "labels": {CLUSTER_NAME_LABEL: cluster_name}},
        "spec": {
            "clusterName": cluster_name,
            "selector": {"matchLabels": dict(labels)},
            "checks": {"unhealthyNodeConditions": rules, "nodeStartupTimeoutSeconds": 600},
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": at_most}},
        },
    }


def cluster_class(name: str = "in-memory", namespace: str = "default", *, seconds: float = 0, **spec: Any) -> list[Json]:
    """Return a ClusterClass on in-memory infrastructure with its templates: control plane, one worker class, one pool class.

    `spec` is merged over its spec.
    """

    def template(kind: str, api_version: str, part: str, content: Json) -> Json:
        metadata = {"name": f"{name}-{part}", "namespace": namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"template": {"spec": content}}}

    extra = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}}
    kubeadm = {
        "clusterConfiguration": {"apiServer": {"certSANs": ["localhost", "127.0.0.1"]}, "encryptionAlgorithm": "ECDSA-P256"},
        "initConfiguration": extra,
        "joinConfiguration": extra,
    }
    backend = {"backend": {"inMemory": _stages(seconds)}}
    templates = {
        "infrastructure": template("DevClusterTemplate", _INFRASTRUCTURE, "cluster", {"backend": {"inMemory": {}}}),
        "control_plane": template("KubeadmControlPlaneTemplate", _CONTROL_PLANE, "control-plane", {"kubeadmConfigSpec": kubeadm}),
        "control_plane_machine": template("DevMachineTemplate", _INFRASTRUCTURE, "control-plane", backend),
        "worker_bootstrap": template("KubeadmConfigTemplate", _BOOTSTRAP, "worker", {"joinConfiguration": extra}),
        "worker_machine": template("DevMachineTemplate", _INFRASTRUCTURE, "worker", backend),
        "pool_machines": template("DevMachinePoolTemplate", _INFRASTRUCTURE, "pool", backend),
    }

    def named(part: str) -> Json:
        made = templates[part]
        return {"templateRef": {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": made["metadata"]["name"]}}

    own = {
        "infrastructure": named("infrastructure"),
        "controlPlane": {**named("control_plane"), "machineInfrastructure": named("control_plane_machine")},
        "workers": {
            "machineDeployments": [
                {"class": "default-worker", "bootstrap": named("worker_bootstrap"), "infrastructure": named("worker_machine")}
            ],
            "machinePools": [{"class": "default-pool", "bootstrap": named("worker_bootstrap"), "infrastructure": named("pool_machines")}],
        },
    }
    metadata = {"name": name, "namespace": namespace}
    return [*templates.values(), {"apiVersion": _CLUSTER, "kind": "ClusterClass", "metadata": metadata, "spec": {**own, **spec}}]


def topology(
    name: str,
    namespace: str = "default",
    *,
    class_name: str = "in-memory",
    version: str = VERSION,
    control_plane: int = 1,
    workers: Mapping[str, int] = MappingProxyType({"md-0": 1}),
    pools: Mapping[str, int] = MappingProxyType({}),
    **more: Any,
) -> Json:
    """Return a Cluster with a class; `more` is merged over its topology."""
    groups: Json = {}
    if workers:
        groups["machineDeployments"] = [{"class": "default-worker", "name": n, "replicas": count} for n, count in workers.items()]
    if pools:
        groups["machinePools"] = [{"class": "default-pool", "name": n, "replicas": count} for n, count in pools.items()]
    topology: Json = {
        "classRef": {"name": class_name},
        "version": version,
        "controlPlane": {"replicas": control_plane},
        **({"workers": groups} if groups else {}),
        **more,
    }
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}}
    return {
        "apiVersion": _CLUSTER,
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterNetwork": network, "topology": topology},
    }


def _stages(seconds: float) -> Json:
    if not seconds:
        return {}
    stage = {"provisioning": {"startupDuration": f"{seconds}s", "startupJitter": "0.2"}}
    return dict.fromkeys(("vm", "node", "apiServer", "etcd"), stage)


def workers(
    cluster_name: str,
    name: str,
    namespace: str = "default",
    *,
    kind: str = "MachineDeployment",
    replicas: int,
    seconds: float = 0,
    version: str = VERSION,
    **spec: Any,
) -> list[Json]:
    """Return a MachineDeployment or MachineSet with the templates of its Machines; `spec` is merged over its spec."""
    metadata = {"name": name, "namespace": namespace}
    labels = {CLUSTER_NAME_LABEL: cluster_name, "pool": name}
    join = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}}
    if kind == "MachineDeployment":
        update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec = {"rollout": {"strategy": update}, **spec}
    machine_spec = {
        "clusterName": cluster_name,
        "version": version,
        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": name}},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": name},
    }
    return [
        {
            "apiVersion": _BOOTSTRAP,
            "kind": "KubeadmConfigTemplate",
            "metadata": metadata,
            "spec": {"template": {"spec": {"joinConfiguration": join}}},
        },
        {
            "apiVersion": _INFRASTRUCTURE,
            "kind": "DevMachineTemplate",
            "metadata": metadata,
            "spec": {"template": {"spec": {"backend": {"inMemory": _stages(seconds)}}}},
        },
        {
            "apiVersion": _CLUSTER,
            "kind": kind,
            "metadata": {**metadata, "labels": {CLUSTER_NAME_LABEL: cluster_name}},
            "spec": {
                "clusterName": cluster_name,
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": machine_spec},
                **spec,
            },
        },
    ]
