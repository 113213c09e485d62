"""Check bootstrap data as kubeadm and the kubelet do: a machine joins only with data that would let a real node join. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml
from cryptography import x509

from clusterwright.api import yamlreader
from clusterwright.api.kubeconfig import InvalidKubeconfig, data_of, read
from clusterwright.inmemory.bootstrap import BootFailure, BootstrapData
from clusterwright.inmemory.distributions import Distribution
from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import CertificateError, KeyPair
from clusterwright.kubeadm.versions import parse_version

_PKI = "/etc/kubernetes/pki"  # kubeadm's default certificatesDir
_KUBEADM_SINCE = {"kubeadm.k8s.io/v1beta3": (1, 22), "kubeadm.k8s.io/v1beta4": (1, 31)}
"""The first minor version of kubeadm that reads a version of its documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The facts about its cluster that a booting machine can observe."""

    endpoint: str
    """The host:port of the control plane."""
    is_serving: bool
    is_founded: bool = False
    """Whether kubeadm init has run, on any machine."""
    ca: bytes
    """The certificate authority of the control plane (`cluster-info`); empty before init."""
    find_token: Callable[[str], Mapping[str, str] | None]
    """Returns the decoded data of the bootstrap-token Secret of an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """The result of a successful boot."""

    founds: bool
    is_control_plane: bool
    ca: KeyPair | None = None
    etcd_ca: KeyPair | None = None
    service_account: KeyPair | None = None
    taints: tuple[Mapping[str, Any], ...] | None = None
    """The taints that the kubelet registers the Node with; None: kubeadm's default."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the kubelet registers the Node with."""
    cluster_configuration: str = ""
    """The ClusterConfiguration document as YAML, for the kubeadm-config ConfigMap."""


def boot(data: BootstrapData, seen: Neighbourhood, now: datetime, *, is_control_plane: bool, version: str = "") -> Boot:
    """Run the kubeadm of a Kubernetes version on the data; raises BootFailure if a real node would stop."""
    _check_versions(data, version)
    return _init(data, seen, now) if data.command == "init" else _join(data, seen, now, is_control_plane=is_control_plane)


def as_is(seen: Neighbourhood, distribution: Distribution, *, is_control_plane: bool, again: bool = False) -> Boot:
    """Return the boot result of data that are not kubeadm's: nothing of them is checked. Raises BootFailure while a worker must wait.

    `again`: the node has joined before, and registers again.
    """
    if not is_control_plane and not seen.is_serving and not again:
        raise BootFailure(f"the API server at {seen.endpoint} does not answer yet", is_transient=True)
    return Boot(founds=False, is_control_plane=is_control_plane, taints=(), labels=distribution.labels() if is_control_plane else {})


def reboot(data: BootstrapData) -> Boot:
    """Return the boot result of a node that has joined before and registers again, without any checks."""
    founds = data.command == "init"
    cluster = data.document("ClusterConfiguration") if founds else {}
    own = next((d for d in data.documents if d.get("kind") == ("InitConfiguration" if founds else "JoinConfiguration")), {})
    ca = data.files.get(f"{_certificates_dir(data)}/ca.crt", b"")
    return Boot(
        founds=founds,
        is_control_plane=founds or own.get("controlPlane") is not None,
        ca=KeyPair(ca, b"") if ca else None,
        taints=_taints(own),
        labels=_labels(own),
        cluster_configuration=_dumped(cluster) if founds else "",
    )


def api_server_port(data: BootstrapData) -> int:
    """Return the port of a machine's API server: its `localAPIEndpoint`, 6443 by default."""
    for document in data.documents:
        own = document.get("controlPlane") if document.get("kind") == "JoinConfiguration" else document
        endpoint = own.get("localAPIEndpoint") if isinstance(own, Mapping) else None
        port = endpoint.get("bindPort") if isinstance(endpoint, Mapping) else None
        if isinstance(port, int) and port:
            return port
    return 6443


