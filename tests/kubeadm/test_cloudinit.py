from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.copying import replace
from clusterwright.api.machine_setup import NTP, DiskSetup, File, Filesystem, Partition, PartitionSpec, User
from clusterwright.kubeadm import cloudinit
from clusterwright.kubeadm.documents import AdditionalData, cluster_document, init_document, join_document, marshal
from clusterwright.kubeadm.node import Node, Role, clipped

CONTROL_PLANE = (Role.INIT, Role.JOIN_CONTROL_PLANE)
ROLES = tuple(Role)
MakeNode = Callable[..., Node]


def text(node: Node) -> str:
    return cloudinit.render(node).decode()


def parsed(node: Node) -> dict[str, Any]:
    return dict(yaml.safe_load(text(node)))


# ---------------------------------------------------------------------------------- the spec's edge cases


@pytest.mark.parametrize("role", CONTROL_PLANE)
def test_attributes_of_files_are_rendered(a_node: MakeNode, role: Role) -> None:
    files = (
        File(path="/tmp/a", encoding="base64", content="aGk="),
        File(path="/tmp/b", content="hi"),
        File(path="/tmp/c", append=True, content="hi"),
    )

    out = text(a_node(role, files=files))

    assert '-   path: /tmp/a\n    encoding: "base64"\n    content: |\n      aGk=\n' in out
    assert "-   path: /tmp/b\n    content: |\n      hi\n" in out
    assert "-   path: /tmp/c\n    append: true\n    content: |\n      hi\n" in out


@pytest.mark.parametrize("role", ROLES)
def test_commands_are_rendered(a_node: MakeNode, role: Role) -> None:
    node = a_node(
        role, boot_commands=('echo "boot"',), pre_kubeadm_commands=('"echo $(date) ": hello world!"',), post_kubeadm_commands=("echo post",)
    )

    out = text(node)

    kubeadm = f"kubeadm {role.verb} --config {cloudinit.CONFIG_PATH[role]}  && echo success > /run/cluster-api/bootstrap-success.complete"
    quote = "'" if role is Role.INIT else ""
    assert 'bootcmd:\n  - "echo \\"boot\\""\n' in out
    assert f'runcmd:\n  - "\\"echo $(date) \\": hello world!\\""\n  - {quote}{kubeadm}{quote}\n  - "echo post"\n' in out


def test_disks_are_rendered(a_node: MakeNode) -> None:
    disks = DiskSetup(
        partitions=(Partition(device="test-device", layout=True, overwrite=False, table_type="gpt"),),
        filesystems=(
            Filesystem(device="test-device", filesystem="ext4", label="test_disk", extra_opts=("-F", "-E", "lazy_itable_init=1")),
        ),
    )

    out = text(a_node(disk_setup=disks, mounts=(("test_disk", "/var/lib/testdir"),)))

    assert "disk_setup:\n  test-device:\n    table_type: gpt\n    layout: true\n    overwrite: false\n" in out
    assert (
        "fs_setup:\n  - label: test_disk\n    filesystem: ext4\n    device: test-device\n    extra_opts:\n      - -F\n      - -E\n      - lazy_itable_init=1\n"
        in out
    )
    assert "mounts:\n  - - test_disk\n    - /var/lib/testdir\n" in out


def test_disk_layouts_of_a_node_are_rendered(a_node: MakeNode) -> None:
    guid = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
    layout = tuple(
        PartitionSpec(percentage=p, partition_type=t) for p, t in ((30, "Linux"), (20, ""), (25, "LinuxRAID"), (5, "LinuxSwap"), (20, guid))
    )

    out = text(a_node(disk_setup=DiskSetup(partitions=(Partition(device="/dev/sdb", disk_layout=layout),))))

    assert f"    layout:\n      - [30, 83]\n      - 20\n      - [25, fd]\n      - [5, 82]\n      - [20, {guid}]\n" in out


@pytest.mark.parametrize("role", ROLES)
def test_empty_lists_are_left_out(a_node: MakeNode, role: Role) -> None:
    names = ("files", "users", "boot_commands", "pre_kubeadm_commands", "post_kubeadm_commands", "mounts")
    bare = text(a_node(role))

    assert text(a_node(role, **dict.fromkeys(names, ()), disk_setup=DiskSetup(), ntp=NTP())) == bare
    with_user = a_node(role, users=(User(name="a", ssh_authorized_keys=()),))
    assert text(with_user) == text(a_node(role, users=(User(name="a"),)))


def test_a_worker_gets_two_files(a_node: MakeNode) -> None:
    assert len(parsed(a_node(files=(File(path="/a", content="x"),)))["write_files"]) == 3
    assert len(parsed(a_node())["write_files"]) == 2


def test_every_line_is_indented(a_node: MakeNode) -> None:
    assert "    content: |\n      a\n      \n      b\n      \n-   path" in text(a_node(files=(File(path="/a", content="a\n\nb\n"),)))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("verbosity", "flag"), [(5, " --v 5 "), (0, " --v 0 "), (None, "  ")])
def test_the_verbosity_reaches_kubeadm(a_node: MakeNode, role: Role, verbosity: int | None, flag: str) -> None:
    (command,) = parsed(a_node(role, verbosity=verbosity))["runcmd"]

    assert f"{cloudinit.CONFIG_PATH[role]}{flag}&& echo" in command


def test_pem_is_identical_on_the_node(a_node: MakeNode) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    assert parsed(a_node(files=(File(path="/a", content=pem),)))["write_files"][0]["content"] == pem


# -------------------------------------------------------------------------------------------- properties

CONTENT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ["", "\n", "  x", "\tx", " \nx", "x\n\n\n", "a\r\nb", "\x00", "{{ v }}", "# c", "---\n", "a\n \n", "\u2028", "%", "- a", "\ufeffx"]
)


