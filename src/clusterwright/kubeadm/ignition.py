"""Ignition 2.3 for a new node: the same content as cloud-config, for operating systems without cloud-init."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass

import msgspec

from clusterwright.api.machine_setup import File, Filesystem, Partition, User
from clusterwright.api.meta import Json
from clusterwright.kubeadm.container_linux import ContainerLinuxConfigError, appended, data_url, empty_config, transpile
from clusterwright.kubeadm.ignition_schema import Finding, validate
from clusterwright.kubeadm.node import SENTINEL, Node, RenderError, clipped

CONFIG_PATH = "/etc/kubeadm.yml"
SCRIPT_PATH = "/etc/kubeadm.sh"
_DEFAULT_MODE = 0o644
_SSHD = """\
# Use most defaults for sshd configuration.
Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no # handled by PAM
PrintMotd no # handled by PAM

Match User {users}
  PasswordAuthentication yes
"""
_NTP_RESTRICTIONS = """\
restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
"""
_KUBEADM_UNIT = f"""\
[Unit]
Description=kubeadm
# runs once: the script moves the file away when it has succeeded
ConditionPathExists={CONFIG_PATH}
After=network.target
[Service]
Type=oneshot
ExecStart=/bin/bash {SCRIPT_PATH}
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The config as compact JSON, and the warnings about the user's addition to it."""

    data: bytes
    findings: tuple[Finding, ...] = ()


def render(node: Node) -> Rendered:
    """Return the Ignition config of a node. Raises RenderError."""
    config = _generated(node)
    problems = tuple(validate(config))
    if problems:
        raise RenderError("building Ignition config: converting generated CLC to Ignition: " + "; ".join(map(str, problems)))
    findings: tuple[Finding, ...] = ()
    if node.ignition is not None and node.ignition.additional_config:
        try:
            addition, findings = transpile(node.ignition.additional_config, strict=bool(node.ignition.strict))
        except ContainerLinuxConfigError as error:
            raise RenderError(f"building Ignition config: converting additional CLC to Ignition: {error}") from None
        config = appended(config, addition)
    return Rendered(msgspec.json.encode(config), findings)


def _generated(node: Node) -> Json:
    config = empty_config()
    if node.users:
        config["passwd"] = {"users": [_user(user) for user in node.users]}
    config["storage"] = {"files": _files(node)}
    if node.disk_setup is not None and node.disk_setup.partitions:
        config["storage"]["disks"] = [_disk(p) for p in node.disk_setup.partitions]
    if node.disk_setup is not None and node.disk_setup.filesystems:
        config["storage"]["filesystems"] = [_filesystem(f) for f in node.disk_setup.filesystems]
    config["systemd"] = {"units": _units(node)}
    return config


# -------------------------------------------------------------------------------------------------- files


def _files(node: Node) -> list[Json]:
    files = [_text_file(f"/etc/sudoers.d/{user.name}", 0o600, f"{user.name} {user.sudo}\n") for user in node.users if user.sudo]
    unlocked = [user.name for user in node.users if user.lock_password is False]
    if unlocked:
        files.append(_text_file("/etc/ssh/sshd_config", 0o600, _SSHD.format(users=",".join(unlocked))))
    files += [_file(file) for file in node.files]
    files.append(_text_file(SCRIPT_PATH, 0o700, _script(node)))
    files.append(_text_file(CONFIG_PATH, 0o600, "---\n" + "\n---\n".join(node.documents)))
    if node.ntp is not None and node.ntp.enabled and node.ntp.servers:
        servers = "".join(f"server {server}\n" for server in node.ntp.servers)
        files.append(_text_file("/etc/ntp.conf", 0o644, f"{servers}\n{_NTP_RESTRICTIONS}"))
    return files


def _text_file(path: str, mode: int, content: str) -> Json:
    return _storage_file(path, mode, clipped(content).encode("utf-8", "surrogateescape"))