def _init(data: BootstrapData, seen: Neighbourhood, now: datetime) -> Boot:
    cluster = data.document("ClusterConfiguration")
    own = next((d for d in data.documents if d.get("kind") == "InitConfiguration"), {})
    if seen.is_serving or seen.is_founded:
        raise BootFailure("kubeadm init: the cluster has been initialized before, by another machine")
    endpoint = str(cluster.get("controlPlaneEndpoint", ""))
    if endpoint and endpoint != seen.endpoint:
        raise BootFailure(f"kubeadm init: controlPlaneEndpoint {endpoint} is not the address of the load balancer ({seen.endpoint})")
    external = (cluster.get("etcd") or {}).get("external")
    for path in (str(external.get(name, "")) for name in ("caFile", "certFile", "keyFile")) if external else ():
        if path and not data.files.get(path):
            raise BootFailure(f"kubeadm init: etcd.external: {path}: no such file or directory")
    ca, etcd_ca, service_account = _control_plane_files(data, now, has_external_etcd=bool(external))
    return Boot(
        founds=True,
        is_control_plane=True,
        ca=ca,
        etcd_ca=etcd_ca,
        service_account=service_account,
        taints=_taints(own),
        labels=_labels(own),
        cluster_configuration=_dumped(cluster),
    )


def _join(data: BootstrapData, seen: Neighbourhood, now: datetime, *, is_control_plane: bool) -> Boot:
    join = data.document("JoinConfiguration")
    wants_control_plane = join.get("controlPlane") is not None
    if is_control_plane != wants_control_plane:
        raise BootFailure(
            "kubeadm join: a control-plane machine needs joinConfiguration.controlPlane"
            if is_control_plane
            else "kubeadm join: a worker must not have joinConfiguration.controlPlane"
        )
    discovery = join.get("discovery") or {}
    if discovery.get("file"):
        _check_discovery_file(data, str(discovery["file"].get("kubeConfigPath", "")), seen)
    else:
        _check_discovery_token(discovery.get("bootstrapToken") or {}, seen, now)
    if not is_control_plane:
        return Boot(founds=False, is_control_plane=False, taints=_taints(join), labels=_labels(join))
    ca, etcd_ca, service_account = _control_plane_files(data, now, has_external_etcd=False, may_lack_etcd=True)
    if _certificates(ca.certificate) != _certificates(seen.ca):
        raise BootFailure(f"kubeadm join: {_certificates_dir(data)}/ca.crt is not the certificate authority of the cluster")
    return Boot(
        founds=False,
        is_control_plane=True,
        ca=ca,
        etcd_ca=etcd_ca,
        service_account=service_account,
        taints=_taints(join),
        labels=_labels(join),
    )


def _taints(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...] | None:
    taints = (document.get("nodeRegistration") or {}).get("taints")
    return None if taints is None else tuple(taints)


