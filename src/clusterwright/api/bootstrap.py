"""KubeadmConfig, and the types of kubeadm's settings."""

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
    """An argument.

    The list key is name **and** value, so the structural list map would allow one name with two values; CEL-4/CEL-5 forbid it.
    """

    name: Annotated[str, REQUIRED, Len(1, 256), Doc("name of the flag, without leading dashes")] = ""
    value: Annotated[str | None, REQUIRED, Len(0, 1024), Doc("value of the flag; may be empty")] = None


class HostPathMount(Struct):
    host_path: Annotated[str, REQUIRED, Len(1, 512), Doc("path on the host")] = ""
    mount_path: Annotated[str, REQUIRED, Len(1, 512), Doc("path in the container")] = ""
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("name of the volume in the Pod")] = ""
    path_type: Annotated[str, Doc("as HostPathType of a Pod")] = ""
    read_only: Annotated[bool | None, Doc("whether the mount cannot be written to")] = None


class APIServer(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cert_sans: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("further names in the serving certificate")] = (
        msgspec.field(name="certSANs", default=())
    )
    extra_args: Annotated[
        tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_EXTRA_ARGS, Doc("flags without leading dashes")
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None, Items(1, 100), ATOMIC, Doc("absent or non-empty (items 1.. rejects `[]`); Kubernetes 1.31+")
    ] = None
    extra_volumes: Annotated[tuple[HostPathMount, ...], Items(1, 100), ATOMIC, Doc("host mounts")] = ()


class ControlPlaneComponent(Struct):
    """The shape of `controllerManager` and `scheduler`."""

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

    image_repository: Annotated[str, Len(1, 512), Doc("registry and path of the CoreDNS image")] = ""
    image_tag: Annotated[str, Len(1, 256), Doc("pins CoreDNS version")] = ""


class ExternalEtcd(Struct):
    ca_file: Annotated[str, REQUIRED, Len(1, 512), Doc("CA file on the host")] = ""
    cert_file: Annotated[str, REQUIRED, Len(1, 512), Doc("client certificate file on the host")] = ""
    endpoints: Annotated[tuple[str, ...], REQUIRED, Items(1, 50), ATOMIC, Each(Len(1, 512)), Doc("URLs of the members")] = ()
    key_file: Annotated[str, REQUIRED, Len(1, 512), Doc("client key file on the host")] = ""


class LocalEtcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    data_dir: Annotated[str, Len(1, 512), Doc("absent = /var/lib/etcd")] = ""
    extra_args: Annotated[
        tuple[Arg, ...], Items(1, 100), ListMap("name", "value"), UNIQUE_EXTRA_ARGS, Doc("flags without leading dashes")
    ] = ()
    extra_envs: Annotated[
        tuple[EnvVar, ...] | None, Items(1, 100), ATOMIC, Doc("absent or non-empty (items 1.. rejects `[]`); Kubernetes 1.31+")
    ] = None
    image_repository: Annotated[str, Len(1, 512), Doc("registry and path of the etcd image")] = ""
    image_tag: Annotated[str, Len(1, 256), Doc("tag of the etcd image")] = ""
    peer_cert_sans: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("further names in the peer certificate")] = (
        msgspec.field(name="peerCertSANs", default=())
    )
    server_cert_sans: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 253)), Doc("further names in the serving certificate")
    ] = msgspec.field(name="serverCertSANs", default=())


