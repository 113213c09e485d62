"""KubeadmConfig, and the types of kubeadm's settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Each, Int32, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.core.shared import TemplateObjectMeta
from clusterwright.api.kubernetes import EnvVar, Taint
from clusterwright.api.machine_setup import NTP, DiskSetup, File, IgnitionSpec, User
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, ObservedGeneration, SensitiveStruct, Struct, V1Beta1Conditions
from clusterwright.api.rules import UNIQUE_EXTRA_ARGS, UNIQUE_KUBELET_EXTRA_ARGS


class Arg(Struct):
    """An argument.

    The list key is name **and** value, so the structural list map would allow one name with two values; CEL-4/CEL-5 forbid it.
    """

    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the flag, without leading dashes.")] = ""
    value: Annotated[str | None, REQUIRED, Len(0, 1024), Doc("The value of the flag. It may be empty.")] = None


class HostPathMount(Struct):
    host_path: Annotated[str, REQUIRED, Len(1, 512), Doc("The path on the host.")] = ""
    mount_path: Annotated[str, REQUIRED, Len(1, 512), Doc("The path in the container.")] = ""
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("The name of the volume in the Pod.")] = ""
    path_type: Annotated[str, Doc("The type of the path, as HostPathType of a Pod.")] = ""
    read_only: Annotated[bool | None, Doc("If true, the container cannot write to the mount.")] = None


class APIServer(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cert_sans: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("Further names in the certificate of the API server.")
    ] = msgspec.field(name="certSANs", default=())
    extra_args: Annotated[
        tuple[Arg, ...],
        Items(1, 100),
        ListMap("name", "value"),
        UNIQUE_EXTRA_ARGS,
        Doc("The flags of the program, without leading dashes."),
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None,
        Items(1, 100),
        ATOMIC,
        Doc("Further environment variables. The list cannot be empty. It requires Kubernetes 1.31 or newer."),
    ] = None
    extra_volumes: Annotated[
        tuple[HostPathMount, ...], Items(1, 100), ATOMIC, Doc("Further files or directories of the host that are mounted.")
    ] = ()


class ControlPlaneComponent(Struct):
    """The shape of `controllerManager` and `scheduler`."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    extra_args: Annotated[
        tuple[Arg, ...],
        Items(1, 100),
        ListMap("name", "value"),
        UNIQUE_EXTRA_ARGS,
        Doc("The flags of the program, without leading dashes."),
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None,
        Items(1, 100),
        ATOMIC,
        Doc("Further environment variables. The list cannot be empty. It requires Kubernetes 1.31 or newer."),
    ] = None
    extra_volumes: Annotated[
        tuple[HostPathMount, ...], Items(1, 100), ATOMIC, Doc("Further files or directories of the host that are mounted.")
    ] = ()


class DNS(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    image_repository: Annotated[str, Len(1, 512), Doc("The registry and path of the CoreDNS image.")] = ""
    image_tag: Annotated[str, Len(1, 256), Doc("The tag of the CoreDNS image. If it is set, upgrades keep this version.")] = ""


class ExternalEtcd(Struct):
    ca_file: Annotated[str, REQUIRED, Len(1, 512), Doc("The path of the authority's certificate on the host.")] = ""
    cert_file: Annotated[str, REQUIRED, Len(1, 512), Doc("The path of the client certificate on the host.")] = ""
    endpoints: Annotated[tuple[str, ...], REQUIRED, Items(1, 50), ATOMIC, Each(Len(1, 512)), Doc("The addresses of the members.")] = ()
    key_file: Annotated[str, REQUIRED, Len(1, 512), Doc("The path of the client key on the host.")] = ""


class LocalEtcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    data_dir: Annotated[str, Len(1, 512), Doc("The directory of the data on the host. If absent, it is /var/lib/etcd.")] = ""
    extra_args: Annotated[
        tuple[Arg, ...],
        Items(1, 100),
        ListMap("name", "value"),
        UNIQUE_EXTRA_ARGS,
        Doc("The flags of the program, without leading dashes."),
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None,
        Items(1, 100),
        ATOMIC,
        Doc("Further environment variables. The list cannot be empty. It requires Kubernetes 1.31 or newer."),
    ] = None
    image_repository: Annotated[str, Len(1, 512), Doc("The registry and path of the etcd image.")] = ""
    image_tag: Annotated[str, Len(1, 256), Doc("The tag of the etcd image.")] = ""
    peer_cert_sans: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("Further names in the certificate between members.")
    ] = msgspec.field(name="peerCertSANs", default=())
    server_cert_sans: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("Further names in the certificate of the API server.")
    ] = msgspec.field(name="serverCertSANs", default=())


class Etcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    external: Annotated[ExternalEtcd | None, Doc("An etcd cluster that exists already. It cannot be combined with local.")] = None
    local: Annotated[LocalEtcd | None, Doc("The etcd on the control plane machines. It cannot be combined with external.")] = None


class ClusterConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server: Annotated[APIServer | None, Doc("The settings of the API server.")] = None
    ca_certificate_validity_period_days: Annotated[
        Int32,
        Range(1, 36500),
        Doc("The lifetime of authorities in days. If absent, it is 3650. It cannot be changed in a KubeadmControlPlane."),
    ] = 0
    certificate_validity_period_days: Annotated[
        Int32,
        Range(1, 1095),
        Doc("The lifetime of other certificates in days. The default of kubeadm is 365. It requires Kubernetes 1.31 or newer."),
    ] = 0
    certificates_dir: Annotated[
        str, Len(1, 512), Doc("The directory of certificates on the host. If absent, it is /etc/kubernetes/pki.")
    ] = ""
    control_plane_endpoint: Annotated[
        str, Len(1, 512), Doc("The address of the API server, as host:port. If absent, it is the endpoint of the Cluster.")
    ] = ""
    controller_manager: Annotated[ControlPlaneComponent | None, Doc("The settings of the controller manager.")] = None
    dns: Annotated[DNS | None, Doc("The image of CoreDNS.")] = None
    encryption_algorithm: Annotated[
        str,
        OneOf("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"),
        Doc("The algorithm of keys. If absent, it is RSA-2048. It requires Kubernetes 1.31 or newer, and ECDSA-P384 requires 1.34."),
    ] = ""
    etcd: Annotated[Etcd | None, Doc("The settings of etcd. If absent, etcd runs on the control plane machines.")] = None
    feature_gates: Annotated[Mapping[str, bool], Doc("The feature gates of kubeadm.")] = {}
    image_repository: Annotated[str, Len(1, 512), Doc("The registry and path of the control plane images.")] = ""
    scheduler: Annotated[ControlPlaneComponent | None, Doc("The settings of the scheduler.")] = None


class BootstrapToken(SensitiveStruct):
    """A bootstrap token; `token` is one string on the wire; split it at the dot when parsing."""

    description: Annotated[str, Len(1, 512), Doc("The purpose of the token, for people.")] = ""
    expires: Annotated[datetime | None, Doc("The time at which the token expires. It cannot be combined with ttlSeconds.")] = None
    groups: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("The groups that a user of the token belongs to.")
    ] = ()
    token: Annotated[str, REQUIRED, Len(1, 23), Doc("The token: 6 and 16 characters of [a-z0-9], joined by a dot.")] = ""
    ttl_seconds: Annotated[Int32 | None, Range(0), Doc("The lifetime of the token in seconds. If absent, kubeadm uses 24 hours.")] = None
    usages: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("The uses of the token: signing, authentication.")
    ] = ()


