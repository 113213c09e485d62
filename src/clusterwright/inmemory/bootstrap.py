"""Parse bootstrap data as a booting machine does: files and commands from cloud-init or Ignition. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from clusterwright.api import yamlreader
from clusterwright.kubeadm import cloudconfig, ignitionconfig

_KUBEADM = re.compile(r"\bkubeadm (init|join) --config (\S+)")
SENTINEL = "/run/cluster-api/bootstrap-success.complete"


class BootFailure(Exception):
    """Booting ended before the node joined; the text is that of the machine's console, without secrets.

    `is_transient`: kubeadm keeps trying, because its missing prerequisite may still appear.
    """

    def __init__(self, text: str, *, is_transient: bool = False) -> None:
        super().__init__(text)
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True)
class BootstrapData:
    """The parsed user data of a machine."""

    files: Mapping[str, bytes]
    command: Literal["init", "join"]
    documents: tuple[Mapping[str, Any], ...]
    """The kubeadm documents, parsed."""

    def document(self, kind: str) -> Mapping[str, Any]:
        """Return the kubeadm document of a kind; fail the boot if it is missing."""
        for document in self.documents:
            if document.get("kind") == kind:
                return document
        raise BootFailure(f"kubeadm {self.command}: the configuration holds no {kind}")


def metadata(value: bytes) -> Mapping[str, str]:
    """Return the texts of a machine's metadata in YAML; raises BootFailure."""
    try:
        found = yamlreader.load(value.decode())
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        raise BootFailure("cloud-init: the metadata are not YAML") from None
    return {str(name): str(one) for name, one in found.items()} if isinstance(found, dict) else {}


def parse(value: bytes, format: str, hostname: str = "", known: Mapping[str, str] | None = None) -> BootstrapData:
    """Parse bootstrap data of the given format (`cloud-config` or `ignition`; empty means cloud-config) on the machine `hostname`.

    `known`: the machine's metadata, which a cloud-config may name.
    """
    if format in {"", "cloud-config"}:
        files, commands = _cloud_config(value, hostname, known or {})
    elif format == "ignition":
        files, commands = _ignition(value)
    else:
        raise BootFailure(f"user data has the unknown format {format!r}")
    for command in commands:
        if found := _KUBEADM.search(command):
            verb: Literal["init", "join"] = "init" if found[1] == "init" else "join"
            if SENTINEL not in "\n".join(commands):
                raise BootFailure(f"kubeadm {verb}: no command writes {SENTINEL}")
            return BootstrapData(files, verb, _documents(files, found[2], verb))
    raise BootFailure("user data runs neither kubeadm init nor kubeadm join")


def _documents(files: Mapping[str, bytes], path: str, verb: str) -> tuple[Mapping[str, Any], ...]:
    if path not in files:
        raise BootFailure(f"kubeadm {verb}: open {path}: no such file or directory")
    try:
        documents = [d for d in yamlreader.load_all(files[path].decode()) if d is not None]
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        raise BootFailure(f"kubeadm {verb}: {path} is not YAML") from None  # the cause may quote a token
    for document in documents:
        if not isinstance(document, dict) or not str(document.get("apiVersion", "")).startswith("kubeadm.k8s.io/"):
            raise BootFailure(f"kubeadm {verb}: {path} holds a document that is not a kubeadm configuration")
    return tuple(documents)


def _cloud_config(value: bytes, hostname: str, known: Mapping[str, str]) -> tuple[dict[str, bytes], list[str]]:
    try:
        config = cloudconfig.read(value, hostname, known)
    except cloudconfig.BadUserData as error:
        raise BootFailure(str(error)) from None
    files: dict[str, bytes] = {}
    for file in config.files:
        files[file.path] = files.get(file.path, b"") + file.content if file.append else file.content
    return files, list(config.commands)


def _ignition(value: bytes) -> tuple[dict[str, bytes], list[str]]:
    try:
        config = json.loads(value)
    except (ValueError, RecursionError):
        raise BootFailure("ignition: the configuration is not JSON") from None
    try:
        return _provisioned(config)
    except (AttributeError, TypeError):
        raise BootFailure("ignition: the configuration is malformed") from None


def _provisioned(config: Any) -> tuple[dict[str, bytes], list[str]]:
    version = str((config.get("ignition") or {}).get("version", "")) if isinstance(config, dict) else ""
    if not version.startswith("2."):
        raise BootFailure(f"ignition: unsupported configuration version {version!r}")
    files: dict[str, bytes] = {}
    for entry in (config.get("storage") or {}).get("files") or []:
        path = str(entry.get("path", ""))
        content = _fetched(path, entry.get("contents") or {})
        files[path] = files.get(path, b"") + content if entry.get("append") else content
    commands: list[str] = []
    for unit in (config.get("systemd") or {}).get("units") or []:
        if unit.get("enabled", unit.get("enable")):
            commands += _started(unit, files)
    return files, commands


def _fetched(path: str, contents: Mapping[str, Any]) -> bytes:
    try:
        return ignitionconfig.fetched(path, contents)
    except cloudconfig.BadUserData as error:
        raise BootFailure(str(error)) from None


_SHELLS = frozenset({"/bin/bash", "/bin/sh"})


def _started(unit: Mapping[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """Return the lines that a unit runs: its command, or the script in it."""
    lines: list[str] = []
    for line in str(unit.get("contents", "")).splitlines():
        command = line.strip().removeprefix("ExecStart=")
        if not line.strip().startswith("ExecStart=") or not command:
            continue
        words = command.split()
        program = words[1] if words[0] in _SHELLS and len(words) > 1 else words[0]
        if program.startswith("/etc/") and program not in files:
            raise BootFailure(f"ignition: {unit.get('name')}: {program} does not exist")
        lines += files[program].decode("utf-8", "replace").splitlines() if program in files else [command]
    return lines
