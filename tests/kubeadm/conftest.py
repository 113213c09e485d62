from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterwright.api.machine_setup import NTP, ContainerLinuxConfig, File, User
from clusterwright.kubeadm.documents import AdditionalData, cluster_document, init_document, join_document, marshal
from clusterwright.kubeadm.node import Node, Role

JOIN = marshal(join_document(None, "v1beta4"))
INIT = (marshal(cluster_document(None, AdditionalData(cluster_name="c1"), "v1beta4")), marshal(init_document(None, "v1beta4")))


@pytest.fixture
def a_node() -> Callable[..., Node]:
    """Makes a node of a role; everything else is empty unless given."""

    def make(role: Role = Role.JOIN_WORKER, **parts: Any) -> Node:
        return Node(role=role, documents=INIT if role is Role.INIT else (JOIN,), **parts)

    return make


@pytest.fixture
def a_full_node(a_node: Callable[..., Node]) -> Callable[..., Node]:
    """Makes a node that uses every module that both renderers know."""
    from clusterwright.api.machine_setup import DiskSetup, Filesystem, Partition

    def make(role: Role, **parts: Any) -> Node:
        given: dict[str, Any] = {
            "files": (
                File(path="/etc/a.conf", content="k=v\n", owner="root:root", permissions="0644"),
                File(path="/etc/b", content="Zm9vCg==", encoding="base64", owner="nobody:nobody", permissions="0600"),
            ),
            "users": (
                User(
                    name="foo",
                    gecos="Foo Bar",
                    groups="foo, bar",
                    home_dir="/home/foo",
                    lock_password=False,
                    passwd="$6$salt$hash",
                    primary_group="foo",
                    shell="/bin/bash",
                    sudo="ALL=(ALL) NOPASSWD:ALL",
                    ssh_authorized_keys=("ssh-ed25519 AAAA a", "ssh-rsa BBBB b"),
                ),
            ),
            "pre_kubeadm_commands": ("swapoff -a", 'cat <<EOF > /etc/x\nline one\n  line "two"\nEOF'),
            "post_kubeadm_commands": ("echo 'done' && echo \"$HOME\"",),
            "ntp": NTP(enabled=True, servers=("0.pool.ntp.org", "1.pool.ntp.org")),
            "disk_setup": DiskSetup(
                partitions=(Partition(device="/dev/sdb", layout=True, overwrite=False, table_type="gpt"),),
                filesystems=(
                    Filesystem(device="/dev/sdb", filesystem="ext4", label="test_disk", overwrite=True, extra_opts=("-F", "-E", "x=1")),
                ),
            ),
            "mounts": (("test_disk", "/var/lib/testdir"),),
            "verbosity": 5,
        }
        return a_node(role, **(given | parts))

    return make


@pytest.fixture
def clc() -> Callable[..., ContainerLinuxConfig]:
    """Makes the settings of a Container Linux Config."""
    return lambda text, strict=None: ContainerLinuxConfig(additional_config=text, strict=strict)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes data to a file and says where."""

    def write(data: str | bytes) -> Path:
        path = tmp_path / "data"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write