def _labels(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of the kubelet's flag `node-labels`; v1beta3 has a map of arguments, v1beta4 a list."""
    arguments = (document.get("nodeRegistration") or {}).get("kubeletExtraArgs") or {}
    pairs = arguments.items() if isinstance(arguments, Mapping) else [(a.get("name"), a.get("value")) for a in arguments]
    text = ",".join(str(value) for name, value in pairs if name == "node-labels" and value)
    return {key: value for key, _, value in (item.strip().partition("=") for item in text.split(",")) if key}


def certificate_names(cluster_configuration: str) -> tuple[str, ...]:
    """Return the further names (`certSANs`) for the API server's certificate in a ClusterConfiguration."""
    try:
        cluster = yamlreader.load(cluster_configuration)
        return tuple(str(name) for name in (cluster.get("apiServer") or {}).get("certSANs") or ())
    except (yaml.YAMLError, AttributeError, TypeError):
        return ()


def _dumped(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=True)


def _check_versions(data: BootstrapData, version: str) -> None:
    try:
        installed = parse_version(version).release[:2] if version else None
    except ValueError:
        installed = None  # admission has let it pass; no package has such a version to compare
    for document in data.documents:
        group = str(document.get("apiVersion"))
        since = _KUBEADM_SINCE.get(group)
        if since is None or (installed is not None and installed < since):
            raise BootFailure(f"kubeadm {data.command}: no kind {document.get('kind')!r} is registered for {group!r}")


def _check_discovery_file(data: BootstrapData, path: str, seen: Neighbourhood) -> None:
    if path not in data.files:
        raise BootFailure(f"kubeadm join: discovery.file.kubeConfigPath: {path}: no such file or directory")
    try:
        cluster = next(iter(read(data.files[path]).clusters.values()))
        server, authority = str(cluster["server"]), data_of(cluster, "certificate-authority")
    except (InvalidKubeconfig, KeyError, StopIteration):
        raise BootFailure(f"kubeadm join: {path} is not a kubeconfig with a cluster") from None
    _check_endpoint(server.removeprefix("https://").rstrip("/"), seen)
    if authority and _certificates(authority) != _certificates(seen.ca):
        raise BootFailure("kubeadm join: x509: certificate signed by unknown authority")


def _check_discovery_token(discovery: Mapping[str, Any], seen: Neighbourhood, now: datetime) -> None:
    _check_endpoint(str(discovery.get("apiServerEndpoint", "")), seen)
    hashes = discovery.get("caCertHashes") or []
    if not hashes and not discovery.get("unsafeSkipCAVerification"):
        raise BootFailure("kubeadm join: discovery.bootstrapToken: set caCertHashes or unsafeSkipCAVerification")
    if hashes and not set(hashes) & set(certificates.discovery_hashes(seen.ca)):
        raise BootFailure(
            "kubeadm join: cluster CA found in cluster-info ConfigMap is invalid: none of the public keys matches caCertHashes"
        )
    token_id, _, token_secret = str(discovery.get("token", "")).partition(".")
    found = seen.find_token(token_id)
    if found is None:
        raise BootFailure(f"kubeadm join: couldn't validate the identity of the API Server: the token ID {token_id!r} is unknown there")
    if found.get("token-secret") != token_secret:
        raise BootFailure(f"kubeadm join: the token of ID {token_id!r} differs from the one in the cluster")
    if found.get("usage-bootstrap-authentication") != "true" or found.get("usage-bootstrap-signing") != "true":
        raise BootFailure(f"kubeadm join: the token of ID {token_id!r} may not be used for joining")
    expiration = found.get("expiration", "")
    try:
        expires = datetime.fromisoformat(expiration) if expiration else None
    except ValueError:
        raise BootFailure(f"kubeadm join: the expiration of the token of ID {token_id!r} cannot be read") from None
    if expires is not None and expires <= now:
        raise BootFailure(f"kubeadm join: the token of ID {token_id!r} has expired at {expiration}")


def _check_endpoint(endpoint: str, seen: Neighbourhood) -> None:
    if endpoint != seen.endpoint:
        raise BootFailure(f"kubeadm join: couldn't validate the identity of the API Server: dial tcp {endpoint}: connection refused")
    if not seen.is_serving:
        raise BootFailure(
            f"kubeadm join: couldn't validate the identity of the API Server: dial tcp {seen.endpoint}: connection refused",
            is_transient=True,
        )


def _control_plane_files(
    data: BootstrapData, now: datetime, *, has_external_etcd: bool, may_lack_etcd: bool = False
) -> tuple[KeyPair, KeyPair | None, KeyPair]:
    ca = _pair(data, "ca", now)
    _pair(data, "front-proxy-ca", now)
    service_account = _pair(data, "sa", now, suffix=".pub")
    etcd_ca = None
    if not has_external_etcd and not (may_lack_etcd and f"{_certificates_dir(data)}/etcd/ca.key" not in data.files):
        etcd_ca = _pair(data, "etcd/ca", now)
    return ca, etcd_ca, service_account


def _certificates_dir(data: BootstrapData) -> str:
    """Return the folder of the certificates; for a joining node, only its files show a non-default folder."""
    marker = "/front-proxy-ca.crt"
    return next((path.removesuffix(marker) for path in data.files if path.endswith(marker)), _PKI)


def _pair(data: BootstrapData, name: str, now: datetime, suffix: str = ".crt") -> KeyPair:
    folder = _certificates_dir(data)
    public, private = f"{folder}/{name}{suffix}", f"{folder}/{name}.key"
    for path in (public, private):
        if not data.files.get(path):
            raise BootFailure(f"kubeadm {data.command}: {path}: no such file or directory")
    pair = KeyPair(data.files[public], data.files[private])
    try:
        key = certificates.decode_private_key(pair.key)
        if suffix == ".crt":
            certificate = certificates.decode_certificate(pair.certificate)
            if certificate.public_key() != key.public_key():
                raise BootFailure(f"kubeadm {data.command}: {private} is not the key of {public}")
            if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
                raise BootFailure(f"kubeadm {data.command}: {public} has expired or is not yet valid")
        elif certificates.encode_public_key(key.public_key()).strip() != pair.certificate.strip():
            raise BootFailure(f"kubeadm {data.command}: {private} is not the key of {public}")
    except CertificateError as error:
        raise BootFailure(f"kubeadm {data.command}: {public} and {private} cannot be read: {error}") from error
    except ValueError as error:
        raise BootFailure(f"kubeadm {data.command}: {public} and {private} cannot be read") from error
    return pair


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return list(certificates.decode_certificates(pem))
    except CertificateError:
        return []
