"""Pod and the Pod spec that templates carry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import (
    ATOMIC,
    ATOMIC_MAP,
    REQUIRED,
    SET,
    Default,
    Doc,
    Int32,
    Int64,
    IntOrString,
    ListMap,
    Merge,
    Quantity,
)
from clusterwright.api.kubernetes.base import Builtin, SensitiveBuiltin
from clusterwright.api.kubernetes.references import (
    ConfigMapKeySelector,
    FileKeySelector,
    LocalObjectReference,
    NodeSelector,
    NodeSelectorTerm,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from clusterwright.api.kubernetes.volume import Volume
from clusterwright.api.meta import ALWAYS, LabelSelector, Object


class ContainerPort(Builtin):
    name: str = ""
    host_port: Int32 = 0
    container_port: Annotated[Int32, ALWAYS, REQUIRED] = 0
    protocol: Annotated[str, Default("TCP")] = ""
    host_ip: str = msgspec.field(name="hostIP", default="")


class ConfigMapEnvSource(Builtin):
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class SecretEnvSource(Builtin):
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class EnvFromSource(Builtin):
    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class EnvVarSource(Builtin):
    field_ref: Annotated[ObjectFieldSelector | None, Doc("a field of the Pod")] = None
    resource_field_ref: Annotated[ResourceFieldSelector | None, Doc("a resource of the container")] = None
    config_map_key_ref: Annotated[ConfigMapKeySelector | None, Doc("a key of a ConfigMap")] = None
    secret_key_ref: Annotated[SecretKeySelector | None, Doc("a key of a Secret")] = None
    file_key_ref: Annotated[FileKeySelector | None, Doc("a key of an environment file in a volume")] = None


class EnvVar(SensitiveBuiltin):
    name: Annotated[str, ALWAYS, REQUIRED, Doc("name of the variable")] = ""
    value: Annotated[str, Doc("its value")] = ""
    value_from: Annotated[EnvVarSource | None, Doc("where its value comes from")] = None


class ResourceClaim(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    request: str = ""


class ResourceRequirements(Builtin):
    limits: Mapping[str, Quantity] = {}
    requests: Mapping[str, Quantity] = {}
    claims: Annotated[tuple[ResourceClaim, ...], ListMap("name")] = ()


class ContainerResizePolicy(Builtin):
    resource_name: Annotated[str, ALWAYS, REQUIRED] = ""
    restart_policy: Annotated[str, ALWAYS, REQUIRED] = ""


class ContainerRestartRuleOnExitCodes(Builtin):
    operator: str = ""
    values: Annotated[tuple[Int32, ...], SET] = ()


class ContainerRestartRule(Builtin):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class VolumeMount(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: Annotated[str, ALWAYS, REQUIRED] = ""
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""
    bind_mount_options: Annotated[tuple[str, ...], SET] = ()


class VolumeDevice(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    device_path: Annotated[str, ALWAYS, REQUIRED] = ""


class ExecAction(Builtin):
    command: Annotated[tuple[str, ...], ATOMIC] = ()


class HTTPHeader(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    value: Annotated[str, ALWAYS, REQUIRED] = ""


class HTTPGetAction(Builtin):
    path: str = ""
    port: Annotated[IntOrString, ALWAYS, REQUIRED] = 0
    host: str = ""
    scheme: str = ""
    http_headers: Annotated[tuple[HTTPHeader, ...], ATOMIC] = ()
    protocol: str | None = None


class TCPSocketAction(Builtin):
    port: Annotated[IntOrString, ALWAYS, REQUIRED] = 0
    host: str = ""


class GRPCAction(Builtin):
    port: Annotated[Int32, ALWAYS, REQUIRED] = 0
    service: Annotated[str | None, Default("")] = None
    mode: str | None = None


class Probe(Builtin):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class SleepAction(Builtin):
    seconds: Annotated[Int64, ALWAYS, REQUIRED] = 0


class LifecycleHandler(Builtin):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Builtin):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class Capabilities(Builtin):
    add: Annotated[tuple[str, ...], ATOMIC] = ()
    drop: Annotated[tuple[str, ...], ATOMIC] = ()


class SELinuxOptions(Builtin):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsSecurityContextOptions(Builtin):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SeccompProfile(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    localhost_profile: str | None = None


class AppArmorProfile(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    localhost_profile: str | None = None


class SecurityContext(Builtin):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class Container(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    image: str = ""
    command: Annotated[tuple[str, ...], ATOMIC] = ()
    args: Annotated[tuple[str, ...], ATOMIC] = ()
    working_dir: str = ""
    ports: Annotated[tuple[ContainerPort, ...], ListMap("containerPort", "protocol"), Merge("containerPort")] = ()
    env_from: Annotated[tuple[EnvFromSource, ...], ATOMIC] = ()
    env: Annotated[tuple[EnvVar, ...], ListMap("name"), Merge("name")] = ()
    resources: Annotated[ResourceRequirements, ALWAYS] = ResourceRequirements()
    resize_policy: Annotated[tuple[ContainerResizePolicy, ...], ATOMIC] = ()
    restart_policy: str | None = None
    restart_policy_rules: Annotated[tuple[ContainerRestartRule, ...], ATOMIC] = ()
    volume_mounts: Annotated[tuple[VolumeMount, ...], ListMap("mountPath"), Merge("mountPath")] = ()
    volume_devices: Annotated[tuple[VolumeDevice, ...], ListMap("devicePath"), Merge("devicePath")] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    image: str = ""
    command: Annotated[tuple[str, ...], ATOMIC] = ()
    args: Annotated[tuple[str, ...], ATOMIC] = ()
    working_dir: str = ""
    ports: Annotated[tuple[ContainerPort, ...], ListMap("containerPort", "protocol"), Merge("containerPort")] = ()
    env_from: Annotated[tuple[EnvFromSource, ...], ATOMIC] = ()
    env: Annotated[tuple[EnvVar, ...], ListMap("name"), Merge("name")] = ()
    resources: Annotated[ResourceRequirements, ALWAYS] = ResourceRequirements()
    resize_policy: Annotated[tuple[ContainerResizePolicy, ...], ATOMIC] = ()
    restart_policy: str | None = None
    restart_policy_rules: Annotated[tuple[ContainerRestartRule, ...], ATOMIC] = ()
    volume_mounts: Annotated[tuple[VolumeMount, ...], ListMap("mountPath"), Merge("mountPath")] = ()
    volume_devices: Annotated[tuple[VolumeDevice, ...], ListMap("devicePath"), Merge("devicePath")] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    target_container_name: str = ""


class Sysctl(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    value: Annotated[str, ALWAYS, REQUIRED] = ""


class PodSecurityContext(Builtin):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: Annotated[tuple[Int64, ...], ATOMIC] = ()
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    sysctls: Annotated[tuple[Sysctl, ...], ATOMIC] = ()
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class PreferredSchedulingTerm(Builtin):
    weight: Annotated[Int32, ALWAYS, REQUIRED] = 0
    preference: Annotated[NodeSelectorTerm, ALWAYS, REQUIRED] = NodeSelectorTerm()


class NodeAffinity(Builtin):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[PreferredSchedulingTerm, ...], ATOMIC] = ()


class PodAffinityTerm(Builtin):
    label_selector: LabelSelector | None = None
    namespaces: Annotated[tuple[str, ...], ATOMIC] = ()
    topology_key: Annotated[str, ALWAYS, REQUIRED] = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: Annotated[tuple[str, ...], ATOMIC] = ()
    mismatch_label_keys: Annotated[tuple[str, ...], ATOMIC] = ()


class WeightedPodAffinityTerm(Builtin):
    weight: Annotated[Int32, ALWAYS, REQUIRED] = 0
    pod_affinity_term: Annotated[PodAffinityTerm, ALWAYS, REQUIRED] = PodAffinityTerm()


class PodAffinity(Builtin):
    required_during_scheduling_ignored_during_execution: Annotated[tuple[PodAffinityTerm, ...], ATOMIC] = ()
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[WeightedPodAffinityTerm, ...], ATOMIC] = ()


class PodAntiAffinity(Builtin):
    required_during_scheduling_ignored_during_execution: Annotated[tuple[PodAffinityTerm, ...], ATOMIC] = ()
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[WeightedPodAffinityTerm, ...], ATOMIC] = ()


class Affinity(Builtin):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Builtin):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class HostAlias(Builtin):
    ip: Annotated[str, ALWAYS, REQUIRED] = ""
    hostnames: Annotated[tuple[str, ...], ATOMIC] = ()


class PodDNSConfigOption(Builtin):
    name: str = ""
    value: str | None = None


class PodDNSConfig(Builtin):
    nameservers: Annotated[tuple[str, ...], ATOMIC] = ()
    searches: Annotated[tuple[str, ...], ATOMIC] = ()
    options: Annotated[tuple[PodDNSConfigOption, ...], ATOMIC] = ()


class PodReadinessGate(Builtin):
    condition_type: Annotated[str, ALWAYS, REQUIRED] = ""


class TopologySpreadConstraint(Builtin):
    max_skew: Annotated[Int32, ALWAYS, REQUIRED] = 0
    topology_key: Annotated[str, ALWAYS, REQUIRED] = ""
    when_unsatisfiable: Annotated[str, ALWAYS, REQUIRED] = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: Annotated[tuple[str, ...], ATOMIC] = ()


class PodOS(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""


class PodSchedulingGate(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""


class PodResourceClaim(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Builtin):
    pod_group_name: str | None = None


class EvictionResponder(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, ALWAYS, REQUIRED] = ""
    priority: Annotated[Int32 | None, REQUIRED] = None


class PodSpec(Builtin):
    volumes: Annotated[tuple[Volume, ...], ListMap("name"), Merge("name", retain_keys=True)] = ()
    init_containers: Annotated[tuple[Container, ...], ListMap("name"), Merge("name")] = ()
    containers: Annotated[tuple[Container, ...], REQUIRED, ListMap("name"), Merge("name")] = ()
    ephemeral_containers: Annotated[tuple[EphemeralContainer, ...], ListMap("name"), Merge("name")] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: Annotated[Mapping[str, str], ATOMIC_MAP] = {}
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], ListMap("name"), Merge("name")] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: Annotated[tuple[Toleration, ...], ATOMIC] = ()
    host_aliases: Annotated[tuple[HostAlias, ...], ListMap("ip"), Merge("ip")] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: Annotated[tuple[PodReadinessGate, ...], ATOMIC] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: Mapping[str, Quantity] = {}
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...], ListMap("topologyKey", "whenUnsatisfiable"), Merge("topologyKey")
    ] = ()
    set_hostname_as_fqdn: bool | None = msgspec.field(name="setHostnameAsFQDN", default=None)
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: Annotated[tuple[PodSchedulingGate, ...], ListMap("name"), Merge("name")] = ()
    resource_claims: Annotated[tuple[PodResourceClaim, ...], ListMap("name"), Merge("name", retain_keys=True)] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    eviction_responders: Annotated[tuple[EvictionResponder, ...], ListMap("name"), Merge("name")] = ()


class PodCondition(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    observed_generation: Int64 = 0
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    last_probe_time: Annotated[datetime | None, ALWAYS] = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class HostIP(Builtin):
    ip: Annotated[str, ALWAYS, REQUIRED] = ""


class PodIP(Builtin):
    ip: Annotated[str, ALWAYS, REQUIRED] = ""


class ContainerStateWaiting(Builtin):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Builtin):
    started_at: Annotated[datetime | None, ALWAYS] = None


class ContainerStateTerminated(Builtin):
    exit_code: Annotated[Int32, ALWAYS, REQUIRED] = 0
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Annotated[datetime | None, ALWAYS] = None
    finished_at: Annotated[datetime | None, ALWAYS] = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerState(Builtin):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(Builtin):
    image_ref: str = ""


class VolumeStatus(Builtin):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    mount_path: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(Builtin):
    uid: Annotated[Int64, ALWAYS, REQUIRED] = 0
    gid: Annotated[Int64, ALWAYS, REQUIRED] = 0
    supplemental_groups: Annotated[tuple[Int64, ...], ATOMIC] = ()


class ContainerUser(Builtin):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Builtin):
    resource_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="resourceID", default="")
    health: str = ""
    message: str | None = None


class ResourceStatus(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    resources: Annotated[tuple[ResourceHealth, ...], ListMap("resourceID")] = ()


class ContainerStatus(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    state: Annotated[ContainerState, ALWAYS] = ContainerState()
    last_state: Annotated[ContainerState, ALWAYS] = ContainerState()
    ready: Annotated[bool, ALWAYS, REQUIRED] = False
    restart_count: Annotated[Int32, ALWAYS, REQUIRED] = 0
    image: Annotated[str, ALWAYS, REQUIRED] = ""
    image_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    started: bool | None = None
    allocated_resources: Mapping[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    volume_mounts: Annotated[tuple[VolumeMountStatus, ...], ListMap("mountPath"), Merge("mountPath")] = ()
    user: ContainerUser | None = None
    allocated_resources_status: Annotated[tuple[ResourceStatus, ...], ListMap("name"), Merge("name")] = ()
    stop_signal: str | None = None


class PodResourceClaimStatus(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Builtin):
    container_name: Annotated[str, ALWAYS, REQUIRED] = ""
    resource_name: Annotated[str, ALWAYS, REQUIRED] = ""
    request_name: Annotated[str, ALWAYS, REQUIRED] = ""


class PodExtendedResourceClaimStatus(Builtin):
    request_mappings: Annotated[tuple[ContainerExtendedResourceRequest, ...], REQUIRED, ATOMIC] = ()
    resource_claim_name: Annotated[str, ALWAYS, REQUIRED] = ""


class NodeAllocatableMappedResources(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    quantity: Annotated[Quantity | None, REQUIRED] = None


class NodeAllocatableOverheadResources(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Builtin):
    resource_claim_name: Annotated[str, ALWAYS, REQUIRED] = ""
    containers: Annotated[tuple[str, ...], SET] = ()
    mapping: Annotated[tuple[NodeAllocatableMappedResources, ...], ListMap("name"), Merge("name")] = ()
    overhead: Annotated[tuple[NodeAllocatableOverheadResources, ...], ListMap("name"), Merge("name")] = ()


class VolumeHealthCondition(Builtin):
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    reason: Annotated[str, ALWAYS, REQUIRED] = ""
    message: str = ""


class PodVolumeHealth(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    health_conditions: Annotated[tuple[VolumeHealthCondition, ...], ListMap("status", "reason"), Merge("status")] = ()
    last_transition_time: Annotated[datetime | None, ALWAYS] = None


class PodStatus(Builtin):
    observed_generation: Int64 = 0
    phase: str = ""
    conditions: Annotated[tuple[PodCondition, ...], ListMap("type"), Merge("type")] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    host_ips: Annotated[tuple[HostIP, ...], ATOMIC, Merge("ip")] = msgspec.field(name="hostIPs", default=())
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: Annotated[tuple[PodIP, ...], ListMap("ip"), Merge("ip")] = msgspec.field(name="podIPs", default=())
    start_time: datetime | None = None
    init_container_statuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    container_statuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    qos_class: str = ""
    ephemeral_container_statuses: Annotated[tuple[ContainerStatus, ...], ATOMIC] = ()
    resize: str = ""
    resource_claim_statuses: Annotated[tuple[PodResourceClaimStatus, ...], ListMap("name"), Merge("name", retain_keys=True)] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: Mapping[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: Annotated[
        tuple[NodeAllocatableResourceClaimStatus, ...], ListMap("resourceClaimName"), Merge("resourceClaimName")
    ] = ()
    volume_health: Annotated[tuple[PodVolumeHealth, ...], ListMap("name")] = ()


class Pod(Object):
    """v1 Pod."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Pod"
    spec: Annotated[PodSpec, ALWAYS, Doc("desired state")] = PodSpec()
    status: Annotated[PodStatus, ALWAYS, Doc("observed state")] = PodStatus()
