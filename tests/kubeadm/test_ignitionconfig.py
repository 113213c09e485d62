"""Ignition configs, ours and others, as the files and commands of a machine that runs already."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterwright.kubeadm.cloudconfig import BadUserData, File
from clusterwright.kubeadm.ignitionconfig import read


def config(version: str = "3.4.0", **parts: Any) -> bytes:
    return json.dumps({"ignition": {"version": version}, **parts}).encode()


def test_files_keep_mode_owner_and_bytes() -> None:
    source = "data:;base64,AP8K"
    found = read(
        config(
            storage={"files": [{"path": "/a", "mode": 0o640, "user": {"name": "u"}, "group": {"id": 7}, "contents": {"source": source}}]}
        )
    )

    assert found.files == (File(path="/a", content=b"\x00\xff\n", owner="u:7", permissions="0640"),)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"append": True, "contents": {"source": "data:,x"}}, [(b"x", True)]),
        ({"append": [{"source": "data:,x"}, {"source": "data:,y"}]}, [(b"x", True), (b"y", True)]),
        ({"contents": {"source": "data:,a"}, "append": [{"source": "data:,b"}]}, [(b"a", False), (b"b", True)]),
        ({}, [(b"", False)]),
    ],
    ids=["version 2", "version 3", "both", "empty"],
)
def test_appending_is_a_flag_or_a_list(entry: dict[str, Any], expected: list[tuple[bytes, bool]]) -> None:
    found = read(config(storage={"files": [{"path": "/a", **entry}]}))

    assert [(f.content, f.append) for f in found.files] == expected


def test_units_are_written_and_started_and_kubeadms_commands_come_last() -> None:
    units = [
        {"name": "kubeadm.service", "enabled": True, "contents": "[Service]\nExecStart=/bin/bash /etc/kubeadm.sh\nExecStart=-/bin/true\n"},
        {
            "name": "data.mount",
            "enabled": True,
            "contents": "[Mount]\nWhere=/data\n",
            "dropins": [{"name": "10-x.conf", "contents": "[Unit]"}],
        },
        {"name": "off.service", "contents": "[Unit]"},
        {"name": "never.service", "mask": True},
    ]
    found = read(config("2.3.0", systemd={"units": units}))

    assert [f.path.removeprefix("/etc/systemd/system/") for f in found.files] == [
        "kubeadm.service",
        "data.mount",
        "data.mount.d/10-x.conf",
        "off.service",
    ]
    assert list(found.commands[1:]) == [
        "systemctl enable --now data.mount || echo 'the unit data.mount cannot be started'",
        "systemctl mask never.service",
        "/bin/bash /etc/kubeadm.sh",
        "/bin/true",
    ]


def test_users_and_folders_are_made_and_disks_are_named_as_unread() -> None:
    user = {"name": "core", "homeDir": "/h", "groups": ["sudo"], "passwordHash": "x", "sshAuthorizedKeys": ["k"]}
    found = read(config(passwd={"users": [user]}, storage={"directories": [{"path": "/a b"}], "disks": [{}]}))

    assert found.users == ({"name": "core", "homedir": "/h", "groups": ["sudo"], "passwd": "x", "ssh_authorized_keys": ["k"]},)
    assert found.early_commands == ("mkdir -p '/a b'",)
    assert found.unread == ("storage.disks",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "unsupported configuration version"),
        (config("1.0.0"), "unsupported configuration version '1.0.0'"),
        (config(storage=7), "is malformed"),
        (config(storage={"files": [{"path": "a"}]}), "is not absolute"),
        (config(storage={"files": [{"path": "/a", "contents": {"source": "http://x/y"}}]}), "only data URLs"),
        (config(storage={"files": [{"path": "/a", "contents": {"source": "data:;base64,!"}}]}), "/a cannot be decoded"),
        (config(systemd={"units": [{"name": "x'; reboot"}]}), "is not the name of a unit"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, said: str) -> None:
    with pytest.raises(BadUserData, match=said):
        read(data)
