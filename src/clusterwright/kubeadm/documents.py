"""kubeadm's own configuration documents, written from the spec and read back from a cluster.

Two versions are in use: v1beta3 has maps of arguments and few timeouts, v1beta4 has lists. Fields that a version lacks are dropped. Keys
that Go's encoder always writes are always there, so that a document compares equal to kubeadm's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
import yaml

from clusterwright.api import yamlreader
from clusterwright.api.bootstrap import (
    APIServer,
    Arg,
    BootstrapToken,
    ClusterConfiguration,
    ControlPlaneComponent,
    Discovery,
    HostPathMount,
    InitConfiguration,
    JoinConfiguration,
    LocalAPIEndpoint,
    LocalEtcd,
    NodeRegistrationOptions,
)
from clusterwright.api.codec import to_json
from clusterwright.api.kubernetes import EnvVar, Taint
from clusterwright.api.meta import Json, Struct
from clusterwright.kubeadm import yamltext
from clusterwright.kubeadm.durations import format_duration, parse_seconds
from clusterwright.kubeadm.presence import defined
from clusterwright.kubeadm.versions import Version

GROUP = "kubeadm.k8s.io"
ApiVersion = Literal["v1beta3", "v1beta4"]
C = TypeVar("C", bound=Struct)


class UnsupportedVersion(ValueError):
    """There are no kubeadm documents for this Kubernetes version."""


class UnknownDocument(ValueError):
    """The text is not a kubeadm document of a known version and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditionalData:
    """Values for kubeadm for which the spec has no field."""

    kubernetes_version: str = ""
    cluster_name: str = ""
    dns_domain: str = ""
    service_subnet: str = ""
    pod_subnet: str = ""
    control_plane_component_health_check_seconds: int | None = None


def api_version_for(version: Version) -> ApiVersion:
    """Return the best version of kubeadm's API for a Kubernetes release. Raises UnsupportedVersion."""
    if version.release < (1, 22, 0):
        raise UnsupportedVersion("the bootstrap provider for kubeadm doesn't support Kubernetes version lower than v1.22.0")
    return "v1beta3" if version.release < (1, 31, 0) else "v1beta4"


def marshal(document: Mapping[str, Any]) -> str:
    """Return the document as YAML, ending with one newline."""
    return yamltext.dump(document)


# --------------------------------------------------------------------------------- from the spec to kubeadm


def cluster_document(config: ClusterConfiguration | None, data: AdditionalData, api: ApiVersion) -> Json:
    """Return the ClusterConfiguration; an empty one for an empty spec."""
    c = config or ClusterConfiguration()
    api_server = _component(c.api_server, api)
    if c.api_server is not None and c.api_server.cert_sans:
        api_server["certSANs"] = list(c.api_server.cert_sans)
    if api == "v1beta3" and data.control_plane_component_health_check_seconds is not None:
        api_server["timeoutForControlPlane"] = format_duration(data.control_plane_component_health_check_seconds)
    document = _head(api, "ClusterConfiguration") | {
        "apiServer": api_server,
        "controllerManager": _component(c.controller_manager, api),
        "scheduler": _component(c.scheduler, api),
        "dns": _strings(imageRepository=c.dns.image_repository, imageTag=c.dns.image_tag) if c.dns else {},
        "etcd": _etcd(c, api),
        "networking": _strings(dnsDomain=data.dns_domain, serviceSubnet=data.service_subnet, podSubnet=data.pod_subnet),
    }
    document |= _strings(
        clusterName=data.cluster_name,
        kubernetesVersion=data.kubernetes_version,
        controlPlaneEndpoint=c.control_plane_endpoint,
        certificatesDir=c.certificates_dir,
        imageRepository=c.image_repository,
    )
    if c.feature_gates:
        document["featureGates"] = dict(c.feature_gates)
    if api == "v1beta4":
        document["proxy"] = {}
        document |= _strings(encryptionAlgorithm=c.encryption_algorithm)
        if c.certificate_validity_period_days:
            document["certificateValidityPeriod"] = _days(c.certificate_validity_period_days)
        if c.ca_certificate_validity_period_days:
            document["caCertificateValidityPeriod"] = _days(c.ca_certificate_validity_period_days)
    return document


