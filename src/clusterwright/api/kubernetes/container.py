"""Containers of a Pod and their state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, SET, Default, Doc, Int32, Int64, IntOrString, ListMap, Merge, Quantity
from clusterwright.api.kubernetes.base import Builtin, SensitiveBuiltin
from clusterwright.api.kubernetes.references import (
    ConfigMapKeySelector,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from clusterwright.api.meta import ALWAYS


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
