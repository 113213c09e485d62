"""Prepare nodes that are containers: volumes, name servers, and settings in kubeadm's configuration. Pure.

| A container | so |
|---|---|
| has overlayfs below it already | containerd, kubelet, etcd and logs get volumes |
| has the engine's own name server, which CoreDNS cannot use | resolv.conf names the servers of the host |
| cannot set the host's conntrack limits | kube-proxy is told to leave them alone |
| lets no new interface have IPv6, even in a network with IPv6 | it is created with settings that allow and forward it |
| may know localhost by IPv4 only, if its engine copies the host's names | its names are completed |
| may be on a host with cgroups of version 1 or with swap | kubeadm ignores those checks, and kubelet accepts such cgroups |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from clusterwright.api import yamlreader
from clusterwright.api.copying import replace
from clusterwright.kubeadm.cloudconfig import CloudConfig, File
from clusterwright.kubeadm.ignition import CONFIG_PATH
from clusterwright.kubeadm.yamltext import dump

VOLUMES = ("/var",)
TMPFS = ("/run", "/tmp")  # noqa: S108  # paths inside the container
IPV6 = {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.all.forwarding": "1"}
"""The settings with which Pods of a node have IPv6."""
INIT, JOIN = "/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml"
LOCALHOST = "grep -q '^::1[[:space:]].*localhost' /etc/hosts || echo '::1 localhost' >> /etc/hosts"
"""The command that names the IPv6 address of localhost, which containerd needs to forward ports to etcd on nodes without IPv4."""
CONFIGURATIONS = frozenset({INIT, JOIN, CONFIG_PATH})
"""The paths of kubeadm's configuration, in cloud-config and in Ignition."""
IGNORED = ("SystemVerification", "Swap", "FileContent--proc-sys-net-bridge-bridge-nf-call-iptables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Facts of the host for the preparation of nodes."""

    has_old_cgroups: bool = False
    """Whether the host has cgroups of version 1."""
    name_servers: Sequence[str] = ()
    """The host's name servers, as containers reach them."""


def prepared(config: CloudConfig, settings: Settings) -> CloudConfig:
    """Return bootstrap data adapted to a node that is a container."""
    files = tuple(_configured(file, settings) if file.path in CONFIGURATIONS else file for file in config.files)
    return replace(config, files=files, early_commands=(*_name_servers(settings.name_servers), LOCALHOST, *config.early_commands))


def _name_servers(servers: Sequence[str]) -> tuple[str, ...]:
    """Return the command that replaces a name server that only the node itself can reach. The file is mounted: it cannot be replaced."""
    if not servers:
        return ()
    lines = "".join(f"nameserver {server}\\n" for server in servers)
    return (f"if grep -q '^nameserver 127' /etc/resolv.conf; then printf '{lines}' > /etc/resolv.conf; fi",)


def _configured(file: File, settings: Settings) -> File:
    try:
        documents = [d for d in yamlreader.load_all(file.content.decode()) if isinstance(d, dict)]
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        return file  # kubeadm says what is wrong with it
    changed = [_registered(d) if d.get("kind") in {"InitConfiguration", "JoinConfiguration"} else d for d in documents]
    if any(d.get("kind") in {"InitConfiguration", "ClusterConfiguration"} for d in changed):
        changed = _merged(changed, "kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration", {"conntrack": {"maxPerCore": 0}})
        if settings.has_old_cgroups:
            changed = _merged(changed, "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", {"failCgroupV1": False})
    return replace(file, content="---\n".join(dump(d) for d in changed).encode())


def _registered(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the preflight checks ignored that fail in containers."""
    registration = dict(document.get("nodeRegistration") or {})
    present = list(registration.get("ignorePreflightErrors") or ())
    if "all" not in present:
        registration["ignorePreflightErrors"] = [*present, *(check for check in IGNORED if check not in present)]
    return {**document, "nodeRegistration": registration}


def _merged(documents: Sequence[Mapping[str, Any]], api_version: str, kind: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the documents with settings merged into the one of a kind, which is added if missing. Existing settings take precedence."""
    found = [dict(d) for d in documents]
    for document in found:
        if document.get("kind") == kind:
            document.update({key: value for key, value in settings.items() if key not in document})
            return found
    return [*found, {"apiVersion": api_version, "kind": kind, **settings}]