class LocalAPIEndpoint(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    advertise_address: Annotated[str, Len(1, 39), Doc("The address that the API server announces to others.")] = ""
    bind_port: Annotated[Int32, Range(1), Doc("The port of the API server. If absent, it is 6443.")] = 0


class NodeRegistrationOptions(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cri_socket: Annotated[str, Len(1, 512), Doc("The socket of the container runtime.")] = ""
    ignore_preflight_errors: Annotated[
        tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 512)), Doc("The checks of kubeadm whose failures are ignored.")
    ] = ()
    image_pull_policy: Annotated[
        str, OneOf("Always", "IfNotPresent", "Never"), Doc("When images are pulled. If absent, kubeadm uses IfNotPresent.")
    ] = ""
    image_pull_serial: Annotated[bool | None, Doc("If true, images are pulled one after the other. If absent, kubeadm does so.")] = None
    kubelet_extra_args: Annotated[
        tuple[Arg, ...],
        Items(1, 100),
        ListMap("name", "value"),
        UNIQUE_KUBELET_EXTRA_ARGS,
        Doc("The flags of the kubelet, without leading dashes."),
    ] = ()
    name: Annotated[str, Len(1, 253), Doc("The name of the Node. If absent, it is the name of the host.")] = ""
    taints: Annotated[
        tuple[Taint, ...] | None,
        Items(0, 100),
        Doc("The taints of the Node. If absent, kubeadm taints control plane Nodes; `[]` means without taints."),
    ] = None


class Patches(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    directory: Annotated[str, Len(1, 512), Doc("The directory of the patches on the host.")] = ""


class Timeouts(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_component_health_check_seconds: Annotated[
        Int32 | None,
        Range(0),
        Doc(
            "The seconds until the parts of the control plane must be healthy. The default of kubeadm is 240. "
            "A KubeadmControlPlane needs equal values for init and join."
        ),
    ] = None
    discovery_seconds: Annotated[Int32 | None, Range(0), Doc("The seconds for finding the cluster. The default of kubeadm is 300.")] = None
    etcd_api_call_seconds: Annotated[Int32 | None, Range(0), Doc("The seconds for requests to etcd. The default of kubeadm is 120.")] = (
        msgspec.field(name="etcdAPICallSeconds", default=None)
    )
    kubelet_health_check_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds until the kubelet must be healthy. The default of kubeadm is 240.")
    ] = None
    kubernetes_api_call_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for requests to the API server. The default of kubeadm is 60.")
    ] = msgspec.field(name="kubernetesAPICallSeconds", default=None)
    tls_bootstrap_seconds: Annotated[Int32 | None, Range(0), Doc("The seconds for finding the cluster. The default of kubeadm is 300.")] = (
        None
    )


class InitConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_tokens: Annotated[
        tuple[BootstrapToken, ...], Items(1, 100), ATOMIC, Doc("The bootstrap tokens that `kubeadm init` creates.")
    ] = ()
    local_api_endpoint: Annotated[LocalAPIEndpoint | None, Doc("The address and port of the API server on the host.")] = msgspec.field(
        name="localAPIEndpoint", default=None
    )
    node_registration: Annotated[NodeRegistrationOptions | None, Doc("How the host registers as a Node.")] = None
    patches: Annotated[Patches | None, Doc("The patches that kubeadm applies to its manifests.")] = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256)), Doc("The phases of kubeadm that are skipped.")] = ()
    timeouts: Annotated[Timeouts | None, Doc("The times that kubeadm waits.")] = None


class JoinControlPlane(Struct):
    local_api_endpoint: Annotated[LocalAPIEndpoint | None, Doc("The address and port of the API server on the host.")] = msgspec.field(
        name="localAPIEndpoint", default=None
    )