def _storage_file(path: str, mode: int, content: bytes) -> Json:
    return {"filesystem": "root", "path": path, "contents": {"source": data_url(content), "verification": {}}, "mode": mode}


def _file(file: File) -> Json:
    out = _storage_file(file.path, _mode(file), _content(file))
    user, _, group = file.owner.partition(":")
    group = group.partition(":")[0]
    for key, name in (("user", user.strip()), ("group", group.strip())):
        if name:
            out[key] = {"name": name}
    return out


_OCTAL = re.compile(r"(?:0o?)?[0-7]+")


def _mode(file: File) -> int:
    if not file.permissions:
        return _DEFAULT_MODE
    if _OCTAL.fullmatch(file.permissions) is None:
        raise RenderError(f"rendering CLC configuration: permissions of {file.path} are not an octal number")
    return int(file.permissions.removeprefix("0o"), 8)


def _content(file: File) -> bytes:
    if file.encoding != "base64":
        return clipped(file.content).encode("utf-8", "surrogateescape")
    try:
        return b64decode("".join(file.content.split()), validate=True)
    except (binascii.Error, ValueError):
        raise RenderError(f"rendering CLC configuration: content of {file.path} is not base64") from None


def _script(node: Node) -> str:
    lines = ["#!/bin/bash", "set -e", "", *node.pre_kubeadm_commands, ""]
    lines.append(f"kubeadm {node.role.verb} --config {CONFIG_PATH} {node.verbosity_flag}")
    lines.append(f"mkdir -p /run/cluster-api && echo success > {SENTINEL}")
    lines += [f"mv {CONFIG_PATH} /tmp/", "", *node.post_kubeadm_commands]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------- users, disks and units


def _user(user: User) -> Json:
    out: Json = {"name": user.name}
    fields = {"gecos": user.gecos, "homeDir": user.home_dir, "primaryGroup": user.primary_group, "shell": user.shell}
    out |= {key: value for key, value in fields.items() if value}
    if user.groups:
        out["groups"] = user.groups.split(", ")
    if user.passwd:
        out["passwordHash"] = user.passwd
    if user.ssh_authorized_keys:
        out["sshAuthorizedKeys"] = list(user.ssh_authorized_keys)
    return out


def _disk(partition: Partition) -> Json:
    out: Json = {"device": partition.device}
    if partition.layout:
        out["partitions"] = [{}]  # one that fills the device
    if partition.overwrite:
        out["wipeTable"] = True
    return out


def _filesystem(filesystem: Filesystem) -> Json:
    mount: Json = {"device": filesystem.device, "format": filesystem.filesystem}
    if filesystem.label:
        mount["label"] = filesystem.label
    if filesystem.overwrite:
        mount["wipeFilesystem"] = True
    if filesystem.extra_opts:
        mount["options"] = list(filesystem.extra_opts)
    return ({"name": filesystem.label} if filesystem.label else {}) | {"mount": mount}


def _units(node: Node) -> list[Json]:
    units: list[Json] = [{"name": "kubeadm.service", "enabled": True, "contents": _KUBEADM_UNIT}]
    if node.ntp is not None and node.ntp.enabled:
        units.append({"name": "ntpd.service", "enabled": True})
    return [*units, *(_mount_unit(node, mount) for mount in node.mounts)]


def _mount_unit(node: Node, mount: tuple[str, ...]) -> Json:
    if len(mount) < 2:
        raise RenderError("rendering CLC configuration: a mount needs at least a label and a mount point")
    label, point, *options = mount
    filesystems = node.disk_setup.filesystems if node.disk_setup else ()
    device = next((f.device for f in filesystems if f.label == label), label)
    contents = (
        f"[Unit]\nDescription = Mount {label}\n\n[Mount]\nWhat={device}\nWhere={point}\nOptions={','.join(options)}\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    return {"name": point.replace("/", "-").removeprefix("-") + ".mount", "enabled": True, "contents": contents}
