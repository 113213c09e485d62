"""Pod and the Pod spec that templates carry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED, SET, Doc, Int32, Int64, ListMap, Merge, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.kubernetes.container import (
    AppArmorProfile,
    Container,
    ContainerStatus,
    EphemeralContainer,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from clusterwright.api.kubernetes.references import LocalObjectReference, NodeSelector, NodeSelectorTerm
from clusterwright.api.kubernetes.volume import Volume
from clusterwright.api.meta import ALWAYS, LabelSelector, Object


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
