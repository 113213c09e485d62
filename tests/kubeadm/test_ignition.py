from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.machine_setup import NTP, ContainerLinuxConfig, DiskSetup, File, Filesystem, Partition, User
from clusterwright.kubeadm import ignition
from clusterwright.kubeadm.node import Node, RenderError, Role

MakeNode = Callable[..., Node]
MakeClc = Callable[..., ContainerLinuxConfig]
ROLES = tuple(Role)


def config(node: Node) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(ignition.render(node).data)
    conforms(made, IGNITION, "config")
    return made


def files(node: Node) -> dict[str, dict[str, Any]]:
    return {f["path"]: f for f in config(node)["storage"]["files"]}


def content(file: dict[str, Any]) -> bytes:
    source = file["contents"]["source"]
    assert source.startswith("data:,")
    return unquote_to_bytes(source[6:])


# ---------------------------------------------------- Ignition 2.3, as its specification has it: key -> type

S, N, B = str, int, bool
REFERENCE = {"source!": S, "verification": {"hash": S}}
NODE = {"filesystem!": S, "path!": S, "user": {"id": N, "name": S}, "group": {"id": N, "name": S}, "overwrite": B}
DROPINS = [{"name!": S, "contents": S}]
ACCOUNT = {
    "uid": N, "gecos": S, "homeDir": S, "noCreateHome": B, "primaryGroup": S, "groups": [S], "noUserGroup": B, "system": B, "noLogInit": B,
    "shell": S,
}  # fmt: skip
IGNITION: dict[str, Any] = {
    "ignition!": {
        "version!": S,
        "config": {"append": [REFERENCE], "replace": REFERENCE},
        "timeouts": {"httpResponseHeaders": N, "httpTotal": N},
        "security": {"tls": {"certificateAuthorities": [REFERENCE]}},
    },
    "storage": {
        "disks": [
            {
                "device!": S,
                "wipeTable": B,
                "partitions": [{"label": S, "number": N, "sizeMiB": N, "startMiB": N, "guid": S, "typeGuid": S}],
            }
        ],
        "raid": [{"name!": S, "level!": S, "devices!": [S], "spares": N, "options": [S]}],
        "filesystems": [
            {
                "name": S,
                "path": S,
                "mount": {
                    "device!": S, "format!": S, "wipeFilesystem": B, "label": S, "uuid": S, "options": [S], "create": {"force": B, "options": [S]},
                },
            }
        ],
        "files": [NODE | {"mode": N, "append": B, "contents": {"compression": S, "source": S, "verification": {"hash": S}}}],
        "directories": [NODE | {"mode": N}],
        "links": [NODE | {"hard": B, "target!": S}],
    },
    "systemd": {"units": [{"name!": S, "enable": B, "enabled": B, "mask": B, "contents": S, "dropins": DROPINS}]},
    "networkd": {"units": [{"name!": S, "contents": S, "dropins": DROPINS}]},
    "passwd": {
        "users": [ACCOUNT | {"name!": S, "passwordHash": S, "sshAuthorizedKeys": [S], "create": ACCOUNT}],
        "groups": [{"name!": S, "gid": N, "passwordHash": S, "system": B}],
    },
}  # fmt: skip