def init_document(config: InitConfiguration | None, api: ApiVersion) -> Json:
    """Return the InitConfiguration; an empty one for an empty spec."""
    c = config or InitConfiguration()
    document = _head(api, "InitConfiguration") | {
        "localAPIEndpoint": _endpoint(c.local_api_endpoint),
        "nodeRegistration": _node_registration(c.node_registration, api),
    }
    if c.bootstrap_tokens:
        document["bootstrapTokens"] = [_bootstrap_token(t) for t in c.bootstrap_tokens]
    return document | _shared(c, api)


def join_document(config: JoinConfiguration | None, api: ApiVersion) -> Json:
    """Return the JoinConfiguration; an empty one for an empty spec."""
    c = config or JoinConfiguration()
    discovery = _discovery(c.discovery)
    if api == "v1beta3" and c.timeouts is not None and c.timeouts.tls_bootstrap_seconds is not None:
        discovery["timeout"] = format_duration(c.timeouts.tls_bootstrap_seconds)
    document = _head(api, "JoinConfiguration") | {
        "discovery": discovery,
        "nodeRegistration": _node_registration(c.node_registration, api),
    }
    document |= _strings(caCertPath=c.ca_cert_path)
    if c.control_plane is not None:
        document["controlPlane"] = {"localAPIEndpoint": _endpoint(c.control_plane.local_api_endpoint)}
    return document | _shared(c, api)


def _head(api: ApiVersion, kind: str) -> Json:
    return {"apiVersion": f"{GROUP}/{api}", "kind": kind}


def _strings(**values: str) -> Json:
    return {key: value for key, value in values.items() if value}


def _days(days: int) -> str:
    return format_duration(days * 86400)


def _args(args: Sequence[Arg], api: ApiVersion) -> Any:
    if api == "v1beta3":
        return {a.name: a.value or "" for a in args}
    return [{"name": a.name, "value": a.value or ""} for a in args]


def _component(component: APIServer | ControlPlaneComponent | None, api: ApiVersion) -> Json:
    out: Json = {}
    if component is None:
        return out
    if component.extra_args:
        out["extraArgs"] = _args(component.extra_args, api)
    if component.extra_volumes:
        out["extraVolumes"] = [_volume(v) for v in component.extra_volumes]
    if component.extra_envs and api == "v1beta4":
        out["extraEnvs"] = [_env(e) for e in component.extra_envs]
    return out


def _volume(volume: HostPathMount) -> Json:
    out: Json = {"name": volume.name, "hostPath": volume.host_path, "mountPath": volume.mount_path}
    if volume.read_only:
        out["readOnly"] = True
    return out | _strings(pathType=volume.path_type)


def _env(env: EnvVar) -> Json:
    return to_json(env)


def _etcd(config: ClusterConfiguration, api: ApiVersion) -> Json:
    out: Json = {}
    local = defined(config.etcd.local) if config.etcd else None
    external = defined(config.etcd.external) if config.etcd else None
    if local is not None:
        out["local"] = _local_etcd(local, api)
    if external is not None:
        out["external"] = {
            "endpoints": list(external.endpoints),
            "caFile": external.ca_file,
            "certFile": external.cert_file,
            "keyFile": external.key_file,
        }
    return out


def _local_etcd(local: LocalEtcd, api: ApiVersion) -> Json:
    out: Json = {"dataDir": local.data_dir} | _strings(imageRepository=local.image_repository, imageTag=local.image_tag)
    if local.extra_args:
        out["extraArgs"] = _args(local.extra_args, api)
    if local.extra_envs and api == "v1beta4":
        out["extraEnvs"] = [_env(e) for e in local.extra_envs]
    if local.server_cert_sans:
        out["serverCertSANs"] = list(local.server_cert_sans)
    if local.peer_cert_sans:
        out["peerCertSANs"] = list(local.peer_cert_sans)
    return out


