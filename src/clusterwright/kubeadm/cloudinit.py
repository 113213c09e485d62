"""cloud-config for a new node.

The layout is that of other kubeadm bootstrap providers, byte for byte where tools look at it: header, key order, the kubeadm command.
Everything after the header is one YAML document, written without a YAML library because cloud-init evaluates the Jinja of users' content
before it parses the YAML: their text must stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterwright.api.machine_setup import NTP, DiskSetup, File, Filesystem, Partition, User
from clusterwright.kubeadm.node import SENTINEL, Node, Role, clipped
from clusterwright.kubeadm.presence import defined
from clusterwright.kubeadm.yamltext import is_printable, quoted, scalar

HEADER = "## template: jinja\n#cloud-config\n"
CONFIG_PATH = {
    Role.INIT: "/run/kubeadm/kubeadm.yaml",
    Role.JOIN_CONTROL_PLANE: "/run/kubeadm/kubeadm-join-config.yaml",
    Role.JOIN_WORKER: "/run/kubeadm/kubeadm-join-config.yaml",
}
PARTITION_TYPES = {
    "Linux": "83", "LinuxSwap": "82", "LinuxRAID": "fd", "LVM": "8e", "Fat32": "0c", "NTFS": "07", "LinuxExtended": "85",
}  # fmt: skip
_PLACEHOLDER = File(
    path="/run/cluster-api/placeholder",
    owner="root:root",
    permissions="0640",
    content="This file is here so that its directory exists before kubeadm runs, whatever the operating system.",
)


def render(node: Node) -> bytes:
    """Return the cloud-config of a node."""
    lines = ["write_files:"]
    for file in (*node.files, _kubeadm_file(node), _PLACEHOLDER):
        lines += _file(file)
    if node.boot_commands:
        lines += ["bootcmd:", *_commands(node.boot_commands)]
    lines += ["runcmd:", *_commands(node.pre_kubeadm_commands), _kubeadm_command(node), *_commands(node.post_kubeadm_commands)]
    if (ntp := defined(node.ntp)) is not None:
        lines += _ntp(ntp)
    if node.users:
        lines.append("users:")
        for user in node.users:
            lines += _user(user)
    if (disks := defined(node.disk_setup)) is not None:
        lines += _disk_setup(disks)
    if node.mounts:
        lines.append("mounts:")
        for mount in node.mounts:
            lines += _mount(mount)
    return (HEADER + "\n" + "\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _kubeadm_file(node: Node) -> File:
    if node.role is Role.JOIN_CONTROL_PLANE:
        content = node.documents[0]
    else:
        content = "---\n" + "\n---\n".join(node.documents)
    return File(path=CONFIG_PATH[node.role], owner="root:root", permissions="0640", content=content)


def _kubeadm_command(node: Node) -> str:
    command = f"kubeadm {node.role.verb} --config {CONFIG_PATH[node.role]} {node.verbosity_flag} && echo success > {SENTINEL}"
    return f"  - '{command}'" if node.role is Role.INIT else f"  - {command}"


def _commands(commands: Iterable[str]) -> list[str]:
    return [f"  - {quoted(command)}" for command in commands]


def _file(file: File) -> list[str]:
    lines = [f"-   path: {scalar(file.path)}"]
    if file.encoding:
        lines.append(f'    encoding: "{file.encoding}"')
    if file.owner:
        lines.append(f"    owner: {scalar(file.owner)}")
    if file.permissions:
        lines.append(f"    permissions: {_single_quoted(file.permissions)}")
    if file.append is not None:
        lines.append(f"    append: {_bool(file.append)}")
    lines += _content(file.content)
    return lines


def _content(content: str) -> list[str]:
    """Return a literal block if that keeps the text, else a quoted scalar; either way the node gets one newline at the end."""
    if not is_printable(content):
        return [f"    content: {quoted(clipped(content))}"]
    first = next((line for line in content.split("\n") if line), "")
    indicator = "2" if first[:1] in (" ", "\t") else ""  # the block's indentation cannot be guessed from such a line
    return [f"    content: |{indicator}", *(f"      {line}" for line in content.split("\n"))]


def _single_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if is_printable(text) and "\n" not in text else quoted(text)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _ntp(ntp: NTP) -> list[str]:
    lines = ["ntp:"]
    if ntp.enabled is not None:
        lines.append(f"  enabled: {_bool(ntp.enabled)}")
    return [*lines, "  servers:", *(f"    - {scalar(server)}" for server in ntp.servers)]


def _user(user: User) -> list[str]:
    fields: list[tuple[str, str | bool | None]] = [
        ("name", user.name),
        ("passwd", user.passwd or None),
        ("gecos", user.gecos or None),
        ("groups", user.groups or None),
        ("homedir", user.home_dir or None),
        ("inactive", user.inactive),
        ("lock_passwd", user.lock_password),
        ("shell", user.shell or None),
        ("primary_group", user.primary_group or None),
        ("sudo", user.sudo or None),
    ]
    lines = [f"    {key}: {_bool(value) if isinstance(value, bool) else scalar(value)}" for key, value in fields if value is not None]
    lines[0] = "  - " + lines[0][4:]
    if user.ssh_authorized_keys:
        lines += ["    ssh_authorized_keys:", *(f"      - {scalar(key)}" for key in user.ssh_authorized_keys)]
    return lines


def _disk_setup(disks: DiskSetup) -> list[str]:
    lines = ["disk_setup:"]
    for partition in disks.partitions:
        lines += _partition(partition)
    lines.append("fs_setup:")
    for filesystem in disks.filesystems:
        lines += _filesystem(filesystem)
    return lines


def _partition(partition: Partition) -> list[str]:
    lines = [f"  {scalar(partition.device)}:"]
    if partition.table_type:
        lines.append(f"    table_type: {scalar(partition.table_type)}")
    if partition.disk_layout:
        lines.append("    layout:")
        for part in partition.disk_layout:
            # the codes stand unquoted, as cloud-init's own examples have them
            code = PARTITION_TYPES.get(part.partition_type, part.partition_type)
            lines.append(f"      - [{part.percentage}, {code}]" if code else f"      - {part.percentage}")
    else:
        lines.append(f"    layout: {_bool(bool(partition.layout))}")
    if partition.overwrite is not None:
        lines.append(f"    overwrite: {_bool(partition.overwrite)}")
    return lines


def _filesystem(filesystem: Filesystem) -> list[str]:
    lines = [
        f"  - label: {scalar(filesystem.label) if filesystem.label else ''}",
        f"    filesystem: {scalar(filesystem.filesystem)}",
        f"    device: {scalar(filesystem.device)}",
    ]
    if filesystem.partition:
        lines.append(f"    partition: {scalar(filesystem.partition)}")
    if filesystem.overwrite is not None:
        lines.append(f"    overwrite: {_bool(filesystem.overwrite)}")
    if filesystem.replace_fs:
        lines.append(f"    replace_fs: {scalar(filesystem.replace_fs)}")
    if filesystem.extra_opts:
        lines += ["    extra_opts:", *(f"      - {scalar(option)}" for option in filesystem.extra_opts)]
    return lines


def _mount(mount: Sequence[str]) -> list[str]:
    lines = [f"    - {scalar(element)}" for element in mount] or ["    []"]
    lines[0] = "  - " + lines[0][4:]
    return lines