def conforms(value: Any, schema: Any, where: str) -> None:
    if isinstance(schema, dict):
        assert isinstance(value, dict), where
        known = {key.rstrip("!"): key for key in schema}
        assert set(value) <= set(known), where
        assert {k for k, spelled in known.items() if spelled.endswith("!")} <= set(value), where
        for key, item in value.items():
            conforms(item, schema[known[key]], f"{where}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for n, item in enumerate(value):
            conforms(item, schema[0], f"{where}[{n}]")
    else:
        assert type(value) is schema, where


# ---------------------------------------------------------------------------------- the spec's edge cases


@pytest.mark.parametrize("role", ROLES)
def test_without_a_document_there_are_no_data(role: Role) -> None:
    """Our input cannot be null: a node without its documents cannot be made."""
    with pytest.raises(TypeError):
        Node(role=role)  # type: ignore[call-arg]
    assert ignition.render(Node(role=role, documents=("a: b\n",))).data


EXTRA = "storage:\n  files:\n  - path: /etc/extra.conf\n{mode}    contents:\n      inline: a=b\n"


def test_additional_config_is_appended(a_node: MakeNode, clc: MakeClc) -> None:
    assert content(files(a_node(ignition=clc(EXTRA.format(mode="    mode: 0600\n"))))["/etc/extra.conf"]) == b"a=b"


def test_a_missing_mode_is_a_warning_and_an_error_if_strict(a_node: MakeNode, clc: MakeClc) -> None:
    loose = ignition.render(a_node(ignition=clc(EXTRA.format(mode=""))))

    assert loose.data
    assert [f.severity for f in loose.findings] == ["warning"]
    with pytest.raises(RenderError, match="converting additional CLC to Ignition"):
        ignition.render(a_node(ignition=clc(EXTRA.format(mode=""), strict=True)))


def test_a_colon_in_a_partition_label_is_a_warning(a_node: MakeNode, clc: MakeClc) -> None:
    text = "storage:\n  disks:\n  - device: /dev/sda\n    partitions:\n    - label: foo:bar\n"

    assert ignition.render(a_node(ignition=clc(text))).findings
    with pytest.raises(RenderError):
        ignition.render(a_node(ignition=clc(text, strict=True)))


def test_a_whole_node_is_rendered(a_full_node: MakeNode) -> None:
    node = a_full_node(
        Role.JOIN_WORKER,
        files=(File(path="/etc/testfile", content="Zm9vCg==", encoding="base64", owner="nobody:nobody", permissions="0600"),),
    )
    node = Node(
        **{
            **{f: getattr(node, f) for f in Node.__dataclass_fields__},
            "users": (User(name="foo", groups="foo, bar", sudo="ALL", passwd="h"),),
        }
    )
    made = config(node)

    assert made["ignition"]["version"] == "2.3.0"
    assert [(f["path"], f["mode"]) for f in made["storage"]["files"]] == [
        ("/etc/sudoers.d/foo", 384), ("/etc/testfile", 384), ("/etc/kubeadm.sh", 448), ("/etc/kubeadm.yml", 384), ("/etc/ntp.conf", 420),
    ]  # fmt: skip
    assert [u["name"] for u in made["systemd"]["units"]] == ["kubeadm.service", "ntpd.service", "var-lib-testdir.mount"]
    assert made["passwd"]["users"] == [{"name": "foo", "groups": ["foo", "bar"], "passwordHash": "h"}]
    assert made["storage"]["disks"] == [{"device": "/dev/sdb", "partitions": [{}]}]
    (filesystem,) = made["storage"]["filesystems"]
    assert filesystem["mount"]["options"] == ["-F", "-E", "x=1"]
    assert "server 0.pool.ntp.org\nserver 1.pool.ntp.org\n" in content(made["storage"]["files"][4]).decode()


def test_password_login_is_allowed_where_a_password_is_set(a_node: MakeNode) -> None:
    made = files(
        a_node(users=(User(name="foo", lock_password=False), User(name="bar", lock_password=False), User(name="baz", lock_password=True)))
    )

    assert b"Match User foo,bar\n  PasswordAuthentication yes\n" in content(made["/etc/ssh/sshd_config"])
    assert not any(path.startswith("/etc/sudoers.d") for path in made)


def test_base64_and_plain_give_the_same_source(a_node: MakeNode) -> None:
    made = files(a_node(files=(File(path="/a", content="Zm9vCg==", encoding="base64"), File(path="/b", content="foo"))))

    assert made["/a"]["contents"]["source"] == made["/b"]["contents"]["source"] == "data:,foo%0A"


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("nobody:nobody", {"user": {"name": "nobody"}, "group": {"name": "nobody"}}),
        ("nobody", {"user": {"name": "nobody"}}),
        ("nobody:", {"user": {"name": "nobody"}}),
        (":nobody", {"group": {"name": "nobody"}}),
        ("", {}),
    ],
)
def test_owners_of_files_are_rendered(a_node: MakeNode, owner: str, expected: dict[str, Any]) -> None:
    made = files(a_node(files=(File(path="/a", owner=owner),)))["/a"]

    assert {k: v for k, v in made.items() if k in ("user", "group")} == expected
    assert made["contents"]["source"] == "data:,"


def test_commands_keep_their_lines(a_node: MakeNode) -> None:
    node = a_node(pre_kubeadm_commands=("cat <<EOF\n  x\nEOF", "b"), post_kubeadm_commands=("if true; then\n  echo y\nfi",))

    assert content(files(node)["/etc/kubeadm.sh"]).decode() == (
        "#!/bin/bash\nset -e\n\ncat <<EOF\n  x\nEOF\nb\n\nkubeadm join --config /etc/kubeadm.yml \n"
        "mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\nmv /etc/kubeadm.yml /tmp/\n\n"
        "if true; then\n  echo y\nfi\n"
    )


@pytest.mark.parametrize("settings", [None, ContainerLinuxConfig(), ContainerLinuxConfig(strict=True)])
def test_empty_settings_are_left_out(a_node: MakeNode, settings: ContainerLinuxConfig | None) -> None:
    assert config(a_node(ignition=settings))


