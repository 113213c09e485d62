"""KubeadmConfig and everything that kubeadm can be told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Each, Int32, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.core.shared import TemplateObjectMeta
from clusterwright.api.kubernetes import EnvVar, Taint
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, ObservedGeneration, SensitiveStruct, Struct, V1Beta1Conditions
from clusterwright.api.rules import ONE_LAYOUT, PARTITION_TYPE, UNIQUE_EXTRA_ARGS, UNIQUE_KUBELET_EXTRA_ARGS


class Arg(Struct):
    """List key is name **and** value, so the structural list map would allow one name with two values; CEL-4/CEL-5 forbid it."""

    name: Annotated[str, REQUIRED, Len(1, 256)] = ""
    value: Annotated[str | None, REQUIRED, Len(0, 1024), Doc("required but may be empty string")] = None


class HostPathMount(Struct):
    host_path: Annotated[str, REQUIRED, Len(1, 512)] = ""
    mount_path: Annotated[str, REQUIRED, Len(1, 512)] = ""
    name: Annotated[str, REQUIRED, Len(1, 512)] = ""
    path_type: Annotated[str, Doc("core/v1 HostPathType, not enforced")] = ""
    read_only: bool | None = None


class APIServer(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cert_sans: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253))] = msgspec.field(name="certSANs", default=())
    extra_args: Annotated[
        tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_EXTRA_ARGS, Doc("flags without leading dashes")
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None, Items(1, 100), ATOMIC, Doc("absent or non-empty (items 1.. rejects `[]`); Kubernetes 1.31+")
    ] = None
    extra_volumes: Annotated[tuple[HostPathMount, ...], Items(1, 100), ATOMIC, Doc("host mounts")] = ()


class ControlPlaneComponent(Struct):
    """Shape of `controllerManager` and `scheduler`."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    extra_args: Annotated[
        tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_EXTRA_ARGS, Doc("flags without leading dashes")
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None, Items(1, 100), ATOMIC, Doc("absent or non-empty (items 1.. rejects `[]`); Kubernetes 1.31+")
    ] = None
    extra_volumes: Annotated[tuple[HostPathMount, ...], Items(1, 100), ATOMIC, Doc("host mounts")] = ()


class DNS(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    image_repository: Annotated[str, Len(1, 512)] = ""
    image_tag: Annotated[str, Len(1, 256), Doc("pins CoreDNS version")] = ""


class ExternalEtcd(Struct):
    ca_file: Annotated[str, REQUIRED, Len(1, 512)] = ""
    cert_file: Annotated[str, REQUIRED, Len(1, 512)] = ""
    endpoints: Annotated[tuple[str, ...], REQUIRED, Items(1, 50), ATOMIC, Each(Len(1, 512))] = ()
    key_file: Annotated[str, REQUIRED, Len(1, 512)] = ""


class LocalEtcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    data_dir: Annotated[str, Len(1, 512), Doc("absent = /var/lib/etcd")] = ""
    extra_args: Annotated[
        tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_EXTRA_ARGS, Doc("flags without leading dashes")
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None, Items(1, 100), ATOMIC, Doc("absent or non-empty (items 1.. rejects `[]`); Kubernetes 1.31+")
    ] = None
    image_repository: Annotated[str, Len(1, 512)] = ""
    image_tag: Annotated[str, Len(1, 256)] = ""
    peer_cert_sans: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253))] = msgspec.field(name="peerCertSANs", default=())
    server_cert_sans: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253))] = msgspec.field(
        name="serverCertSANs", default=()
    )


class Etcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    external: Annotated[ExternalEtcd | None, Doc("exclusive with local")] = None
    local: Annotated[LocalEtcd | None, Doc("exclusive with external")] = None


class ClusterConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server: APIServer | None = None
    ca_certificate_validity_period_days: Annotated[Int32, Range(1, 36500), Doc("CA lifetime; absent = 3650; immutable on KCP")] = 0
    certificate_validity_period_days: Annotated[
        Int32, Range(1, 1095), Doc("leaf cert lifetime; kubeadm default 365; needs Kubernetes 1.31+")
    ] = 0
    certificates_dir: Annotated[str, Len(1, 512), Doc("absent = /etc/kubernetes/pki")] = ""
    control_plane_endpoint: Annotated[str, Len(1, 512), Doc("absent = Cluster endpoint")] = ""
    controller_manager: ControlPlaneComponent | None = None
    dns: Annotated[DNS | None, Doc("CoreDNS image")] = None
    encryption_algorithm: Annotated[
        str,
        OneOf("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"),
        Doc("absent = RSA-2048; needs Kubernetes 1.31+ (ECDSA-P384: 1.34+)"),
    ] = ""
    etcd: Annotated[Etcd | None, Doc("absent = stacked local etcd")] = None
    feature_gates: Annotated[Mapping[str, bool], Doc("kubeadm feature gates")] = {}
    image_repository: Annotated[str, Len(1, 512)] = ""
    scheduler: ControlPlaneComponent | None = None