class BootstrapTokenDiscovery(SensitiveStruct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server_endpoint: Annotated[str, Len(1, 512), Doc("The address of the API server, as host:port.")] = ""
    ca_cert_hashes: Annotated[
        tuple[str, ...],
        Items(1, 100),
        ATOMIC,
        Each(Len(1, 512)),
        Doc("The hashes of the authority's public key, as `sha256:<hex of SPKI>`."),
    ] = ()
    token: Annotated[str, Len(1, 512), Doc("The bootstrap token. If absent, the controller creates one.")] = ""
    unsafe_skip_ca_verification: Annotated[bool | None, Doc("If true, the host trusts the cluster without a check of its authority.")] = (
        msgspec.field(name="unsafeSkipCAVerification", default=None)
    )


class KubeConfigCluster(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    certificate_authority_data: Annotated[
        bytes, Len(1, 51200), Doc("The certificates of the authority, in PEM and base64. If absent, those of the Cluster are used.")
    ] = b""
    insecure_skip_tls_verify: Annotated[bool | None, Doc("If true, any certificate of the API server is accepted.")] = msgspec.field(
        name="insecureSkipTLSVerify", default=None
    )
    proxy_url: Annotated[str, Len(1, 512), Doc("The address of a proxy.")] = msgspec.field(name="proxyURL", default="")
    server: Annotated[
        str, Len(1, 512), Doc("The address of the API server. If absent, it is `https://` and the endpoint of the Cluster.")
    ] = ""
    tls_server_name: Annotated[str, Len(1, 512), Doc("The name that the certificate of the API server must have.")] = ""


class KubeConfigAuthProvider(SensitiveStruct):
    config: Annotated[Mapping[str, str], Doc("The settings of the authentication.")] = {}
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the object.")] = ""


class KubeConfigAuthExecEnv(SensitiveStruct):
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("The name of the variable.")] = ""
    value: Annotated[str, REQUIRED, Len(1, 512), Doc("The value of the environment variable.")] = ""


class KubeConfigAuthExec(Struct):
    api_version: Annotated[
        str, Len(1, 512), Doc("The API version of the command's output. If absent, it is client.authentication.k8s.io/v1.")
    ] = ""
    args: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 512)), Doc("The arguments of the command.")] = ()
    command: Annotated[str, REQUIRED, Len(1, 1024), Doc("The command.")] = ""
    env: Annotated[tuple[KubeConfigAuthExecEnv, ...], Items(1, 100), ATOMIC, Doc("The environment variables of the command.")] = ()
    provide_cluster_info: Annotated[bool | None, Doc("If true, the command is given facts about the cluster. If absent, it is not.")] = None


class KubeConfigUser(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    auth_provider: Annotated[KubeConfigAuthProvider | None, Doc("A way of authentication that is built into Kubernetes.")] = None
    exec: Annotated[KubeConfigAuthExec | None, Doc("A command that prints credentials.")] = None


class FileDiscoveryKubeConfig(Struct):
    cluster: Annotated[KubeConfigCluster | None, Doc("The address and the certificates of the API server.")] = None
    user: Annotated[KubeConfigUser, REQUIRED, Doc("How the host authenticates. Exactly one of authProvider and exec is set.")] = (
        KubeConfigUser()
    )


class FileDiscovery(Struct):
    kube_config: Annotated[
        FileDiscoveryKubeConfig | None, Doc("The contents of the file. If it is set, the controller writes the file to the host.")
    ] = None
    kube_config_path: Annotated[str, REQUIRED, Len(1, 512), Doc("The path or address of the kubeconfig file.")] = ""


class Discovery(SensitiveStruct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_token: Annotated[
        BootstrapTokenDiscovery | None, Doc("The settings of discovery with a bootstrap token. The controller sets them if file is absent.")
    ] = None
    file: Annotated[
        FileDiscovery | None, Doc("The settings of discovery with a kubeconfig file. It cannot be combined with bootstrapToken.")
    ] = None
    tls_bootstrap_token: Annotated[
        str, Len(1, 512), Doc("The token for the certificate of the kubelet. If absent, it is bootstrapToken.token.")
    ] = ""


class JoinConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    ca_cert_path: Annotated[
        str, Len(1, 512), Doc("The path of the authority's certificate on the host. If absent, it is /etc/kubernetes/pki/ca.crt.")
    ] = ""
    control_plane: Annotated[
        JoinControlPlane | None, KEEP_EMPTY, Doc("If it is set, even to `{}`, the host joins as a control plane machine.")
    ] = None
    discovery: Annotated[Discovery | None, Doc("How the host finds the cluster and trusts it.")] = None
    node_registration: Annotated[NodeRegistrationOptions | None, Doc("How the host registers as a Node.")] = None
    patches: Annotated[Patches | None, Doc("The patches that kubeadm applies to its manifests.")] = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256)), Doc("The phases of kubeadm that are skipped.")] = ()
    timeouts: Annotated[Timeouts | None, Doc("The times that kubeadm waits.")] = None


