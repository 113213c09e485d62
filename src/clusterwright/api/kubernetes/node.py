"""Node."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, SET, Doc, Int32, Int64, ListMap, Merge, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, Object


class Taint(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key of the taint")] = ""
    value: Annotated[str, Doc("value of the taint")] = ""
    effect: Annotated[str, ALWAYS, REQUIRED, Doc("what happens to Pods that do not tolerate it")] = ""
    time_added: Annotated[datetime | None, Doc("when it was added")] = None


class ConfigMapNodeConfigSource(Builtin):
    namespace: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: Annotated[str, ALWAYS, REQUIRED] = ""


class NodeConfigSource(Builtin):
    config_map: ConfigMapNodeConfigSource | None = None


class NodePodPreemptionPolicy(Builtin):
    disable_resize_preemption: Annotated[tuple[str, ...], SET] = ()


class NodeSpec(Builtin):
    pod_cidr: str = msgspec.field(name="podCIDR", default="")
    pod_cidrs: Annotated[tuple[str, ...], SET, Merge()] = msgspec.field(name="podCIDRs", default=())
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: Annotated[tuple[Taint, ...], ATOMIC] = ()
    config_source: NodeConfigSource | None = None
    external_id: str = msgspec.field(name="externalID", default="")
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    last_heartbeat_time: Annotated[datetime | None, ALWAYS] = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class NodeAddress(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    address: Annotated[str, ALWAYS, REQUIRED] = ""


class DaemonEndpoint(Builtin):
    port: Annotated[Int32, ALWAYS, REQUIRED] = msgspec.field(name="Port", default=0)


class NodeDaemonEndpoints(Builtin):
    kubelet_endpoint: Annotated[DaemonEndpoint, ALWAYS] = DaemonEndpoint()


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


class ContainerImage(Builtin):
    names: Annotated[tuple[str, ...], ATOMIC] = ()
    size_bytes: Int64 = 0


class AttachedVolume(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    device_path: Annotated[str, ALWAYS, REQUIRED] = ""


class NodeConfigStatus(Builtin):
    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class NodeRuntimeHandlerFeatures(Builtin):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Builtin):
    name: Annotated[str, ALWAYS] = ""
    features: NodeRuntimeHandlerFeatures | None = None


class NodeFeatures(Builtin):
    supplemental_groups_policy: bool | None = None


class NodeStatus(Builtin):
    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    phase: str = ""
    conditions: Annotated[tuple[NodeCondition, ...], ListMap("type"), Merge("type")] = ()
    addresses: Annotated[tuple[NodeAddress, ...], ListMap("type"), Merge("type")] = ()
    daemon_endpoints: Annotated[NodeDaemonEndpoints, ALWAYS] = NodeDaemonEndpoints()
    node_info: Annotated[NodeSystemInfo, ALWAYS] = NodeSystemInfo()
    images: Annotated[tuple[ContainerImage, ...], ATOMIC] = ()
    volumes_in_use: Annotated[tuple[str, ...], ATOMIC] = ()
    volumes_attached: Annotated[tuple[AttachedVolume, ...], ATOMIC] = ()
    config: NodeConfigStatus | None = None
    runtime_handlers: Annotated[tuple[NodeRuntimeHandler, ...], ATOMIC] = ()
    features: NodeFeatures | None = None
    declared_features: Annotated[tuple[str, ...], ATOMIC] = ()


class Node(Object):
    """v1 Node."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Node"
    spec: Annotated[NodeSpec, ALWAYS, Doc("desired state")] = NodeSpec()
    status: Annotated[NodeStatus, ALWAYS, Doc("observed state")] = NodeStatus()