class Etcd(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    external: Annotated[ExternalEtcd | None, Doc("exclusive with local")] = None
    local: Annotated[LocalEtcd | None, Doc("exclusive with external")] = None


class ClusterConfiguration(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server: Annotated[APIServer | None, Doc("the API server")] = None
    ca_certificate_validity_period_days: Annotated[Int32, Range(1, 36500), Doc("CA lifetime; absent = 3650; immutable on KCP")] = 0
    certificate_validity_period_days: Annotated[
        Int32, Range(1, 1095), Doc("leaf cert lifetime; kubeadm default 365; needs Kubernetes 1.31+")
    ] = 0
    certificates_dir: Annotated[str, Len(1, 512), Doc("absent = /etc/kubernetes/pki")] = ""
    control_plane_endpoint: Annotated[str, Len(1, 512), Doc("absent = Cluster endpoint")] = ""
    controller_manager: Annotated[ControlPlaneComponent | None, Doc("the controller manager")] = None
    dns: Annotated[DNS | None, Doc("CoreDNS image")] = None
    encryption_algorithm: Annotated[
        str,
        OneOf("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"),
        Doc("absent = RSA-2048; needs Kubernetes 1.31+ (ECDSA-P384: 1.34+)"),
    ] = ""
    etcd: Annotated[Etcd | None, Doc("absent = stacked local etcd")] = None
    feature_gates: Annotated[Mapping[str, bool], Doc("kubeadm feature gates")] = {}
    image_repository: Annotated[str, Len(1, 512), Doc("registry and path of the control-plane images")] = ""
    scheduler: Annotated[ControlPlaneComponent | None, Doc("the scheduler")] = None


class Filesystem(Struct):
    device: Annotated[str, REQUIRED, Len(1, 256), Doc("device to be formatted")] = ""
    extra_opts: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("mkfs options")] = ()
    filesystem: Annotated[str, REQUIRED, Len(1, 128), Doc("fs type")] = ""
    label: Annotated[str, Len(1, 512), Doc("`None` = no label")] = ""
    overwrite: Annotated[bool | None, Doc("format even if there is a file system")] = None
    partition: Annotated[str, Len(1, 128), Doc("cloud-init selector (auto, any, none, number); forbidden with ignition")] = ""
    replace_fs: Annotated[str, Len(1, 128), Doc("forbidden with ignition")] = msgspec.field(name="replaceFS", default="")


class PartitionSpec(Struct):
    partition_type: Annotated[str, Len(1, 36), PARTITION_TYPE, Doc("a known type or a GUID")] = ""
    percentage: Annotated[Int32, REQUIRED, Range(1, 100), Doc("share of the device")] = 0


class Partition(Struct):
    constraints: ClassVar[tuple[object, ...]] = (ONE_LAYOUT,)

    device: Annotated[str, REQUIRED, Len(1, 256), Doc("device to be partitioned")] = ""
    disk_layout: Annotated[tuple[PartitionSpec, ...], Items(1, 100), ATOMIC, Doc("ordered partitions; percentages sum to at most 100")] = ()
    layout: Annotated[bool | None, Doc("true = one partition over the device; false = keep existing")] = None
    overwrite: Annotated[bool | None, Doc("partition even if there are partitions")] = None
    table_type: Annotated[str, OneOf("mbr", "gpt"), Doc("absent = mbr; ignition only gpt")] = ""


class DiskSetup(Struct):
    """The disks of a node, with exactly one of `layout` / `diskLayout` per partition (CEL-6)."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    filesystems: Annotated[tuple[Filesystem, ...], Items(None, 100), ATOMIC, Doc("file systems to be made")] = ()
    partitions: Annotated[tuple[Partition, ...], Items(None, 100), ATOMIC, Doc("partitions to be made")] = ()


class SecretFileSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256), Doc("key in the Secret")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("Secret in same namespace")] = ""


class FileSource(Struct):
    secret: Annotated[SecretFileSource, REQUIRED, Doc("a Secret")] = SecretFileSource()


class File(SensitiveStruct):
    append: Annotated[bool | None, Doc("append to a file that exists instead of replacing it")] = None
    content: Annotated[str, Len(1, 10240), Doc("inline; exclusive with contentFrom")] = ""
    content_format: Annotated[str, OneOf("Raw", "Template"), Doc("Template: the content is a Go template; Raw, the default: it is not")] = (
        ""
    )
    content_from: Annotated[FileSource | None, Doc("where the content comes from")] = None
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

    container_linux_config: Annotated[ContainerLinuxConfig | None, Doc("Container Linux configuration to be merged in")] = None


class BootstrapToken(SensitiveStruct):
    """A bootstrap token; `token` is one string on the wire; split it at the dot when parsing."""

    description: Annotated[str, Len(1, 512), Doc("what it is for")] = ""
    expires: Annotated[datetime | None, Doc("exclusive with ttlSeconds")] = None
    groups: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("groups that it authenticates as")] = ()
    token: Annotated[str, REQUIRED, Len(1, 23), Doc("the token: 6 and 16 characters of [a-z0-9], joined by a dot")] = ""
    ttl_seconds: Annotated[Int32 | None, Range(0), Doc("absent = 24h (kubeadm)")] = None
    usages: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("signing, authentication")] = ()


class LocalAPIEndpoint(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    advertise_address: Annotated[str, Len(1, 39), Doc("address that the API server announces")] = ""
    bind_port: Annotated[Int32, Range(1), Doc("absent = 6443")] = 0


class NodeRegistrationOptions(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cri_socket: Annotated[str, Len(1, 512), Doc("socket of the container runtime")] = ""
    ignore_preflight_errors: Annotated[
        tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 512)), Doc("preflight checks whose failure is ignored")
    ] = ()
    image_pull_policy: Annotated[str, OneOf("Always", "IfNotPresent", "Never"), Doc("absent = IfNotPresent (kubeadm)")] = ""
    image_pull_serial: Annotated[bool | None, Doc("absent = true (kubeadm)")] = None
    kubelet_extra_args: Annotated[
        tuple[Arg, ...],
        Items(1, 100),
        ListMap("name", "value"),
        UNIQUE_KUBELET_EXTRA_ARGS,
        Doc("flags of the kubelet, without leading dashes"),
    ] = ()
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

    bootstrap_tokens: Annotated[tuple[BootstrapToken, ...], Items(1, 100), ATOMIC, Doc("tokens that `kubeadm init` creates")] = ()
    local_api_endpoint: Annotated[LocalAPIEndpoint | None, Doc("address and port of the API server on the host")] = msgspec.field(
        name="localAPIEndpoint", default=None
    )
    node_registration: Annotated[NodeRegistrationOptions | None, Doc("how the Node registers itself")] = None
    patches: Annotated[Patches | None, Doc("patches that kubeadm applies to its manifests")] = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256)), Doc("kubeadm phases to be left out")] = ()
    timeouts: Annotated[Timeouts | None, Doc("how long kubeadm waits")] = None


class JoinControlPlane(Struct):
    local_api_endpoint: Annotated[LocalAPIEndpoint | None, Doc("address and port of the API server on the host")] = msgspec.field(
        name="localAPIEndpoint", default=None
    )


class BootstrapTokenDiscovery(SensitiveStruct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server_endpoint: Annotated[str, Len(1, 512), Doc("host:port")] = ""
    ca_cert_hashes: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 512)), Doc("`sha256:<hex of SPKI>`")] = ()
    token: Annotated[str, Len(1, 512), Doc("bootstrap token; made by the controller when absent")] = ""
    unsafe_skip_ca_verification: Annotated[bool | None, Doc("trust the cluster without knowing its CA")] = msgspec.field(
        name="unsafeSkipCAVerification", default=None
    )


class KubeConfigCluster(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    certificate_authority_data: Annotated[bytes, Len(1, 51200), Doc("base64 PEM; absent = cluster CA")] = b""
    insecure_skip_tls_verify: Annotated[bool | None, Doc("trust any certificate")] = msgspec.field(
        name="insecureSkipTLSVerify", default=None
    )
    proxy_url: Annotated[str, Len(1, 512), Doc("proxy on the way")] = msgspec.field(name="proxyURL", default="")
    server: Annotated[str, Len(1, 512), Doc("absent = `https://<Cluster endpoint>`")] = ""
    tls_server_name: Annotated[str, Len(1, 512), Doc("name expected in the certificate")] = ""


class KubeConfigAuthProvider(SensitiveStruct):
    config: Annotated[Mapping[str, str], Doc("its settings")] = {}
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("its name")] = ""


class KubeConfigAuthExecEnv(SensitiveStruct):
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("name of the variable")] = ""
    value: Annotated[str, REQUIRED, Len(1, 512), Doc("value of the variable")] = ""


class KubeConfigAuthExec(Struct):
    api_version: Annotated[str, Len(1, 512), Doc("absent = client.authentication.k8s.io/v1")] = ""
    args: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 512)), Doc("its arguments")] = ()
    command: Annotated[str, REQUIRED, Len(1, 1024), Doc("the command")] = ""
    env: Annotated[tuple[KubeConfigAuthExecEnv, ...], Items(1, 100), ATOMIC, Doc("its environment")] = ()
    provide_cluster_info: Annotated[bool | None, Doc("absent = false")] = None


class KubeConfigUser(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    auth_provider: Annotated[KubeConfigAuthProvider | None, Doc("a built-in way to authenticate")] = None
    exec: Annotated[KubeConfigAuthExec | None, Doc("a command that yields credentials")] = None


class FileDiscoveryKubeConfig(Struct):
    cluster: Annotated[KubeConfigCluster | None, Doc("how the API server is reached")] = None
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
    discovery: Annotated[Discovery | None, Doc("how the host finds and trusts the cluster")] = None
    node_registration: Annotated[NodeRegistrationOptions | None, Doc("how the Node registers itself")] = None
    patches: Annotated[Patches | None, Doc("patches that kubeadm applies to its manifests")] = None
    skip_phases: Annotated[tuple[str, ...], Items(1, 50), ATOMIC, Each(Len(1, 256)), Doc("kubeadm phases to be left out")] = ()
    timeouts: Annotated[Timeouts | None, Doc("how long kubeadm waits")] = None


class NTP(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    enabled: Annotated[bool | None, Doc("whether time is synchronised")] = None
    servers: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 512)), Doc("time servers")] = ()


class SecretPasswdSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256), Doc("key in the Secret")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("Secret in the same namespace")] = ""


class PasswdSource(Struct):
    secret: Annotated[SecretPasswdSource, REQUIRED, Doc("a Secret")] = SecretPasswdSource()


class User(SensitiveStruct):
    gecos: Annotated[str, Len(1, 256), Doc("full name")] = ""
    groups: Annotated[str, Len(1, 256), Doc("one comma-separated string")] = ""
    home_dir: Annotated[str, Len(1, 256), Doc("home directory")] = ""
    inactive: Annotated[bool | None, Doc("true forbidden with ignition")] = None
    lock_password: Annotated[bool | None, Doc("whether logging in by password is off")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("user name")] = ""
    passwd: Annotated[str, Len(1, 256), Doc("hashed; exclusive with passwdFrom")] = ""
    passwd_from: Annotated[PasswdSource | None, Doc("where the password comes from")] = None
    primary_group: Annotated[str, Len(1, 256), Doc("primary group")] = ""
    shell: Annotated[str, Len(1, 256), Doc("login shell")] = ""
    ssh_authorized_keys: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 2048)), Doc("public keys that may log in")] = ()
    sudo: Annotated[str, Len(1, 256), Doc("sudo rule")] = ""


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
    init_configuration: Annotated[InitConfiguration | None, Doc("what `kubeadm init` is told")] = None
    join_configuration: Annotated[JoinConfiguration | None, Doc("what `kubeadm join` is told")] = None
    mounts: Annotated[
        tuple[tuple[str, ...], ...], Items(1, 100), ATOMIC, Each(Items(1, 100), Each(Len(1, 512))), Doc("list of fstab-like string lists")
    ] = ()
    ntp: Annotated[NTP | None, Doc("time synchronisation")] = None
    post_kubeadm_commands: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("run after kubeadm")] = ()
    pre_kubeadm_commands: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 10240)), Doc("run before kubeadm")] = ()
    users: Annotated[tuple[User, ...], Items(1, 100), ATOMIC, Doc("users to be added to the host")] = ()
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
    initialization: Annotated[KubeadmConfigInitializationStatus | None, Doc("one-way latches")] = None
    observed_generation: ObservedGeneration = 0


class KubeadmConfig(Object):
    """Renders the bootstrap data of one Machine."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfig"
    spec: Annotated[KubeadmConfigSpec, Doc("desired state")] = KubeadmConfigSpec()
    status: Annotated[KubeadmConfigStatus, Doc("observed state")] = KubeadmConfigStatus()


class KubeadmConfigTemplateResource(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of what is made from it")] = None
    spec: Annotated[KubeadmConfigSpec | None, Doc("spec of generated KubeadmConfigs")] = None


class KubeadmConfigTemplateSpec(Struct):
    template: Annotated[KubeadmConfigTemplateResource, REQUIRED, Doc("what is made from it")] = KubeadmConfigTemplateResource()


class KubeadmConfigTemplate(Object):
    """The template for KubeadmConfigs."""

    api_version: str = "bootstrap.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmConfigTemplate"
    spec: Annotated[KubeadmConfigTemplateSpec, Doc("desired state")] = KubeadmConfigTemplateSpec()