class Filesystem(Struct):
    device: Annotated[str, REQUIRED, Len(1, 256)] = ""
    extra_opts: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("mkfs options")] = ()
    filesystem: Annotated[str, REQUIRED, Len(1, 128), Doc("fs type")] = ""
    label: Annotated[str, Len(1, 512), Doc("`None` = no label")] = ""
    overwrite: bool | None = None
    partition: Annotated[str, Len(1, 128), Doc("cloud-init selector (auto, any, none, number); forbidden with ignition")] = ""
    replace_fs: Annotated[str, Len(1, 128), Doc("forbidden with ignition")] = msgspec.field(name="replaceFS", default="")


class PartitionSpec(Struct):
    partition_type: Annotated[str, Len(1, 36), PARTITION_TYPE] = ""
    percentage: Annotated[Int32, REQUIRED, Range(1, 100)] = 0


class Partition(Struct):
    constraints: ClassVar[tuple[object, ...]] = (ONE_LAYOUT,)

    device: Annotated[str, REQUIRED, Len(1, 256)] = ""
    disk_layout: Annotated[tuple[PartitionSpec, ...], Items(1, 100), ATOMIC, Doc("ordered partitions; percentages sum to at most 100")] = ()
    layout: Annotated[bool | None, Doc("true = one partition over the device; false = keep existing")] = None
    overwrite: bool | None = None
    table_type: Annotated[str, OneOf("mbr", "gpt"), Doc("absent = mbr; ignition only gpt")] = ""


