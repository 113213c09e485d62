"""Find how a joining node reaches its cluster: fill gaps in the spec from the Cluster and its CA. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from clusterwright.api.bootstrap import (
    BootstrapTokenDiscovery,
    Discovery,
    FileDiscovery,
    JoinConfiguration,
    KubeadmConfigSpec,
    KubeConfigCluster,
)
from clusterwright.api.copying import replace
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, discovery_hashes
from clusterwright.kubeadm.presence import defined
from clusterwright.kubeadm.tokens import DEFAULT_TTL


@dataclass(frozen=True, slots=True)
class Filled:
    """The spec with its gaps filled, and what is still missing or wrong. `ttl` is the lifetime of bootstrap tokens."""

    spec: KubeadmConfigSpec
    needs_endpoint: bool = False
    needs_token: bool = False
    by_file: bool = False
    misplaced: bool = False
    """Whether a worker has settings that only control-plane nodes may have; then nothing was filled in."""
    ttl: timedelta = DEFAULT_TTL


def fill(spec: KubeadmConfigSpec, endpoint: str, ca: KeyPair | None, *, is_worker: bool = False) -> Filled:
    """Fill the gaps of the discovery; `endpoint` is `host:port` or empty. Raises CertificateError."""
    if is_worker and spec.join_configuration is not None and spec.join_configuration.control_plane is not None:
        return Filled(spec, misplaced=True)
    discovery = discovery_of(spec)
    file = defined(discovery.file)
    return _fill_file(spec, file, endpoint, ca) if file is not None else _fill_token(spec, discovery, endpoint, ca)


def discovery_of(spec: KubeadmConfigSpec) -> Discovery:
    """Return the discovery section, which may be empty."""
    return (spec.join_configuration.discovery if spec.join_configuration else None) or Discovery()


def with_discovery(spec: KubeadmConfigSpec, discovery: Discovery) -> KubeadmConfigSpec:
    """Return the spec with another discovery section."""
    join = spec.join_configuration or JoinConfiguration()
    return replace(spec, join_configuration=replace(join, discovery=discovery))


def with_token(spec: KubeadmConfigSpec, token: str) -> KubeadmConfigSpec:
    """Return the spec with another token; nothing else changes."""
    discovery = discovery_of(spec)
    section = replace(discovery.bootstrap_token or BootstrapTokenDiscovery(), token=token)
    return with_discovery(spec, replace(discovery, bootstrap_token=section))


def _fill_token(spec: KubeadmConfigSpec, discovery: Discovery, endpoint: str, ca: KeyPair | None) -> Filled:
    section = discovery.bootstrap_token or BootstrapTokenDiscovery()
    if not section.ca_cert_hashes:
        section = replace(section, ca_cert_hashes=discovery_hashes(_required(ca).certificate))
    if not section.api_server_endpoint:
        section = replace(section, api_server_endpoint=endpoint)
    if section.unsafe_skip_ca_verification is None and not section.ca_cert_hashes:
        section = replace(section, unsafe_skip_ca_verification=True)
    filled = with_discovery(spec, replace(discovery, bootstrap_token=section))
    return Filled(filled, needs_endpoint=not section.api_server_endpoint, needs_token=not section.token)


def _fill_file(spec: KubeadmConfigSpec, file: FileDiscovery, endpoint: str, ca: KeyPair | None) -> Filled:
    kubeconfig = defined(file.kube_config)
    if kubeconfig is None:
        return Filled(spec, by_file=True)  # the user brings the file
    cluster = kubeconfig.cluster or KubeConfigCluster()
    if not cluster.server:
        if not endpoint:
            return Filled(spec, needs_endpoint=True, by_file=True)
        cluster = replace(cluster, server=f"https://{endpoint}")
    if not cluster.certificate_authority_data:
        cluster = replace(cluster, certificate_authority_data=_required(ca).certificate)
    discovery = replace(discovery_of(spec), file=replace(file, kube_config=replace(kubeconfig, cluster=cluster)))
    return Filled(with_discovery(spec, discovery), by_file=True)


def _required(ca: KeyPair | None) -> KeyPair:
    if ca is None:
        raise CertificateError("failed to retrieve Cluster CA")
    return ca
