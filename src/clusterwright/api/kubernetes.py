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

    name: Annotated[str, Default(""), Doc("name of the object")] = ""


class ObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    kind: Annotated[str, Doc("kind of the object")] = ""
    namespace: Annotated[str, Doc("its namespace")] = ""
    name: Annotated[str, Doc("its name")] = ""
    uid: Annotated[str, Doc("its uid")] = ""
    api_version: Annotated[str, Doc("its group and version")] = ""
    resource_version: Annotated[str, Doc("its resourceVersion")] = ""
    field_path: Annotated[str, Doc("the part of it that is meant")] = ""


class ObjectFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_version: Annotated[str, Doc("version that fieldPath is written in")] = ""
    field_path: Annotated[str, ALWAYS, REQUIRED, Doc("path of the field")] = ""


class ResourceFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    container_name: Annotated[str, Doc("name of the container")] = ""
    resource: Annotated[str, ALWAYS, REQUIRED, Doc("name of the resource")] = ""
    divisor: Annotated[Quantity, ALWAYS, Doc("unit that the value is given in")] = "0"


class ConfigMapKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("name of the ConfigMap")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the ConfigMap")] = ""
    optional: Annotated[bool | None, Doc("whether it may be missing")] = None


class SecretKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("name of the Secret")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the Secret")] = ""
    optional: Annotated[bool | None, Doc("whether it may be missing")] = None


class FileKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    volume_name: Annotated[str, ALWAYS, REQUIRED, Doc("name of the volume")] = ""
    path: Annotated[str, ALWAYS, REQUIRED, Doc("path of the file in the volume")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the file")] = ""
    optional: Annotated[bool | None, Default(False), Doc("whether it may be missing")] = None


class EnvVarSource(Builtin):
    field_ref: Annotated[ObjectFieldSelector | None, Doc("a field of the Pod")] = None
    resource_field_ref: Annotated[ResourceFieldSelector | None, Doc("a resource of the container")] = None
    config_map_key_ref: Annotated[ConfigMapKeySelector | None, Doc("a key of a ConfigMap")] = None
    secret_key_ref: Annotated[SecretKeySelector | None, Doc("a key of a Secret")] = None
    file_key_ref: Annotated[FileKeySelector | None, Doc("a key of an environment file in a volume")] = None


class EnvVar(Builtin):
    """An environment variable. It may hold credentials, so its repr never shows its content."""

    name: Annotated[str, ALWAYS, REQUIRED, Doc("name of the variable")] = ""
    value: Annotated[str, Doc("its value")] = ""
    value_from: Annotated[EnvVarSource | None, Doc("where its value comes from")] = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Taint(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key of the taint")] = ""
    value: Annotated[str, Doc("value of the taint")] = ""
    effect: Annotated[str, ALWAYS, REQUIRED, Doc("what happens to Pods that do not tolerate it")] = ""
    time_added: Annotated[datetime | None, Doc("when it was added")] = None


class NodeSwapStatus(Builtin):
    capacity: Annotated[Int64 | None, Doc("bytes of swap")] = None


class NodeSystemInfo(Builtin):
    machine_id: Annotated[str, ALWAYS, REQUIRED, Doc("machine-id of the operating system")] = msgspec.field(name="machineID", default="")
    system_uuid: Annotated[str, ALWAYS, REQUIRED, Doc("UUID of the hardware")] = msgspec.field(name="systemUUID", default="")
    boot_id: Annotated[str, ALWAYS, REQUIRED, Doc("identity of this boot")] = msgspec.field(name="bootID", default="")
    kernel_version: Annotated[str, ALWAYS, REQUIRED, Doc("version of the kernel")] = ""
    os_image: Annotated[str, ALWAYS, REQUIRED, Doc("name of the operating system image")] = ""
    container_runtime_version: Annotated[str, ALWAYS, REQUIRED, Doc("version of the container runtime")] = ""
    kubelet_version: Annotated[str, ALWAYS, REQUIRED, Doc("version of the kubelet")] = ""
    kube_proxy_version: Annotated[str, ALWAYS, REQUIRED, Doc("deprecated: version of kube-proxy")] = ""
    operating_system: Annotated[str, ALWAYS, REQUIRED, Doc("operating system")] = ""
    architecture: Annotated[str, ALWAYS, REQUIRED, Doc("processor architecture")] = ""
    swap: Annotated[NodeSwapStatus | None, Doc("swap of the Node")] = None


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
