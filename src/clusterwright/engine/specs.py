"""Descriptions of containers, and the JSON that creates them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mounted path of the container: a volume of the engine, or a path of the host."""

    target: str
    source: str = ""
    """The volume's name, or with `is_host_path` the host's path; empty: an unnamed volume, which is removed with the container."""
    is_host_path: bool = False
    is_read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortMapping:
    """A port of the container that the host opens."""

    container_port: int
    host_port: int = 0
    """The port of the host; 0: any free one."""
    host_address: str = "127.0.0.1"
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container to create."""

    name: str
    image: str
    labels: Mapping[str, str] = field(default_factory=dict)
    hostname: str = ""
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    is_privileged: bool = False
    has_host_cgroups: bool = False
    """Whether it sees the host's cgroups: systemd and kubelet need them on a host with cgroups of version 1."""
    restarts: bool = False
    """Whether the engine restarts it with the host, until it is stopped explicitly."""
    tmpfs: Sequence[str] = ()
    mounts: Sequence[Mount] = ()
    ports: Sequence[PortMapping] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Settings of the kernel for the container's own namespaces, at each of its starts."""


def creation(spec: Container) -> dict[str, Any]:
    """Return the request body that creates the container."""
    host: dict[str, Any] = {
        "Privileged": spec.is_privileged,
        "CgroupnsMode": "host" if spec.has_host_cgroups else "private",
        "RestartPolicy": {"Name": "unless-stopped" if spec.restarts else "no"},
        "Tmpfs": dict.fromkeys(spec.tmpfs, ""),
        "Mounts": [_mount(m) for m in spec.mounts],
        "PortBindings": {
            f"{p.container_port}/{p.protocol}": [{"HostIp": p.host_address, "HostPort": str(p.host_port) if p.host_port else ""}]
            for p in spec.ports
        },
    }
    if spec.sysctls:
        host["Sysctls"] = dict(spec.sysctls)
    if spec.is_privileged:
        host["SecurityOpt"] = ["seccomp=unconfined", "apparmor=unconfined"]
    body: dict[str, Any] = {
        "Image": spec.image,
        "Labels": dict(spec.labels),
        "Env": [f"{name}={value}" for name, value in spec.environment.items()],
        "ExposedPorts": {f"{p.container_port}/{p.protocol}": {} for p in spec.ports},
        "HostConfig": host,
    }
    if spec.hostname:
        body["Hostname"] = spec.hostname
    if spec.entrypoint:
        body["Entrypoint"] = list(spec.entrypoint)
    if spec.command:
        body["Cmd"] = list(spec.command)
    if spec.network:
        host["NetworkMode"] = spec.network
        body["NetworkingConfig"] = {"EndpointsConfig": {spec.network: {}}}
    return body


def _mount(mount: Mount) -> dict[str, Any]:
    kind = {"Type": "bind" if mount.is_host_path else "volume", "Target": mount.target, "ReadOnly": mount.is_read_only}
    return {**kind, "Source": mount.source} if mount.source else kind