class DiskSetup(Struct):
    """Exactly one of `layout` / `diskLayout` per partition (CEL-6)."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    filesystems: Annotated[tuple[Filesystem, ...], Items(None, 100), ATOMIC] = ()
    partitions: Annotated[tuple[Partition, ...], Items(None, 100), ATOMIC] = ()


class SecretFileSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256)] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("Secret in same namespace")] = ""


class FileSource(Struct):
    secret: Annotated[SecretFileSource, REQUIRED] = SecretFileSource()


class File(SensitiveStruct):
    append: bool | None = None
    content: Annotated[str, Len(1, 10240), Doc("inline; exclusive with contentFrom")] = ""
    content_from: FileSource | None = None
    encoding: Annotated[str, OneOf("base64", "gzip", "gzip+base64"), Doc("gzip variants forbidden with ignition")] = ""
    owner: Annotated[str, Len(1, 256), Doc("user:group")] = ""
    path: Annotated[str, REQUIRED, Len(1, 512), Doc("unique among files")] = ""
    permissions: Annotated[str, Len(1, 16), Doc("octal string")] = ""


class ContainerLinuxConfig(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    additional_config: Annotated[str, Len(1, 32768), Doc("CLC YAML merged in")] = ""
    strict: Annotated[bool | None, Doc("treat warnings as errors")] = None


class IgnitionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    container_linux_config: ContainerLinuxConfig | None = None


class BootstrapToken(SensitiveStruct):
    """`token` is one string on the wire; split at the dot when parsing."""

    description: Annotated[str, Len(1, 512)] = ""
    expires: Annotated[datetime | None, Doc("exclusive with ttlSeconds")] = None
    groups: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256))] = ()
    token: Annotated[str, REQUIRED, Len(1, 23), Doc("wire form `<6 chars>.<16 chars>` [a-z0-9]; upstream holds it as id + secret")] = ""
    ttl_seconds: Annotated[Int32 | None, Range(0), Doc("absent = 24h (kubeadm)")] = None
    usages: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256))] = ()


class LocalAPIEndpoint(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    advertise_address: Annotated[str, Len(1, 39)] = ""
    bind_port: Annotated[Int32, Range(1), Doc("absent = 6443 (no schema maximum)")] = 0


class NodeRegistrationOptions(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cri_socket: Annotated[str, Len(1, 512)] = ""
    ignore_preflight_errors: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 512))] = ()
    image_pull_policy: Annotated[str, OneOf("Always", "IfNotPresent", "Never"), Doc("absent = IfNotPresent (kubeadm)")] = ""
    image_pull_serial: Annotated[bool | None, Doc("absent = true (kubeadm)")] = None
    kubelet_extra_args: Annotated[tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_KUBELET_EXTRA_ARGS] = ()
    name: Annotated[str, Len(1, 253), Doc("absent = hostname")] = ""
    taints: Annotated[
        tuple[Taint, ...] | None, Items(0, 100), Doc("tri-state: absent = kubeadm default control-plane taint; `[]` = no taints")
    ] = None


class Patches(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    directory: Annotated[str, Len(1, 512), Doc("kubeadm patches dir")] = ""


class Timeouts(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_component_health_check_seconds: Annotated[
        Int32 | None, Range(0), Doc("kubeadm default 240; on KCP init and join must agree")
    ] = None
    discovery_seconds: Annotated[Int32 | None, Range(0), Doc("kubeadm default 300")] = None
    etcd_api_call_seconds: Annotated[Int32 | None, Range(0), Doc("kubeadm default 120")] = msgspec.field(
        name="etcdAPICallSeconds", default=None
    )
    kubelet_health_check_seconds: Annotated[Int32 | None, Range(0), Doc("kubeadm default 240")] = None
    kubernetes_api_call_seconds: Annotated[Int32 | None, Range(0), Doc("kubeadm default 60")] = msgspec.field(
        name="kubernetesAPICallSeconds", default=None
    )
    tls_bootstrap_seconds: Annotated[Int32 | None, Range(0), Doc("kubeadm default 300")] = None


class InitConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_tokens: Annotated[tuple[BootstrapToken, ...], Items(1, 100), ATOMIC] = ()
    local_api_endpoint: LocalAPIEndpoint | None = msgspec.field(name="localAPIEndpoint", default=None)
    node_registration: NodeRegistrationOptions | None = None
    patches: Patches | None = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256))] = ()
    timeouts: Timeouts | None = None


class JoinControlPlane(Struct):
    local_api_endpoint: LocalAPIEndpoint | None = msgspec.field(name="localAPIEndpoint", default=None)


class BootstrapTokenDiscovery(SensitiveStruct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server_endpoint: Annotated[str, Len(1, 512), Doc("host:port")] = ""
    ca_cert_hashes: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 512)), Doc("`sha256:<hex of SPKI>`")] = ()
    token: Annotated[str, Len(1, 512)] = ""
    unsafe_skip_ca_verification: bool | None = msgspec.field(name="unsafeSkipCAVerification", default=None)


class KubeConfigCluster(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    certificate_authority_data: Annotated[bytes, Len(1, 51200), Doc("base64 PEM; absent = cluster CA")] = b""
    insecure_skip_tls_verify: bool | None = msgspec.field(name="insecureSkipTLSVerify", default=None)
    proxy_url: Annotated[str, Len(1, 512)] = msgspec.field(name="proxyURL", default="")
    server: Annotated[str, Len(1, 512), Doc("absent = `https://<Cluster endpoint>`")] = ""
    tls_server_name: Annotated[str, Len(1, 512)] = ""


class KubeConfigAuthProvider(SensitiveStruct):
    config: Mapping[str, str] = {}
    name: Annotated[str, REQUIRED, Len(1, 256)] = ""


class KubeConfigAuthExecEnv(SensitiveStruct):
    name: Annotated[str, REQUIRED, Len(1, 512)] = ""
    value: Annotated[str, REQUIRED, Len(1, 512)] = ""


class KubeConfigAuthExec(Struct):
    api_version: Annotated[str, Len(1, 512), Doc("absent = client.authentication.k8s.io/v1")] = ""
    args: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 512))] = ()
    command: Annotated[str, REQUIRED, Len(1, 1024)] = ""
    env: Annotated[tuple[KubeConfigAuthExecEnv, ...], Items(1, 100), ATOMIC] = ()
    provide_cluster_info: Annotated[bool | None, Doc("absent = false")] = None


class KubeConfigUser(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    auth_provider: KubeConfigAuthProvider | None = None
    exec: KubeConfigAuthExec | None = None


class FileDiscoveryKubeConfig(Struct):
    cluster: KubeConfigCluster | None = None
    user: Annotated[KubeConfigUser, REQUIRED, Doc("exactly one of authProvider / exec")] = KubeConfigUser()


class FileDiscovery(Struct):
    kube_config: Annotated[FileDiscoveryKubeConfig | None, Doc("if set the controller renders the file")] = None
    kube_config_path: Annotated[str, REQUIRED, Len(1, 512), Doc("path or URL")] = ""


class Discovery(SensitiveStruct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_token: Annotated[BootstrapTokenDiscovery | None, Doc("filled by controller when file is unset")] = None
    file: Annotated[FileDiscovery | None, Doc("exclusive with bootstrapToken")] = None
    tls_bootstrap_token: Annotated[str, Len(1, 512), Doc("absent = bootstrapToken.token")] = ""


class JoinConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    ca_cert_path: Annotated[str, Len(1, 512), Doc("absent = /etc/kubernetes/pki/ca.crt")] = ""
    control_plane: Annotated[JoinControlPlane | None, KEEP_EMPTY, Doc("presence (even `{}`) = control-plane join")] = None
    discovery: Discovery | None = None
    node_registration: NodeRegistrationOptions | None = None
    patches: Patches | None = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256))] = ()
    timeouts: Timeouts | None = None


class NTP(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    enabled: bool | None = None
    servers: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 512))] = ()


class SecretPasswdSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256)] = ""
    name: Annotated[str, REQUIRED, Len(1, 253)] = ""


class PasswdSource(Struct):
    secret: Annotated[SecretPasswdSource, REQUIRED] = SecretPasswdSource()


class User(SensitiveStruct):
    gecos: Annotated[str, Len(1, 256)] = ""
    groups: Annotated[str, Len(1, 256), Doc("one comma-separated string")] = ""
    home_dir: Annotated[str, Len(1, 256)] = ""
    inactive: Annotated[bool | None, Doc("true forbidden with ignition")] = None
    lock_password: bool | None = None
    name: Annotated[str, REQUIRED, Len(1, 256)] = ""
    passwd: Annotated[str, Len(1, 256), Doc("hashed; exclusive with passwdFrom")] = ""
    passwd_from: PasswdSource | None = None
    primary_group: Annotated[str, Len(1, 256)] = ""
    shell: Annotated[str, Len(1, 256)] = ""
    ssh_authorized_keys: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 2048))] = ()
    sudo: Annotated[str, Len(1, 256)] = ""


class KubeadmConfigSpec(Struct):
    """Everything that bootstraps a host: the spec of KubeadmConfig and part of KubeadmControlPlane."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    boot_commands: Annotated[
        tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("cloud-init bootcmd (every boot); forbidden with ignition")
    ] = ()
    cluster_configuration: Annotated[ClusterConfiguration | None, Doc("init only (rendered into kubeadm config)")] = None
    disk_setup: Annotated[DiskSetup | None, Doc("cloud-init disk_setup/fs_setup")] = None
    files: Annotated[tuple[File, ...], Items(1, 200), ATOMIC, Doc("extra files; paths unique")] = ()
    format: Annotated[str, OneOf("cloud-config", "ignition"), Doc("absent = cloud-config")] = ""
    ignition: Annotated[IgnitionSpec | None, Doc("needs format ignition and gate")] = None
    init_configuration: InitConfiguration | None = None
    join_configuration: JoinConfiguration | None = None
    mounts: Annotated[
        tuple[tuple[str, ...], ...], Items(1, 100), ATOMIC, Each(Items(1, 100), Each(Len(1, 512))), Doc("list of fstab-like string lists")
    ] = ()
    ntp: NTP | None = None
    post_kubeadm_commands: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("run after kubeadm")] = ()
    pre_kubeadm_commands: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("run before kubeadm")] = ()
    users: Annotated[tuple[User, ...], Items(1, 100), ATOMIC] = ()
    verbosity: Annotated[Int32 | None, Doc("kubeadm --v")] = None