@given(st.lists(CONTENT, max_size=3), st.lists(CONTENT, max_size=3))
def test_contents_and_commands_arrive_as_they_are(contents: list[str], commands: list[str]) -> None:
    files = tuple(File(path=f"/f{n}", content=c) for n, c in enumerate(contents))
    node = Node(role=Role.JOIN_WORKER, documents=("a: b\n",), files=files, pre_kubeadm_commands=tuple(commands))

    data = yaml.safe_load(cloudinit.render(node))

    assert [f["content"] for f in data["write_files"][: len(contents)]] == [clipped(c) for c in contents]
    assert data["runcmd"][:-1] == commands


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.sampled_from(["name", "passwd", "gecos", "groups", "shell", "sudo"]),
)
def test_fields_of_users_arrive_as_they_are(value: str, field: str) -> None:
    node = Node(role=Role.JOIN_WORKER, documents=("a: b\n",), users=(msgspec.convert({"name": "u", field: value}, User),))

    assert yaml.safe_load(cloudinit.render(node))["users"][0][field] == value


def test_keys_are_in_the_order_that_the_spec_gives(a_full_node: MakeNode) -> None:
    for role in ROLES:
        keys = list(parsed(a_full_node(role, boot_commands=("b",))))
        assert keys == ["write_files", "bootcmd", "runcmd", "ntp", "users", "disk_setup", "fs_setup", "mounts"]


def test_explicit_false_is_printed(a_node: MakeNode) -> None:
    data = parsed(
        a_node(
            users=(User(name="u", inactive=False, lock_password=False),),
            ntp=NTP(enabled=False),
            files=(File(path="/a", append=False, content="x"),),
        )
    )

    assert data["users"] == [{"name": "u", "inactive": False, "lock_passwd": False}]
    assert data["ntp"] == {"enabled": False, "servers": None}
    assert data["write_files"][0]["append"] is False


# ------------------------------------------------------------------------------------- judged by others

CLOUD_INIT = shutil.which("cloud-init")


@pytest.mark.skipif(CLOUD_INIT is None, reason="cloud-init is not installed: see tests/README.md")
@pytest.mark.parametrize("role", ROLES)
def test_cloud_init_accepts_our_config(a_full_node: MakeNode, role: Role, written: Callable[[bytes], Path]) -> None:
    data = cloudinit.render(a_full_node(role, boot_commands=("echo boot",)))
    # its schema check does not evaluate templates, so that line goes
    path = written(data.replace(b"## template: jinja\n", b"", 1))

    done = subprocess.run([str(CLOUD_INIT), "schema", "--config-file", str(path)], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid" in done.stdout


@pytest.mark.skipif(CLOUD_INIT is None, reason="cloud-init is not installed: see tests/README.md")
def test_cloud_init_evaluates_only_the_users_own_text(a_full_node: MakeNode, tmp_path: Path) -> None:
    node = a_full_node(
        Role.JOIN_WORKER,
        files=(File(path="/a", content="name={{ ds.meta_data.hostname }}\n"), File(path="/b", content="  $x # {not} 'jinja' \\n\n")),
        pre_kubeadm_commands=('hostnamectl set-hostname "{{ ds.meta_data.hostname }}"', "printf \"%s\\n\" 'a'"),
    )
    (tmp_path / "user-data").write_bytes(cloudinit.render(node))
    (tmp_path / "instance.json").write_text('{"ds": {"meta_data": {"hostname": "h1"}}}')

    done = subprocess.run(
        [str(CLOUD_INIT), "devel", "render", "-i", str(tmp_path / "instance.json"), str(tmp_path / "user-data")],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    before, after = parsed(node), yaml.safe_load(done.stdout)
    assert [f["content"] for f in after["write_files"][:2]] == ["name=h1\n", before["write_files"][1]["content"]]
    assert after["runcmd"] == ['hostnamectl set-hostname "h1"', *before["runcmd"][1:]]
    assert {k: v for k, v in after.items() if k not in ("write_files", "runcmd")} == {
        k: v for k, v in before.items() if k not in ("write_files", "runcmd")
    }


@pytest.mark.parametrize("role", ROLES)
def test_bash_can_parse_every_command(a_full_node: MakeNode, role: Role, written: Callable[[str], Path]) -> None:
    commands = parsed(a_full_node(role))["runcmd"]

    for command in commands:
        done = subprocess.run(["bash", "-n", str(written(command))], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------------- speed


def test_rendering_a_worker_costs_less_than_reading_it_back(a_full_node: MakeNode) -> None:
    def render() -> bytes:
        return cloudinit.render(replace(a_full_node(Role.JOIN_WORKER), documents=(marshal(join_document(None, "v1beta4")),)))

    def cost(act: Callable[[], object]) -> float:
        """CPU seconds, the best of five: side by side in one run, because the machine's speed is anybody's guess."""
        spent = []
        for _ in range(5):
            started = time.process_time()
            for _ in range(5):
                act()
            spent.append(time.process_time() - started)
        return min(spent)

    text = render()
    assert cost(render) < cost(lambda: yaml.load(text, yaml.SafeLoader))


def test_documents_of_init_stand_one_after_the_other(a_node: MakeNode) -> None:
    content = {f["path"]: f["content"] for f in parsed(a_node(Role.INIT))["write_files"]}[cloudinit.CONFIG_PATH[Role.INIT]]

    cluster = cluster_document(None, AdditionalData(cluster_name="c1"), "v1beta4")
    assert list(yaml.safe_load_all(content)) == [cluster, init_document(None, "v1beta4")]
    assert content.startswith("---\n")
