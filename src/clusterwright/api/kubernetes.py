"""Built-in kinds of Kubernetes: only the fields that are read here. Other fields survive every write.

A kind that is read in one place, or only written, needs no model: a `GroupVersionKind` reads it as `Unstructured`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC_MAP, REQUIRED, Default, Doc, Int64, Quantity
from clusterwright.api.meta import ALWAYS, Object, Struct


class Builtin(Struct):
    """A part of a built-in kind. Upstream holds nested objects by pointer: {} differs from absent."""

    omit_zero: ClassVar[bool] = False


class BuiltinObject(Object):
    """A built-in kind."""

    omit_zero: ClassVar[bool] = False


# ------------------------------------------------------------------------------------------ parts of our own kinds


class LocalObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("The name of the referenced object.")] = ""


class ObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    kind: Annotated[str, Doc("The kind of the object.")] = ""
    namespace: Annotated[str, Doc("The namespace of the object.")] = ""
    name: Annotated[str, Doc("The name of the object.")] = ""
    uid: Annotated[str, Doc("The UID of the object.")] = ""
    api_version: Annotated[str, Doc("The API group and version of the object.")] = ""
    resource_version: Annotated[str, Doc("The resource version of the object.")] = ""
    field_path: Annotated[str, Doc("The part of the object that is meant.")] = ""


class ObjectFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_version: Annotated[str, Doc("The API version in which fieldPath is written.")] = ""
    field_path: Annotated[str, ALWAYS, REQUIRED, Doc("The path of the field.")] = ""


class ResourceFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    container_name: Annotated[str, Doc("The name of the container.")] = ""
    resource: Annotated[str, ALWAYS, REQUIRED, Doc("The name of the resource.")] = ""
    divisor: Annotated[Quantity, ALWAYS, Doc("The unit of the value.")] = "0"


class ConfigMapKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("The name of the ConfigMap.")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("The key in the ConfigMap.")] = ""
    optional: Annotated[bool | None, Doc("Whether the source may be missing.")] = None


class SecretKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("The name of the Secret.")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("The key in the Secret.")] = ""
    optional: Annotated[bool | None, Doc("Whether the source may be missing.")] = None


class FileKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    volume_name: Annotated[str, ALWAYS, REQUIRED, Doc("The name of the volume.")] = ""
    path: Annotated[str, ALWAYS, REQUIRED, Doc("The path of the file in the volume.")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("The key in the file.")] = ""
    optional: Annotated[bool | None, Default(False), Doc("Whether the source may be missing.")] = None


class EnvVarSource(Builtin):
    field_ref: Annotated[ObjectFieldSelector | None, Doc("A field of the Pod.")] = None
    resource_field_ref: Annotated[ResourceFieldSelector | None, Doc("A resource of the container.")] = None
    config_map_key_ref: Annotated[ConfigMapKeySelector | None, Doc("A key of a ConfigMap.")] = None
    secret_key_ref: Annotated[SecretKeySelector | None, Doc("A key of a Secret.")] = None
    file_key_ref: Annotated[FileKeySelector | None, Doc("A key of a file with environment variables in a volume.")] = None


class EnvVar(Builtin):
    """An environment variable. It may hold credentials, so its repr never shows its content."""

    name: Annotated[str, ALWAYS, REQUIRED, Doc("The name of the variable.")] = ""
    value: Annotated[str, Doc("The value of the environment variable.")] = ""
    value_from: Annotated[EnvVarSource | None, Doc("The source of the value.")] = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Taint(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED, Doc("The key of the taint.")] = ""
    value: Annotated[str, Doc("The value of the taint.")] = ""
    effect: Annotated[str, ALWAYS, REQUIRED, Doc("The effect on Pods that do not tolerate the taint.")] = ""
    time_added: Annotated[datetime | None, Doc("The time at which the taint was added.")] = None


class NodeSwapStatus(Builtin):
    capacity: Annotated[Int64 | None, Doc("The size of the swap space, in bytes.")] = None


class NodeSystemInfo(Builtin):
    machine_id: Annotated[str, ALWAYS, REQUIRED, Doc("The machine-id of the operating system.")] = msgspec.field(
        name="machineID", default=""
    )
    system_uuid: Annotated[str, ALWAYS, REQUIRED, Doc("The UUID of the hardware.")] = msgspec.field(name="systemUUID", default="")
    boot_id: Annotated[str, ALWAYS, REQUIRED, Doc("The identity of this start of the machine.")] = msgspec.field(name="bootID", default="")
    kernel_version: Annotated[str, ALWAYS, REQUIRED, Doc("The version of the kernel.")] = ""
    os_image: Annotated[str, ALWAYS, REQUIRED, Doc("The name of the operating system's image.")] = ""
    container_runtime_version: Annotated[str, ALWAYS, REQUIRED, Doc("The version of the container runtime.")] = ""
    kubelet_version: Annotated[str, ALWAYS, REQUIRED, Doc("The version of the kubelet.")] = ""
    kube_proxy_version: Annotated[str, ALWAYS, REQUIRED, Doc("The version of kube-proxy. It is deprecated.")] = ""
    operating_system: Annotated[str, ALWAYS, REQUIRED, Doc("The operating system.")] = ""
    architecture: Annotated[str, ALWAYS, REQUIRED, Doc("The architecture of the processor.")] = ""
    swap: Annotated[NodeSwapStatus | None, Doc("The swap space of the Node.")] = None


# ---------------------------------------------------------------------------------------------------------- kinds


class Namespace(BuiltinObject):
    api_version: str = "v1"
    kind: str = "Namespace"


class Secret(BuiltinObject):
    """A Secret. Its repr shows only its key."""

    api_version: str = "v1"
    kind: str = "Secret"
    immutable: bool | None = None
    data: Mapping[str, bytes] = {}
    string_data: Mapping[str, str] = {}
    type: str = ""

    def __repr__(self) -> str:
        return f"{self.kind}({self.key})"


class ConfigMap(BuiltinObject):
    api_version: str = "v1"
    kind: str = "ConfigMap"
    immutable: bool | None = None
    data: Mapping[str, str] = {}
    binary_data: Mapping[str, bytes] = {}


class NodeSpec(Builtin):
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    last_heartbeat_time: Annotated[datetime | None, ALWAYS] = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class NodeAddress(Builtin):
    type: Annotated[str, ALWAYS] = ""
    address: Annotated[str, ALWAYS] = ""


class AttachedVolume(Builtin):
    name: Annotated[str, ALWAYS] = ""
    device_path: Annotated[str, ALWAYS] = ""


class NodeStatus(Builtin):
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: Annotated[NodeSystemInfo, ALWAYS] = NodeSystemInfo()
    volumes_attached: tuple[AttachedVolume, ...] = ()


class Node(BuiltinObject):
    api_version: str = "v1"
    kind: str = "Node"
    spec: Annotated[NodeSpec, ALWAYS] = NodeSpec()
    status: Annotated[NodeStatus, ALWAYS] = NodeStatus()


class EmptyDirVolumeSource(Builtin):
    medium: str = ""


class PersistentVolumeClaimVolumeSource(Builtin):
    claim_name: Annotated[str, ALWAYS] = ""


class Volume(Builtin):
    name: Annotated[str, ALWAYS] = ""
    empty_dir: EmptyDirVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class PodSpec(Builtin):
    node_name: str = ""
    volumes: tuple[Volume, ...] = ()


class PodCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    reason: str = ""
    message: str = ""


class ContainerStateWaiting(Builtin):
    reason: str = ""


class ContainerStateTerminated(Builtin):
    exit_code: int = 0
    reason: str = ""


class ContainerState(Builtin):
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Builtin):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Builtin):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(BuiltinObject):
    api_version: str = "v1"
    kind: str = "Pod"
    spec: Annotated[PodSpec, ALWAYS] = PodSpec()
    status: Annotated[PodStatus, ALWAYS] = PodStatus()


class CSIPersistentVolumeSource(Builtin):
    driver: Annotated[str, ALWAYS] = ""
    volume_handle: Annotated[str, ALWAYS] = ""


class PersistentVolumeSpec(Builtin):
    csi: CSIPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None


class PersistentVolume(BuiltinObject):
    api_version: str = "v1"
    kind: str = "PersistentVolume"
    spec: Annotated[PersistentVolumeSpec, ALWAYS] = PersistentVolumeSpec()


class VolumeAttachmentSource(Builtin):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Builtin):
    attacher: Annotated[str, ALWAYS] = ""
    source: Annotated[VolumeAttachmentSource, ALWAYS] = VolumeAttachmentSource()
    node_name: Annotated[str, ALWAYS] = ""


class VolumeAttachmentStatus(Builtin):
    attached: Annotated[bool, ALWAYS] = False


class VolumeAttachment(BuiltinObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttachment"
    spec: Annotated[VolumeAttachmentSpec, ALWAYS] = VolumeAttachmentSpec()
    status: Annotated[VolumeAttachmentStatus, ALWAYS] = VolumeAttachmentStatus()


class DaemonSet(BuiltinObject):
    api_version: str = "apps/v1"
    kind: str = "DaemonSet"


class LeaseSpec(Builtin):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(BuiltinObject):
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    spec: Annotated[LeaseSpec, ALWAYS] = LeaseSpec()


class MutatingWebhookConfiguration(BuiltinObject):
    api_version: str = "admissionregistration.k8s.io/v1"
    kind: str = "MutatingWebhookConfiguration"


class ValidatingWebhookConfiguration(BuiltinObject):
    api_version: str = "admissionregistration.k8s.io/v1"
    kind: str = "ValidatingWebhookConfiguration"


class CustomResourceDefinition(BuiltinObject):
    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"