class KubeadmConfigSpec(Struct):
    """Everything that bootstraps a host: the spec of KubeadmConfig and part of KubeadmControlPlane."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    boot_commands: Annotated[
        tuple[str, ...],
        Items(1, 1000),
        ATOMIC,
        Each(Len(1, 10240)),
        Doc("The commands that cloud-init runs at each start of the machine (bootcmd). They are not allowed with Ignition."),
    ] = ()
    cluster_configuration: Annotated[ClusterConfiguration | None, Doc("The configuration of the cluster, which `kubeadm init` reads.")] = (
        None
    )
    disk_setup: Annotated[DiskSetup | None, Doc("The partitions and file systems that cloud-init or Ignition creates.")] = None
    files: Annotated[tuple[File, ...], Items(1, 200), ATOMIC, Doc("The files that are written to the host. Their paths are unique.")] = ()
    format: Annotated[str, OneOf("cloud-config", "ignition"), Doc("The format of the bootstrap data. If absent, it is cloud-config.")] = ""
    ignition: Annotated[IgnitionSpec | None, Doc("The settings of Ignition. They require the format ignition and its feature gate.")] = None
    init_configuration: Annotated[InitConfiguration | None, Doc("The configuration of `kubeadm init`.")] = None
    join_configuration: Annotated[JoinConfiguration | None, Doc("The configuration of `kubeadm join`.")] = None
    mounts: Annotated[
        tuple[tuple[str, ...], ...],
        Items(1, 100),
        ATOMIC,
        Each(Items(1, 100), Each(Len(1, 512))),
        Doc("The mounts, each as a list of the columns of fstab."),
    ] = ()
    ntp: Annotated[NTP | None, Doc("The settings of time synchronisation.")] = None
    post_kubeadm_commands: Annotated[
        tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("The commands that run after kubeadm.")
    ] = ()
    pre_kubeadm_commands: Annotated[
        tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("The commands that run before kubeadm.")
    ] = ()
    users: Annotated[tuple[User, ...], Items(1, 100), ATOMIC, Doc("The users that are created on the host.")] = ()
    verbosity: Annotated[Int32 | None, Doc("The verbosity of kubeadm's output (its flag --v).")] = None


class KubeadmConfigV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")] = ""
    failure_reason: Annotated[str, Len(1, 256), Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = ""


class KubeadmConfigDeprecatedStatus(Struct):
    v1beta1: Annotated[KubeadmConfigV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class KubeadmConfigInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    data_secret_created: Annotated[
        bool | None, Doc("True after the bootstrap data was created for the first time. Other controllers wait for it.")
    ] = None


class KubeadmConfigStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    data_secret_name: Annotated[
        str, Len(1, 253), Doc("The name of the Secret with the bootstrap data. It is the name of the KubeadmConfig.")
    ] = ""
    deprecated: Annotated[
        KubeadmConfigDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    initialization: Annotated[
        KubeadmConfigInitializationStatus | None, Doc("The steps of provisioning that are done. Each is never set back.")
    ] = None
    observed_generation: ObservedGeneration = 0


class KubeadmConfig(Object):
    """Renders the bootstrap data of one Machine."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfig"
    spec: Annotated[KubeadmConfigSpec, Doc("The desired state, which users set.")] = KubeadmConfigSpec()
    status: Annotated[KubeadmConfigStatus, Doc("The observed state, which controllers write.")] = KubeadmConfigStatus()


class KubeadmConfigTemplateResource(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created from the template.")] = (
        None
    )
    spec: Annotated[KubeadmConfigSpec | None, Doc("The spec of the KubeadmConfigs that are created from the template.")] = None


class KubeadmConfigTemplateSpec(Struct):
    template: Annotated[KubeadmConfigTemplateResource, REQUIRED, Doc("The objects that are created from the template.")] = (
        KubeadmConfigTemplateResource()
    )


class KubeadmConfigTemplate(Object):
    """The template for KubeadmConfigs."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfigTemplate"
    spec: Annotated[KubeadmConfigTemplateSpec, Doc("The desired state, which users set.")] = KubeadmConfigTemplateSpec()
