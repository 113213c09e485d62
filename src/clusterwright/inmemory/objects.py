"""The objects that a kubeadm cluster is made of, as the simulated kubelet and kubeadm write them. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterwright.api.meta import Json

CONTROL_PLANE_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_ROLE_LABEL = "node-role.kubernetes.io/control-plane"
_BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token"
_COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:v1.10.1"


def provider_id(machine: str) -> str:
    """The providerID of a simulated machine."""
    return f"in-memory://{machine}"


def namespace(name: str) -> Json:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}


def node(name: str, *, is_control_plane: bool, version: str, address: str, now: datetime, taints: list[Json]) -> Json:
    """The Node that a kubelet registers; its status is part of it."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if is_control_plane:
        labels |= {_ROLE_LABEL: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
        if not any(t.get("key") == _ROLE_LABEL for t in taints):
            taints = [*taints, {"key": _ROLE_LABEL, "effect": "NoSchedule"}]
    spec: Json = {"providerID": provider_id(name)}
    if taints:
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
            "conditions": node_conditions(now, is_ready=True),
            "nodeInfo": {
                "kubeletVersion": version,
                "kubeProxyVersion": version,
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "Clusterwright in-memory",
                "kernelVersion": "6.0.0",
                "containerRuntimeVersion": "containerd://2.0.0",
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
            },
        },
    }


def node_conditions(now: datetime, *, is_ready: bool) -> list[Json]:
    """A Node's conditions: of a kubelet that reports, or of one that has stopped reporting."""
    rows = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    silent = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    stamp = timestamp(now)
    conditions = []
    for type_, *reported in rows:
        status, reason, message = reported if is_ready else silent
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": stamp,
                "lastTransitionTime": stamp,
            }
        )
    return conditions


def static_pod(component: str, node_name: str, *, version: str, now: datetime, annotations: dict[str, str]) -> Json:
    """The mirror Pod of a control-plane component."""
    stamp = timestamp(now)
    conditions = [
        {"type": t, "status": "True", "lastTransitionTime": stamp} for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    image = f"registry.k8s.io/{component}:{version}" if component != "etcd" else "registry.k8s.io/etcd:3.5.21-0"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-{node_name}",
            "namespace": "kube-system",
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {"kubernetes.io/config.mirror": component, **annotations},
        },
        "spec": {
            "nodeName": node_name,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "containers": [{"name": component, "image": image}],
            "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": component,
                    "image": image,
                    "imageID": image,
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": stamp}},
                }
            ],
        },
    }


def node_lease(name: str, now: datetime) -> Json:
    """The Lease by which a kubelet says that it is alive."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")},
    }


def kubeadm_objects(cluster_configuration: str, kubernetes_version: str, ca: bytes, endpoint: str) -> list[Json]:
    """What `kubeadm init` leaves in a new cluster: its configuration, add-ons, and the rights of joining nodes."""
    kubeconfig = (
        f'apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster:\n    server: https://{endpoint}\n'
        f"    certificate-authority-data: {_base64(ca)}\n"
    )
    return [
        _config_map("kube-system", "kubeadm-config", {"ClusterConfiguration": cluster_configuration}),
        _config_map("kube-public", "cluster-info", {"kubeconfig": kubeconfig}),
        _config_map(
            "kube-system", "kube-proxy", {"config.conf": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"}
        ),
        _config_map("kube-system", "coredns", {"Corefile": _COREFILE}),
        _cluster_role("kubeadm:get-nodes", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]),
        _cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", _BOOTSTRAPPERS),
        _cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", _BOOTSTRAPPERS),
        _cluster_role_binding(
            "kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", _BOOTSTRAPPERS
        ),
        _workload("DaemonSet", "kube-proxy", f"registry.k8s.io/kube-proxy:{kubernetes_version}"),
        _workload("Deployment", "coredns", _COREDNS_IMAGE),
    ]


_COREFILE = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
"""


def _config_map(namespace: str, name: str, data: dict[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def _cluster_role(name: str, rules: list[Json]) -> Json:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _cluster_role_binding(name: str, role: str, group: str) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }


def _workload(kind: str, name: str, image: str) -> Json:
    labels = {"k8s-app": "kube-dns" if name == "coredns" else name}
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": name, "containers": [{"name": name, "image": image}]},
        },
    }
    if kind == "Deployment":
        spec["replicas"] = 2
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system", "labels": labels}, "spec": spec}


def timestamp(now: datetime) -> str:
    """RFC 3339 with seconds, UTC."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()
