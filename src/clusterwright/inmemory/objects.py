"""The objects of a kubeadm cluster, as the simulated kubelet and kubeadm write them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

import yaml

from clusterwright.api import yamlreader
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import NODE_ROLE_CONTROL_PLANE_LABEL

_BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token"
_COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:v1.10.1"
ETCD_VERSION = "3.5.21"
ADVERTISED = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
"""The annotation on the Pod of an API server with address and port, as kubeadm writes it."""
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
KUBELET_STOPPED = "inmemory.clusterwright.dev/kubelet-stopped"
"""The annotation on a Node whose kubelet does not renew its Lease."""

Network = IPv4Network | IPv6Network
SERVICE_SUBNET: Final = "10.96.0.0/12"
"""The service subnet, kubeadm's default."""


def provider_id(machine: str) -> str:
    """Return the providerID of a simulated machine."""
    return f"in-memory://{machine}"


def node(
    name: str,
    *,
    is_control_plane: bool,
    version: str,
    address: str,
    now: datetime,
    taints: Sequence[Mapping[str, Any]] | None,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    provider: str | None = "",
) -> Json:
    """Return the Node that a kubelet registers, with its status.

    `taints` None: kubeadm's default; `provider`: its providerID, if it is not ours; None: it has none.
    """
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
    if zone:
        all_labels["topology.kubernetes.io/zone"] = zone
    if is_control_plane:
        all_labels = {NODE_ROLE_CONTROL_PLANE_LABEL: "", "node.kubernetes.io/exclude-from-external-load-balancers": "", **all_labels}
    if taints is None:
        taints = [{"key": NODE_ROLE_CONTROL_PLANE_LABEL, "effect": "NoSchedule"}] if is_control_plane else []
    spec: Json = {} if provider is None else {"providerID": provider or provider_id(name)}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        "spec": spec,
        "status": {
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
            "capacity": _RESOURCES,
            "allocatable": _RESOURCES,
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


_RESOURCES = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi", "pods": "110"}


def unreachable_taints(present: Sequence[Json], now: datetime, *, is_reachable: bool) -> list[Json]:
    """Return a Node's taints as the node lifecycle controller sets them for a running or stopped kubelet."""
    others = [taint for taint in present if taint.get("key") != UNREACHABLE_TAINT]
    if is_reachable:
        return others
    stamp = timestamp(now)
    return [*others, *({"key": UNREACHABLE_TAINT, "effect": effect, "timeAdded": stamp} for effect in ("NoSchedule", "NoExecute"))]


def node_conditions(now: datetime, *, is_ready: bool) -> list[Json]:
    """Return a Node's conditions: of a running kubelet, or of a stopped one."""
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


def static_pod(component: str, node_name: str, *, version: str, now: datetime, annotations: Mapping[str, str]) -> Json:
    """Return the mirror Pod of a control-plane component."""
    image = f"registry.k8s.io/{component}:{version}" if component != "etcd" else f"registry.k8s.io/etcd:{ETCD_VERSION}-0"
    return _pod(
        f"{component}-{node_name}",
        node_name,
        component,
        image,
        now,
        labels={"component": component, "tier": "control-plane"},
        annotations={"kubernetes.io/config.mirror": component, **annotations},
    )


def kube_proxy_pod(node_name: str, *, version: str, now: datetime, daemon_set_uid: str) -> Json:
    """Return the Pod of the kube-proxy DaemonSet on a Node."""
    pod = _pod(
        f"kube-proxy-{node_name}",
        node_name,
        "kube-proxy",
        f"registry.k8s.io/kube-proxy:{version}",
        now,
        labels={"k8s-app": "kube-proxy"},
        annotations={},
    )
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kube-proxy", "uid": daemon_set_uid}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return pod


def _pod(
    name: str, node_name: str, container: str, image: str, now: datetime, *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Json:
    stamp = timestamp(now)
    conditions = [
        {"type": t, "status": "True", "lastTransitionTime": stamp} for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": dict(labels), "annotations": dict(annotations)},
        "spec": {
            "nodeName": node_name,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "containers": [{"name": container, "image": image}],
            "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "startTime": stamp,
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container,
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
    """Return the Lease that a kubelet renews."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro_time(now)},
    }


def kubeadm_objects(cluster_configuration: str, kubernetes_version: str, ca: bytes, endpoint: str) -> list[Json]:
    """Return the objects that `kubeadm init` creates: its configuration, add-ons, and the permissions of joining nodes."""
    kubeconfig = (
        f'apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster:\n    server: https://{endpoint}\n'
        f"    certificate-authority-data: {_base64(ca)}\n"
    )
    networks = _service_networks(cluster_configuration)
    return [
        _service_cidr(networks),
        _config_map("kube-system", "kubeadm-config", {"ClusterConfiguration": cluster_configuration}),
        _config_map("kube-public", "cluster-info", {"kubeconfig": kubeconfig}),
        _config_map(
            "kube-system", "kube-proxy", {"config.conf": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"}
        ),
        _config_map("kube-system", "coredns", {"Corefile": _COREFILE}),
        *_KUBEADM_ROLES,
        _cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", _BOOTSTRAPPERS),
        _cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", _BOOTSTRAPPERS),
        _cluster_role_binding(
            "kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", _BOOTSTRAPPERS
        ),
        _cluster_role_binding(
            "kubeadm:node-autoapprove-certificate-rotation",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:nodes",
        ),
        _cluster_role_binding("kubeadm:cluster-admins", "cluster-admin", "kubeadm:cluster-admins"),
        _role("kube-public", "kubeadm:bootstrap-signer-clusterinfo", "configmaps", "cluster-info"),
        _role_binding("kube-public", "kubeadm:bootstrap-signer-clusterinfo", ("User", "system:anonymous")),
        _role("kube-system", "kubeadm:nodes-kubeadm-config", "configmaps", "kubeadm-config"),
        _role_binding("kube-system", "kubeadm:nodes-kubeadm-config", ("Group", _BOOTSTRAPPERS), ("Group", "system:nodes")),
        _role("kube-system", "kubeadm:kubelet-config", "configmaps", "kubelet-config"),
        _role_binding("kube-system", "kubeadm:kubelet-config", ("Group", "system:nodes"), ("Group", _BOOTSTRAPPERS)),
        _role("kube-system", "kube-proxy", "configmaps", "kube-proxy"),
        _role_binding("kube-system", "kube-proxy", ("Group", _BOOTSTRAPPERS)),
        _config_map(
            "kube-system", "kubelet-config", {"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"}
        ),
        *({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": n, "namespace": "kube-system"}} for n in _ACCOUNTS),
        _service("default", "kubernetes", {}, 443, "https", networks[:1], 1),
        _service("kube-system", "kube-dns", {"k8s-app": "kube-dns"}, 53, "dns", networks[:1], 10),
        _workload("DaemonSet", "kube-proxy", f"registry.k8s.io/kube-proxy:{kubernetes_version}"),
        _workload("Deployment", "coredns", _COREDNS_IMAGE),
    ]


def _service_networks(cluster_configuration: str) -> list[Network]:
    """Return the ranges of Service addresses that kubeadm sets for the API server."""
    try:
        configuration = yamlreader.load(cluster_configuration)
        subnets = str(configuration["networking"]["serviceSubnet"])
        return [ip_network(subnet.strip(), strict=False) for subnet in subnets.split(",")]
    except (yaml.YAMLError, ValueError, KeyError, TypeError):
        return [ip_network(SERVICE_SUBNET)]


def _service_cidr(networks: Sequence[Network]) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [str(network) for network in networks]},
    }


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


def _role(namespace: str, name: str, resource: str, resource_name: str) -> Json:
    rule = {"apiGroups": [""], "resources": [resource], "resourceNames": [resource_name], "verbs": ["get"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace},
        "rules": [rule],
    }


def _role_binding(namespace: str, name: str, *subjects: tuple[str, str]) -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": kind, "name": subject} for kind, subject in subjects],
    }


def _service(
    namespace: str, name: str, selector: Mapping[str, str], port: int, port_name: str, networks: Sequence[Network], nth: int
) -> Json:
    """Return a Service at the nth address of each range."""
    addresses = [str(network.network_address + min(nth, network.num_addresses - 1)) for network in networks]
    families = [f"IPv{network.version}" for network in networks]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterIP": addresses[0],
            "clusterIPs": list(addresses),
            "ipFamilies": families,
            "ipFamilyPolicy": "SingleStack" if len(families) == 1 else "RequireDualStack",
            **({"selector": dict(selector)} if selector else {}),
            "ports": [{"name": port_name, "port": port, "protocol": "TCP", "targetPort": port}],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
        },
    }


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


_ACCOUNTS = ("default", "kube-proxy", "coredns")
_KUBEADM_ROLES = (_cluster_role("kubeadm:get-nodes", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]),)


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
    """Return a time in RFC 3339 with seconds, UTC."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(now: datetime) -> str:
    """Return a time in RFC 3339 with microseconds, UTC, as in Leases."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