# ------------------------------------------------------------------------------------- rulings and limits


@pytest.mark.parametrize("role", ROLES)
def test_every_role_renders_what_the_specification_allows(a_full_node: MakeNode, role: Role) -> None:
    assert content(files(a_full_node(role))["/etc/kubeadm.yml"]).startswith(b"---\n")


def test_disabled_ntp_is_disabled(a_node: MakeNode) -> None:
    made = config(a_node(ntp=NTP(enabled=False, servers=("a",))))

    assert [u["name"] for u in made["systemd"]["units"]] == ["kubeadm.service"]


def test_layout_false_makes_no_partition_and_overwrite_may_be_missing(a_node: MakeNode) -> None:
    disks = DiskSetup(
        partitions=(Partition(device="/dev/sdb", layout=False),), filesystems=(Filesystem(device="/dev/sdb", filesystem="ext4", label="x"),)
    )

    assert config(a_node(disk_setup=disks))["storage"]["disks"] == [{"device": "/dev/sdb"}]


def test_a_file_without_permissions_is_0644(a_node: MakeNode) -> None:
    assert files(a_node(files=(File(path="/a", content="x"),)))["/a"]["mode"] == 0o644


@pytest.mark.parametrize(
    "parts",
    [
        {"files": (File(path="relative", content="x"),)},
        {"files": (File(path="/a", permissions="rwx"),)},
        {"files": (File(path="/a", permissions="77777"),)},
        {"files": (File(path="/a", encoding="base64", content="%%"),)},
        {"mounts": (("only-a-label",),)},
        {"disk_setup": DiskSetup(filesystems=(Filesystem(device="/dev/sdb", filesystem="ntfs"),))},
        {"disk_setup": DiskSetup(filesystems=(Filesystem(device="/dev/sdb", filesystem="vfat", label="x" * 12),))},
        {"disk_setup": DiskSetup(filesystems=(Filesystem(device="sdb", filesystem="ext4"),))},
        {"disk_setup": DiskSetup(partitions=(Partition(device="sdb", layout=True),))},
    ],
)
def test_configs_that_ignition_would_refuse_are_refused(a_node: MakeNode, parts: dict[str, Any]) -> None:
    with pytest.raises(RenderError):
        ignition.render(a_node(**parts))


def test_an_error_never_quotes_a_content(a_node: MakeNode) -> None:
    with pytest.raises(RenderError) as caught:
        ignition.render(a_node(files=(File(path="/a", encoding="base64", content="s3cr3t%"),)))

    assert "s3cr3t" not in str(caught.value)


@given(st.binary(max_size=80))
def test_any_bytes_arrive_as_they_are(data: bytes) -> None:
    from base64 import b64encode

    node = Node(role=Role.JOIN_WORKER, documents=("a: b\n",), files=(File(path="/a", encoding="base64", content=b64encode(data).decode()),))

    assert content(files(node)["/a"]) == data


