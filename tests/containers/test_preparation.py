"""Bootstrap data, changed for nodes that are containers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.containers.preparation import INIT, JOIN, LOCALHOST, Settings, prepared
from clusterwright.kubeadm.cloudconfig import CloudConfig, File

INIT_DOCUMENTS = b"""apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: c
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: cp-0
  ignorePreflightErrors: [Mem]
"""


def documents(path: str, content: bytes, settings: Settings | None = None) -> dict[str, Any]:
    config = prepared(CloudConfig(files=(File(path=path, content=content, permissions="0640"),)), settings or Settings())
    assert config.files[0].permissions == "0640"
    return {d["kind"]: d for d in yaml.safe_load_all(config.files[0].content)}


def test_kube_proxy_leaves_the_hosts_limits_alone() -> None:
    found = documents(INIT, INIT_DOCUMENTS)

    assert found["KubeProxyConfiguration"]["conntrack"] == {"maxPerCore": 0}
    assert found["ClusterConfiguration"] == {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": "c"}
    assert "KubeletConfiguration" not in found


def test_preflight_checks_of_the_user_stay_ignored() -> None:
    registration = documents(INIT, INIT_DOCUMENTS)["InitConfiguration"]["nodeRegistration"]

    assert registration["name"] == "cp-0"
    assert registration["ignorePreflightErrors"][:2] == ["Mem", "SystemVerification"]


def test_old_cgroups_are_accepted_where_the_host_has_them() -> None:
    assert documents(INIT, INIT_DOCUMENTS, Settings(has_old_cgroups=True))["KubeletConfiguration"]["failCgroupV1"] is False


def test_a_node_that_joins_brings_no_settings_of_the_cluster() -> None:
    content = b"apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration: {ignorePreflightErrors: [all]}\n"

    found = documents(JOIN, content, Settings(has_old_cgroups=True))
    assert list(found) == ["JoinConfiguration"]
    assert found["JoinConfiguration"]["nodeRegistration"]["ignorePreflightErrors"] == ["all"]


def test_settings_of_the_user_win() -> None:
    own = (
        INIT_DOCUMENTS
        + b"---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\nconntrack: {maxPerCore: 7}\n"
    )

    assert documents(INIT, own)["KubeProxyConfiguration"] == {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables", "conntrack": {"maxPerCore": 7},
    }  # fmt: skip


def test_an_unreadable_document_is_left_to_kubeadm() -> None:
    files = (File(path=INIT, content=b"{"), File(path="/etc/other.yaml", content=b"kind: InitConfiguration"))

    assert prepared(CloudConfig(files=files), Settings()).files == files


def test_name_servers_of_the_host_come_before_everything_else() -> None:
    config = prepared(CloudConfig(early_commands=("true",)), Settings(name_servers=["9.9.9.9", "2620:fe::fe"]))

    assert "nameserver 9.9.9.9\\nnameserver 2620:fe::fe\\n" in config.early_commands[0]
    assert config.early_commands[-1] == "true"


@pytest.mark.parametrize("names", ["127.0.0.1 localhost\n", "127.0.0.1 localhost\n::1\tlocalhost ip6-localhost\n"])
def test_localhost_has_an_address_of_ipv6(names: str, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(names)
    for _ in range(2):
        subprocess.run(["/bin/sh", "-c", LOCALHOST.replace("/etc/hosts", str(hosts))], check=True)

    assert [line.split()[:2] for line in hosts.read_text().splitlines()] == [["127.0.0.1", "localhost"], ["::1", "localhost"]]