def _endpoint(endpoint: LocalAPIEndpoint | None) -> Json:
    if endpoint is None:
        return {}
    return _strings(advertiseAddress=endpoint.advertise_address) | ({"bindPort": endpoint.bind_port} if endpoint.bind_port else {})


def _taint(taint: Taint) -> Json:
    out = {"key": taint.key, "effect": taint.effect} | _strings(value=taint.value)
    return out if taint.time_added is None else out | {"timeAdded": taint.time_added}


def _node_registration(options: NodeRegistrationOptions | None, api: ApiVersion) -> Json:
    o = options or NodeRegistrationOptions()
    out: Json = {"taints": None if o.taints is None else [_taint(t) for t in o.taints]}
    out |= _strings(name=o.name, criSocket=o.cri_socket, imagePullPolicy=o.image_pull_policy)
    if o.ignore_preflight_errors:
        out["ignorePreflightErrors"] = list(o.ignore_preflight_errors)
    if o.kubelet_extra_args:
        out["kubeletExtraArgs"] = _args(o.kubelet_extra_args, api)
    if o.image_pull_serial is not None and api == "v1beta4":
        out["imagePullSerial"] = o.image_pull_serial
    return out


def _bootstrap_token(token: BootstrapToken) -> Json:
    out: Json = {"token": token.token or None} | _strings(description=token.description)
    if token.ttl_seconds is not None:
        out["ttl"] = format_duration(token.ttl_seconds)
    if token.expires is not None:
        out["expires"] = token.expires
    if token.usages:
        out["usages"] = list(token.usages)
    if token.groups:
        out["groups"] = list(token.groups)
    return out


def _discovery(discovery: Discovery | None) -> Json:
    out: Json = {}
    if discovery is None:
        return out
    token, file = defined(discovery.bootstrap_token), defined(discovery.file)
    if token is not None:
        out["bootstrapToken"] = {"token": token.token} | _strings(apiServerEndpoint=token.api_server_endpoint)
        if token.ca_cert_hashes:
            out["bootstrapToken"]["caCertHashes"] = list(token.ca_cert_hashes)
        if token.unsafe_skip_ca_verification:
            out["bootstrapToken"]["unsafeSkipCAVerification"] = True
    if file is not None:
        out["file"] = {"kubeConfigPath": file.kube_config_path}
    return out | _strings(tlsBootstrapToken=discovery.tls_bootstrap_token)


_TIMEOUTS = {
    "controlPlaneComponentHealthCheck": "control_plane_component_health_check_seconds",
    "kubeletHealthCheck": "kubelet_health_check_seconds",
    "kubernetesAPICall": "kubernetes_api_call_seconds",
    "etcdAPICall": "etcd_api_call_seconds",
    "tlsBootstrap": "tls_bootstrap_seconds",
    "discovery": "discovery_seconds",
}


def _shared(config: InitConfiguration | JoinConfiguration, api: ApiVersion) -> Json:
    out: Json = {}
    patches, timeouts = defined(config.patches), defined(config.timeouts)
    if config.skip_phases:
        out["skipPhases"] = list(config.skip_phases)
    if patches is not None:
        out["patches"] = {"directory": patches.directory}
    if timeouts is not None and api == "v1beta4":
        values = {key: getattr(timeouts, attribute) for key, attribute in _TIMEOUTS.items()}
        out["timeouts"] = {key: format_duration(value) for key, value in values.items() if value is not None}
    return out


# --------------------------------------------------------------------------------- from kubeadm to the spec