@pytest.mark.parametrize("role", ROLES)
def test_bash_can_parse_the_script(a_full_node: MakeNode, role: Role, written: Callable[[bytes], Path]) -> None:
    script = written(content(files(a_full_node(role))["/etc/kubeadm.sh"]))

    done = subprocess.run(["bash", "-n", str(script)], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


# -------------------------------------------------------------------------------- Container Linux Config

WHOLE = """
ignition:
  config:
    append: [{source: "https://example.com/a", verification: {hash: {function: sha512, sum: "SUM"}}}]
  timeouts: {http_response_headers: 20, http_total: 600}
  security: {tls: {certificate_authorities: [{source: "https://example.com/ca"}]}}
storage:
  files: [{path: /a, mode: 0640, user: {id: 5}, group: {name: g}, overwrite: false, contents: {remote: {url: "https://x/y", compression: gzip}}}]
  directories: [{path: /d, mode: 0700}]
  links: [{path: /l, target: /a, hard: true}]
  disks: [{device: /dev/sda, wipe_table: yes, partitions: [{label: ROOT, number: 1, size: 1GiB, start: 1MiB, type_guid: swap_partition}]}]
  raid: [{name: md0, level: raid1, devices: [/dev/sdb, /dev/sdc], spares: 1, options: [-x]}]
  filesystems: [{name: md, mount: {device: /dev/md0, format: xfs, wipe_filesystem: true, label: L, uuid: U, options: [-f]}}, {name: p, path: /p}]
systemd:
  units:
  - {name: a.service, enabled: true, contents: "[Unit]\\n[Install]\\nWantedBy=x\\n", dropins: [{name: 1.conf, contents: "[Unit]\\nA=b\\n"}]}
  - {name: b.service, mask: true}
networkd: {units: [{name: a.network, contents: "[Match]\\nName=eth0\\n"}]}
passwd:
  users: [{name: u, uid: 1000, password_hash: h, ssh_authorized_keys: [k], groups: [a], home_dir: /h, no_create_home: true, shell: /bin/sh}]
  groups: [{name: g, gid: 2000, system: true}]
""".replace("SUM", "0" * 128)


def test_every_part_of_a_container_linux_config(a_node: MakeNode, clc: MakeClc) -> None:
    made = config(a_node(ignition=clc(WHOLE, strict=True)))

    assert made["ignition"]["config"]["append"][0]["verification"] == {"hash": "sha512-" + "0" * 128}
    assert made["storage"]["disks"][0]["partitions"] == [
        {"label": "ROOT", "number": 1, "sizeMiB": 1024, "startMiB": 1, "typeGuid": "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"}
    ]
    assert made["storage"]["files"][-1] == {
        "filesystem": "root", "path": "/a", "mode": 0o640, "user": {"id": 5}, "group": {"name": "g"}, "overwrite": False,
        "contents": {"source": "https://x/y", "compression": "gzip", "verification": {}},
    }  # fmt: skip
    assert made["systemd"]["units"][-1] == {"name": "b.service", "mask": True}
    assert made["ignition"]["version"] == "2.3.0"


@pytest.mark.parametrize(
    "text",
    [
        "storage: [", "- a", "storage: 5", "systemd: {units: [{name: x}]}", "storage: {files: [{path: a, mode: 0644}]}", "version: 1",
        "storage: {files: [{path: /a, mode: x}]}", "storage: {files: [{path: /a, mode: 0644, contents: {inline: a, remote: {url: 'https://x'}}}]}",
        "storage: {files: [{path: /a, mode: 0644, contents: {local: x}}]}", "etcd: {}", "storage: {raid: [{name: a, level: x, devices: []}]}",
        "storage: {files: [{path: /a, mode: 0644, contents: {remote: {url: 'ftp://x'}}}]}", "networkd: {units: [{name: a.service}]}",
        "storage: {disks: [{device: /dev/a, partitions: [{size: 1KiB}]}]}", "passwd: {users: [{name: a, name: b}]}",
        "systemd: {units: [{name: a.service, contents: 'garbage'}]}", "storage: {filesystems: [{name: a}]}",
    ],
)  # fmt: skip
def test_broken_container_linux_configs_are_refused(a_node: MakeNode, clc: MakeClc, text: str) -> None:
    with pytest.raises(RenderError, match="building Ignition config: converting additional CLC to Ignition"):
        ignition.render(a_node(ignition=clc(text)))


@pytest.mark.parametrize(
    "text",
    [
        "", "storage: {nonsense: 1}", "systemd: {units: [{name: a.service, enabled: true, contents: \"[Unit]\\nA=b\\n\"}]}",
        "storage: {directories: [{path: /d}]}", "storage: {files: [{path: /a, mode: 0600, filesystem: gone}]}",
        "passwd: {users: [{name: a, create: {}}]}", "storage: {filesystems: [{name: a, mount: {device: /d, format: ext4, create: {}}}]}",
    ],
)  # fmt: skip
def test_questionable_container_linux_configs_fail_only_if_strict(a_node: MakeNode, clc: MakeClc, text: str) -> None:
    assert ignition.render(a_node(ignition=clc(text or "# nothing"))).findings
    with pytest.raises(RenderError):
        ignition.render(a_node(ignition=clc(text or "# nothing", strict=True)))


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5000)
    | st.sampled_from(["", "/a", "a.service", "x:y", "[Unit]\nA=b", "0644", "https://x", "1GiB"])
)
KEYS = st.sampled_from(
    ["storage", "files", "path", "mode", "contents", "inline", "remote", "url", "systemd", "units", "name", "enabled", "dropins", "passwd", "users",
     "create", "groups", "disks", "device", "partitions", "size", "label", "raid", "devices", "level", "filesystems", "mount", "format", "ignition",
     "config", "append", "replace", "source", "verification", "hash", "networkd", "timeouts", "security", "tls", "certificate_authorities", "odd"]
)  # fmt: skip
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)


@given(st.dictionaries(KEYS, TREES, max_size=4), st.booleans())
def test_any_yaml_either_conforms_or_is_refused(tree: dict[str, Any], strict: bool) -> None:
    text = json.dumps(tree)
    node = Node(role=Role.JOIN_WORKER, documents=("a: b\n",), ignition=ContainerLinuxConfig(additional_config=text, strict=strict))

    with contextlib.suppress(RenderError):
        config(node)
