"""The description of a new node: the input of both renderers, with all references to Secrets resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.machine_setup import NTP, ContainerLinuxConfig, DiskSetup, File, User


class RenderError(ValueError):
    """The spec cannot be rendered; the text names the place, never the content."""


class Role(Enum):
    """The way a node enters the cluster."""

    INIT = "init"
    JOIN_CONTROL_PLANE = "join-control-plane"
    JOIN_WORKER = "join-worker"

    @property
    def verb(self) -> str:
        """The kubeadm command."""
        return "init" if self is Role.INIT else "join"


SENTINEL = "/run/cluster-api/bootstrap-success.complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node to bootstrap.

    `files` are all files in order: certificates, those of the spec, the discovery kubeconfig. `documents` are kubeadm's, each
    ending with a newline: ClusterConfiguration and InitConfiguration, or JoinConfiguration alone.
    """

    role: Role
    documents: tuple[str, ...] = field(repr=False)
    files: tuple[File, ...] = field(default=(), repr=False)
    users: tuple[User, ...] = field(default=(), repr=False)
    boot_commands: tuple[str, ...] = field(default=(), repr=False)
    pre_kubeadm_commands: tuple[str, ...] = field(default=(), repr=False)
    post_kubeadm_commands: tuple[str, ...] = field(default=(), repr=False)
    ntp: NTP | None = None
    disk_setup: DiskSetup | None = None
    mounts: tuple[tuple[str, ...], ...] = ()
    verbosity: int | None = None
    ignition: ContainerLinuxConfig | None = None

    @staticmethod
    def of(spec: KubeadmConfigSpec, role: Role, *, documents: tuple[str, ...], files: tuple[File, ...], users: tuple[User, ...]) -> Node:
        """Return the node of a spec; `files` and `users` are the resolved ones."""
        return Node(
            role=role,
            documents=documents,
            files=files,
            users=users,
            boot_commands=spec.boot_commands,
            pre_kubeadm_commands=spec.pre_kubeadm_commands,
            post_kubeadm_commands=spec.post_kubeadm_commands,
            ntp=spec.ntp,
            disk_setup=spec.disk_setup,
            mounts=spec.mounts,
            verbosity=spec.verbosity,
            ignition=spec.ignition.container_linux_config if spec.ignition else None,
        )

    @property
    def verbosity_flag(self) -> str:
        """Return `--v <n>`, or nothing."""
        return "" if self.verbosity is None else f"--v {self.verbosity}"


def clipped(content: str) -> str:
    """Return the content as a YAML literal block keeps it: with exactly one newline at its end, unless there are only newlines."""
    body = content.rstrip("\n")
    return body + "\n" if body else ""
