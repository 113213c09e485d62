"""An Ignition config, version 2 or 3, as the files, users and commands that it stands for on a machine that runs already. Pure.

Ignition runs before systemd starts. Here systemd runs: units are written and started instead, and a unit whose name is `kubeadm.service`
becomes its commands, so that their output and exit codes are known. Disks and filesystems are left alone.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.kubeadm.cloudconfig import BadUserData, CloudConfig, File, unpacked

BOOT_UNIT: Final = "kubeadm.service"
UNITS: Final = "/etc/systemd/system"
_UNREAD: Final = ("disks", "raid", "filesystems", "luks", "links")
_NAME = re.compile(r"[\w@:.\\-]+")


def read(value: bytes) -> CloudConfig:
    """Read an Ignition config; raises BadUserData."""
    try:
        config = json.loads(value)
    except (ValueError, RecursionError):
        raise BadUserData("ignition: the configuration is not JSON") from None
    try:
        return _read(config)
    except (AttributeError, TypeError):
        raise BadUserData("ignition: the configuration is malformed") from None


def _read(config: Any) -> CloudConfig:
    version = str((config.get("ignition") or {}).get("version", "")) if isinstance(config, dict) else ""
    if not version.startswith(("2.", "3.")):
        raise BadUserData(f"ignition: unsupported configuration version {version[:40]!r}; supported: 2 and 3")
    storage, units = config.get("storage") or {}, (config.get("systemd") or {}).get("units") or []
    folders = tuple(f"mkdir -p {shlex.quote(str(entry['path']))}" for entry in storage.get("directories") or () if entry.get("path"))
    return CloudConfig(
        files=(*(file for entry in storage.get("files") or () for file in _files(entry)), *_unit_files(units)),
        early_commands=folders,
        commands=tuple(_commands(units)),
        users=tuple(_user(user) for user in (config.get("passwd") or {}).get("users") or ()),
        unread=tuple(f"storage.{key}" for key in _UNREAD if storage.get(key)),
    )


def _files(entry: Mapping[str, Any]) -> Iterator[File]:
    """Yield the file of an entry, and what is appended to it. In version 2 `append` is a flag, in version 3 a list."""
    path, more = str(entry.get("path") or ""), entry.get("append")
    if not path.startswith("/"):
        raise BadUserData(f"ignition: the path {path[:80]!r} of a file is not absolute")
    mode = entry.get("mode")
    common = {"path": path, "permissions": f"{mode:04o}" if isinstance(mode, int) else "0644", "owner": _owner(entry)}
    if entry.get("contents") or not isinstance(more, list):
        yield File(**common, content=fetched(path, entry.get("contents") or {}), append=more is True)
    for piece in more if isinstance(more, list) else ():
        yield File(**common, content=fetched(path, piece), append=True)


def _owner(entry: Mapping[str, Any]) -> str:
    def name(key: str) -> str:
        one = entry.get(key) or {}
        return str(one.get("name") or one.get("id", "") or "root")

    return f"{name('user')}:{name('group')}"


def fetched(path: str, contents: Mapping[str, Any]) -> bytes:
    """Return the content of a file's source; raises BadUserData. Nothing is downloaded: only data URLs are read."""
    source = str(contents.get("source") or "")
    header, comma, payload = source.partition(",")
    if source and (not header.startswith("data:") or not comma):
        raise BadUserData(f"ignition: {path} has a source that cannot be fetched: only data URLs can be read here")
    raw = urllib.parse.unquote_to_bytes(payload)
    try:
        data = base64.b64decode(raw, validate=True) if header.endswith(";base64") else raw
        return unpacked(data) if contents.get("compression") == "gzip" else data
    except (ValueError, zlib.error):
        raise BadUserData(f"ignition: {path} cannot be decoded") from None


def _unit_files(units: Any) -> Iterator[File]:
    for unit in units:
        name = _unit_name(unit)
        if unit.get("contents"):
            yield File(path=f"{UNITS}/{name}", content=str(unit["contents"]).encode())
        for part in unit.get("dropins") or ():
            yield File(path=f"{UNITS}/{name}.d/{_unit_name(part)}", content=str(part.get("contents") or "").encode())


def _unit_name(unit: Mapping[str, Any]) -> str:
    name = str(unit.get("name") or "")
    if _NAME.fullmatch(name) is None:
        raise BadUserData(f"ignition: {name[:80]!r} is not the name of a unit")
    return name


def _commands(units: Any) -> Iterator[str]:
    if units:
        yield "! command -v systemctl >/dev/null || systemctl daemon-reload"
    boot: list[str] = []
    for unit in units:
        name = _unit_name(unit)
        if unit.get("mask"):
            yield f"systemctl mask {shlex.quote(name)}"
        elif unit.get("enabled", unit.get("enable")):
            if name == BOOT_UNIT:
                boot = re.findall(r"^\s*ExecStart=[-@:+!]*(\S.*)$", str(unit.get("contents") or ""), re.MULTILINE)
            else:
                yield f"systemctl enable --now {shlex.quote(name)} || echo 'the unit {name} cannot be started'"
    yield from boot


def _user(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user as cloud-config names it."""
    names = {"name": "name", "homeDir": "homedir", "shell": "shell", "passwordHash": "passwd", "sshAuthorizedKeys": "ssh_authorized_keys"}
    found: dict[str, Any] = {ours: user[theirs] for theirs, ours in names.items() if user.get(theirs)}
    groups = user.get("groups")
    return {**found, "groups": list(map(str, groups))} if isinstance(groups, list) and groups else found