class _Loader(yamlreader.SafeLoader):  # type: ignore[misc]  # libyaml's, or Python's own
    """A YAML loader with the types of Go's decoder: a time is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_cluster_configuration(text: str) -> tuple[ClusterConfiguration, AdditionalData]:
    """Return a cluster's ClusterConfiguration in the form of the spec, and the values without a field in the spec.

    Raises UnknownDocument.
    """
    d = _parse(text, "ClusterConfiguration")
    api_server = _component_back(d.get("apiServer"))
    sans = _get(d, "apiServer", "certSANs")
    if api_server is not None and sans:
        api_server["certSANs"] = sans
    out = _pick(d, "controlPlaneEndpoint", "certificatesDir", "imageRepository", "featureGates", "encryptionAlgorithm")
    out |= {
        "apiServer": api_server,
        "controllerManager": _component_back(d.get("controllerManager")),
        "scheduler": _component_back(d.get("scheduler")),
        "dns": _pick(d.get("dns"), "imageRepository", "imageTag"),
        "etcd": _etcd_back(d.get("etcd")),
        "certificateValidityPeriodDays": _days_back(d.get("certificateValidityPeriod")),
        "caCertificateValidityPeriodDays": _days_back(d.get("caCertificateValidityPeriod")),
    }
    health = _get(d, "apiServer", "timeoutForControlPlane")
    data = AdditionalData(
        kubernetes_version=d.get("kubernetesVersion") or "",
        cluster_name=d.get("clusterName") or "",
        dns_domain=_get(d, "networking", "dnsDomain") or "",
        service_subnet=_get(d, "networking", "serviceSubnet") or "",
        pod_subnet=_get(d, "networking", "podSubnet") or "",
        control_plane_component_health_check_seconds=None if health is None else _seconds(health),
    )
    return _convert(out, ClusterConfiguration), data


def _parse(text: str, kind: str) -> Json:
    try:
        documents = yamlreader.load_all(text, loader=_Loader)
    except yaml.YAMLError:
        raise UnknownDocument("unknown kubeadm types: not YAML") from None  # the cause quotes the text, which may hold a token
    if all(document is None for document in documents):
        return {}  # nothing is said, so that everything has its default
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != kind:
            continue
        if document.get("apiVersion") in (f"{GROUP}/v1beta3", f"{GROUP}/v1beta4"):
            return document
    raise UnknownDocument("unknown kubeadm types")


def _convert(value: Json, to: type[C]) -> C:
    try:
        return msgspec.convert({k: v for k, v in value.items() if v is not None and v not in ([], "", 0)}, to)
    except msgspec.ValidationError as error:
        raise UnknownDocument(f"unknown kubeadm types: {error}") from None


def _get(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _pick(value: Any, *keys: str) -> Json:
    return {k: value[k] for k in keys if value.get(k) is not None} if isinstance(value, Mapping) else {}


def _seconds(value: Any, unit: int = 1) -> int:
    try:
        return min(parse_seconds(str(value)) // unit, 2**31 - 1)
    except ValueError as error:
        raise UnknownDocument(f"unknown kubeadm types: {error}") from None


def _days_back(value: Any) -> int | None:
    return None if value is None else _seconds(value, 86400)


def _args_back(value: Any) -> list[Json]:
    if isinstance(value, Mapping):
        return [{"name": k, "value": "" if v is None else str(v)} for k, v in sorted(value.items())]
    return [{"name": a.get("name", ""), "value": a.get("value") or ""} for a in value or () if isinstance(a, Mapping)]


def _with_args(out: Json, value: Any, key: str = "extraArgs") -> Json:
    args = _args_back(_get(value, key))
    return out | {key: args} if args else out


def _component_back(value: Any) -> Json | None:
    return None if value is None else _with_args(_pick(value, "extraVolumes", "extraEnvs"), value)


def _etcd_back(value: Any) -> Json | None:
    local, external = _get(value, "local"), _get(value, "external")
    out: Json = {}
    if local is not None:
        keys = ("imageRepository", "imageTag", "dataDir", "serverCertSANs", "peerCertSANs", "extraEnvs")
        out["local"] = _with_args({k: v for k, v in _pick(local, *keys).items() if v}, local)
    if external is not None:
        out["external"] = _pick(external, "endpoints", "caFile", "certFile", "keyFile")
    return out or None
