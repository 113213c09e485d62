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
    config_ref: Annotated[
        ContractVersionedObjectReference | None, Doc("A reference to the bootstrap configuration, or in templates to its template.")
    ] = None
    data_secret_name: Annotated[
        str | None,
        Len(0, 253),
        Doc(
            "The name of the Secret with the bootstrap data. The Machine stays Pending while it is absent. "
            "Machines of a MachinePool may have an empty one."
        ),
    ] = None


class MachineSpec(Struct):
    """The spec of Machines and of Machine templates."""

    bootstrap: Annotated[
        Bootstrap, REQUIRED, Doc("The bootstrap data. configRef or dataSecretName is required, except for Machines of a MachinePool.")
    ] = Bootstrap()
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("The name of the Cluster. It cannot be changed.")] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits of a deletion.")] = None
    failure_domain: Annotated[str, Len(1, 256), Doc("The failure domain in which the Machine must be placed.")] = ""
    infrastructure_ref: Annotated[
        ContractVersionedObjectReference, REQUIRED, Doc("A reference to the infrastructure machine, or in templates to its template.")
    ] = ContractVersionedObjectReference()
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which a Machine must be Ready before it counts as Available. If absent, it is 0.")
    ] = None
    provider_id: Annotated[
        str,
        Len(1, 512),
        Doc("The identity of the machine. It is copied from the infrastructure machine and equals spec.providerID of the Node."),
    ] = msgspec.field(name="providerID", default="")
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions of Machines that their Ready condition depends on."),
    ] = ()
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()
    version: Annotated[str, Len(1, 256), Doc('The Kubernetes version. A missing "v" at the beginning is added.')] = ""


class MachineTemplateSpec(Struct):
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of new Machines.")] = None
    spec: Annotated[MachineSpec, REQUIRED, Doc("The spec of the Machines. It refers to templates.")] = MachineSpec()


class MachineDeletionStatus(Struct):
    node_drain_start_time: Annotated[datetime | None, Doc("The time at which draining started. Its time limit counts from then.")] = None
    wait_for_node_volume_detach_start_time: Annotated[
        datetime | None, Doc("The time at which waiting for volumes started. Its time limit counts from then.")
    ] = None
    wait_for_pre_drain_hook_start_time: Annotated[datetime | None, Doc("The time at which waiting for hooks before draining started.")] = (
        None
    )
    wait_for_pre_terminate_hook_start_time: Annotated[
        datetime | None, Doc("The time at which waiting for hooks before the deletion of the infrastructure started.")
    ] = None


class MachineV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[
        str | None, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")
    ] = None
    failure_reason: Annotated[str | None, Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = None


class MachineDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class MachineInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_data_secret_created: Annotated[
        bool | None, Doc("True after the bootstrap data existed for the first time. It is never set back.")
    ] = None
    infrastructure_provisioned: Annotated[
        bool | None, Doc("True after the bootstrap data existed for the first time. It is never set back.")
    ] = None


class MachineNodeReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the Node.")] = ""


class MachineStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    addresses: Annotated[
        tuple[MachineAddress, ...], Items(None, 256), ATOMIC, Doc("The addresses, copied from the infrastructure machine.")
    ] = ()
    certificates_expiry_date: Annotated[datetime | None, Doc("The time at which certificates on a control plane machine expire.")] = None
    conditions: Conditions = ()
    deletion: Annotated[MachineDeletionStatus | None, KEEP_EMPTY, Doc("The progress of a deletion, after draining has started.")] = None
    deprecated: Annotated[
        MachineDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    failure_domain: Annotated[
        str, Len(1, 256), Doc("The failure domain in which the machine is, as the infrastructure machine reports it.")
    ] = ""
    initialization: Annotated[
        MachineInitializationStatus | None, Doc("The steps of provisioning that are done. They are never set back.")
    ] = None
    last_updated: Annotated[datetime | None, Doc("The time at which phase last changed.")] = None
    node_info: Annotated[NodeSystemInfo | None, KEEP_EMPTY, Doc("Facts about the Node, copied from its status.nodeInfo.")] = None
    node_ref: Annotated[MachineNodeReference | None, Doc("The Node of the Machine, which is found by its providerID.")] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown"),
        Doc("A summary for people. Programs must read conditions. Failed is not set any more."),
    ] = ""


class Machine(Object):
    """One host that runs, or will run, a Node."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "Machine"
    spec: Annotated[MachineSpec, REQUIRED, Doc("The desired state, which users set.")] = MachineSpec()
    status: Annotated[MachineStatus, Doc("The observed state, which controllers write.")] = MachineStatus()