class KubeadmConfigV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = ""
    failure_reason: Annotated[str, Len(1, 256), Doc("legacy terminal-failure token; informational only")] = ""


class KubeadmConfigDeprecatedStatus(Struct):
    v1beta1: Annotated[KubeadmConfigV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class KubeadmConfigInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    data_secret_created: Annotated[bool | None, Doc("contract latch")] = None


class KubeadmConfigStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    data_secret_name: Annotated[str, Len(1, 253), Doc("= KubeadmConfig name")] = ""
    deprecated: Annotated[
        KubeadmConfigDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    initialization: KubeadmConfigInitializationStatus | None = None
    observed_generation: ObservedGeneration = 0


class KubeadmConfig(Object):
    """Renders the bootstrap data of one Machine."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfig"
    spec: KubeadmConfigSpec = KubeadmConfigSpec()
    status: KubeadmConfigStatus = KubeadmConfigStatus()


class KubeadmConfigTemplateResource(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: TemplateObjectMeta | None = None
    spec: Annotated[KubeadmConfigSpec | None, Doc("spec of generated KubeadmConfigs")] = None


class KubeadmConfigTemplateSpec(Struct):
    template: Annotated[KubeadmConfigTemplateResource, REQUIRED] = KubeadmConfigTemplateResource()


class KubeadmConfigTemplate(Object):
    """What KubeadmConfigs are made from."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfigTemplate"
    spec: KubeadmConfigTemplateSpec = KubeadmConfigTemplateSpec()
