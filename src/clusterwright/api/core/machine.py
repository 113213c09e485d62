"""Machine, and the Machine spec that templates carry."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, DNS_SUBDOMAIN, REQUIRED, Doc, Int32, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.core.shared import (
    ContractVersionedObjectReference,
    MachineAddress,
    MachineDeletionSpec,
    MachineReadinessGate,
    MachineTaint,
    TemplateObjectMeta,
)
from clusterwright.api.kubernetes import NodeSystemInfo
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, ObservedGeneration, Struct, V1Beta1Conditions


class Bootstrap(Struct):
    config_ref: Annotated[ContractVersionedObjectReference | None, Doc("BootstrapConfig (in templates: BootstrapConfigTemplate)")] = None
    data_secret_name: Annotated[
        str | None,
        Len(0, 253),
        Doc('bootstrap secret; absent keeps the Machine Pending; `""` is legal and is what MachinePool Machines carry'),
    ] = None


class MachineSpec(Struct):
    """The spec of Machines and of Machine templates."""

    bootstrap: Annotated[Bootstrap, REQUIRED, Doc("one of configRef / dataSecretName needed (MachinePool-owned Machines exempt)")] = (
        Bootstrap()
    )
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable")] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("deletion timeouts")] = None
    failure_domain: Annotated[str, Len(1, 256), Doc("requested failure domain")] = ""
    infrastructure_ref: Annotated[ContractVersionedObjectReference, REQUIRED, Doc("InfraMachine (in templates: InfraMachineTemplate)")] = (
        ContractVersionedObjectReference()
    )
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("seconds a Machine must stay Ready before it counts as Available; unset = 0")
    ] = None
    provider_id: Annotated[str, Len(1, 512), Doc("copied from InfraMachine; must equal Node spec.providerID")] = msgspec.field(
        name="providerID", default=""
    )
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("extra Machine conditions that feed Machine Ready")
    ] = ()
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()
    version: Annotated[str, Len(1, 256), Doc('Kubernetes version; a missing "v" is added')] = ""


class MachineTemplateSpec(Struct):
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations for Machines")] = None
    spec: Annotated[MachineSpec, REQUIRED, Doc("Machine spec; refs point at templates")] = MachineSpec()


class MachineDeletionStatus(Struct):
    node_drain_start_time: Annotated[datetime | None, Doc("start of drain; base for the drain timeout")] = None
    wait_for_node_volume_detach_start_time: Annotated[datetime | None, Doc("start of detach wait; base for its timeout")] = None
    wait_for_pre_drain_hook_start_time: Annotated[datetime | None, Doc("when waiting for pre-drain hooks began")] = None
    wait_for_pre_terminate_hook_start_time: Annotated[datetime | None, Doc("when waiting for pre-terminate hooks began")] = None


class MachineV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str | None, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = None
    failure_reason: Annotated[str | None, Doc("legacy terminal-failure token; informational only")] = None


class MachineDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class MachineInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_data_secret_created: Annotated[bool | None, Doc("latched")] = None
    infrastructure_provisioned: Annotated[bool | None, Doc("latched")] = None


class MachineNodeReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("Node name")] = ""


class MachineStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    addresses: Annotated[tuple[MachineAddress, ...], Items(None, 256), ATOMIC, Doc("copied from InfraMachine")] = ()
    certificates_expiry_date: Annotated[datetime | None, Doc("control-plane Machines only")] = None
    conditions: Conditions = ()
    deletion: Annotated[MachineDeletionStatus | None, KEEP_EMPTY, Doc("present only while deleting and drain/detach has begun")] = None
    deprecated: Annotated[
        MachineDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    failure_domain: Annotated[str, Len(1, 256), Doc("actual placement reported by InfraMachine")] = ""
    initialization: Annotated[MachineInitializationStatus | None, Doc("one-way provisioning latches")] = None
    last_updated: Annotated[datetime | None, Doc("last phase change")] = None
    node_info: Annotated[NodeSystemInfo | None, KEEP_EMPTY, Doc("copy of Node status.nodeInfo")] = None
    node_ref: Annotated[MachineNodeReference | None, Doc("Node found by providerID")] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown"),
        Doc("display only; Failed is legacy"),
    ] = ""


class Machine(Object):
    """One host that runs, or will run, a Node."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "Machine"
    spec: Annotated[MachineSpec, REQUIRED, Doc("desired state")] = MachineSpec()
    status: Annotated[MachineStatus, Doc("observed state")] = MachineStatus()
