"""How machines boot data that are not kubeadm's: the data are taken as they are, and the Secrets of the cluster say what comes up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

UNIDENTIFIED: Final = "inmemory.clusterwright.dev/no-provider-id"
"""The annotation of a machine whose Node gets its providerID from another provider."""
METADATA: Final = "inmemory.clusterwright.dev/meta-data"
"""The annotation with the Secret of a machine's metadata (key `metaData`), which its bootstrap data may name."""
HOST: Final = "inmemory.clusterwright.dev/host"
"""The annotation with the metadata that the machine's host gives by itself, as JSON."""
BOOT: Final = "inmemory.clusterwright.dev/boot"
"""The annotation of a machine that chooses how its bootstrap data are booted: `kubeadm` or `as-is`."""
AS_IS, KUBEADM = "as-is", "kubeadm"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The traces that a Kubernetes distribution leaves in its cluster, as far as providers look for them."""

    name: str
    role: str = ""
    """The value of the label `node-role.kubernetes.io/control-plane`."""
    roles: tuple[str, ...] = ()
    """Further roles of control plane nodes."""
    serving_secret: str = ""
    """The Secret in kube-system with the serving certificate of the supervisor."""
    removal: tuple[str, str] = ("", "")
    """Annotations of a Node: the first asks for the removal of its etcd member, the second confirms it with the name."""

    def labels(self) -> dict[str, str]:
        """Return the labels of a control plane node."""
        return {f"node-role.kubernetes.io/{role}": self.role for role in ("control-plane", *self.roles)}


PLAIN: Final = Distribution("plain")
_K3S_ROLES: Final = ("etcd", "master")
_RKE2_REMOVAL: Final = ("etcd.rke2.cattle.io/remove", "etcd.rke2.cattle.io/removed-node-name")
_K3S_REMOVAL: Final = ("etcd.k3s.cattle.io/remove", "etcd.k3s.cattle.io/removed-node-name")
# fmt: off
_BY_CONFIG: Final[Mapping[str, Distribution]] = {
    "RKE2Config":          Distribution("rke2", "true", _K3S_ROLES, "rke2-serving", _RKE2_REMOVAL),
    "KThreesConfig":       Distribution("k3s", "true", _K3S_ROLES, "k3s-serving", _K3S_REMOVAL),
    "K0sControllerConfig": Distribution("k0s", "true"),
    "K0sWorkerConfig":     Distribution("k0s", "true"),
    "TalosConfig":         Distribution("talos"),
}
# fmt: on
CLIENT_AUTHORITIES: Final = ("cca",)
"""Further authorities of client certificates, as suffixes of Secrets of the cluster: RKE2 and K3s have one of their own."""


REMOVALS: Final = tuple(one.removal for one in _BY_CONFIG.values() if one.removal[0])
"""The annotations by which etcd members are removed, with those that confirm it."""


def distribution(config: str, value: bytes, chosen: str = "") -> Distribution | None:
    """Return the distribution of bootstrap data; None for kubeadm's, which are checked as kubeadm does.

    `config`: the kind of the bootstrap config, empty for data that a user wrote: they are kubeadm's if they mention it.
    `chosen`: the annotation.
    """
    if chosen in {AS_IS, KUBEADM}:
        return None if chosen == KUBEADM else _BY_CONFIG.get(config, PLAIN)
    if config:
        return None if config == "KubeadmConfig" else _BY_CONFIG.get(config, PLAIN)
    return None if b"kubeadm" in value else PLAIN
