"""Cluster and its managed topology."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from clusterwright.api.constraints import (
    ATOMIC,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    REQUIRED,
    Doc,
    Each,
    Int32,
    IntOrString,
    Items,
    Len,
    ListMap,
    OneOf,
    Props,
    Range,
)
from clusterwright.api.core.shared import (
    APIEndpoint,
    ClusterClassTemplateReference,
    ClusterVariable,
    ContractVersionedObjectReference,
    FailureDomain,
    MachineDeletionSpec,
    MachineDeletionSpecWithOrder,
    MachineDeploymentRolloutStrategy,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediationTriggerIf,
    MachineReadinessGate,
    MachineTaint,
    NetworkRanges,
    ReplicaCounters,
    TemplateObjectMeta,
    TopologyVariableOverrides,
)
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, ObservedGeneration, Struct, V1Beta1Conditions


class ClusterNetwork(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    api_server_port: Annotated[Int32, Range(1, 65535), Doc("The port on which API servers listen. If absent, 6443 is used.")] = 0
    pods: Annotated[NetworkRanges | None, Doc("The address ranges of Pods.")] = None
    service_domain: Annotated[str, Len(1, 253), Doc("The DNS domain of Services in the cluster.")] = ""
    services: Annotated[NetworkRanges | None, Doc("The address ranges of Services.")] = None


class ClusterClassRef(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the ClusterClass.")] = ""
    namespace: Annotated[
        str,
        Len(1, 63),
        DNS_LABEL,
        Doc("The namespace of the ClusterClass. If absent, it is the namespace of the Cluster; no default is written."),
    ] = ""


class ControlPlaneTopologyHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[
        ClusterClassTemplateReference | None, Doc("A template from which an object for external remediation is created.")
    ] = None
    trigger_if: Annotated[
        MachineHealthCheckRemediationTriggerIf | None, Doc("A limit above which nothing is remediated. If absent, there is no limit.")
    ] = None


class ControlPlaneTopologyHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[
        MachineHealthCheckChecks | None,
        Doc("The conditions of unhealthy Machines. If checks or remediation is set, both replace those of the class."),
    ] = None
    enabled: Annotated[
        bool | None,
        Doc(
            "If true, a health check must be defined; if false, none is created; if absent, it is created if it "
            "is defined here or in the class."
        ),
    ] = None
    remediation: Annotated[
        ControlPlaneTopologyHealthCheckRemediation | None,
        Doc("How unhealthy Machines are remediated. If checks or remediation is set, both replace those of the class."),
    ] = None


class ControlPlaneTopologyRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("A time. When it has passed, Machines that are older than it are replaced.")] = None


class ControlPlaneTopology(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    health_check: Annotated[
        ControlPlaneTopologyHealthCheck | None,
        Doc("The health check of the control plane. It enables, disables or replaces that of the ClusterClass."),
    ] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions of Machines that their Ready condition depends on."),
    ] = ()
    replicas: Annotated[Int32 | None, Doc("The number of Machines. If absent, the topology does not set it.")] = None
    rollout: Annotated[ControlPlaneTopologyRolloutSpec | None, Doc("When Machines are replaced.")] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("The values of variables that differ for these Machines.")] = None


class MachineDeploymentTopologyHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[
        IntOrString | None,
        Doc("The number or percentage of Machines that may be remediated at the same time. It is copied to the MachineDeployment."),
    ] = None
    template_ref: Annotated[
        ClusterClassTemplateReference | None, Doc("A template from which an object for external remediation is created.")
    ] = None
    trigger_if: Annotated[
        MachineHealthCheckRemediationTriggerIf | None, Doc("A limit above which nothing is remediated. If absent, there is no limit.")
    ] = None


class MachineDeploymentTopologyHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[
        MachineHealthCheckChecks | None,
        Doc(
            "The conditions of unhealthy Machines. "
            "If checks or remediation is set, both replace those of the class, as for the control plane."
        ),
    ] = None
    enabled: Annotated[
        bool | None,
        Doc(
            "If true, a health check must be defined; if false, none is created; if absent, it is created if it "
            "is defined. It works as for the control plane."
        ),
    ] = None
    remediation: Annotated[
        MachineDeploymentTopologyHealthCheckRemediation | None,
        Doc(
            "The conditions of unhealthy Machines. "
            "If checks or remediation is set, both replace those of the class, as for the control plane."
        ),
    ] = None


class MachineDeploymentTopologyRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("A time. When it has passed, older Machines are replaced.")] = None
    strategy: Annotated[
        MachineDeploymentRolloutStrategy | None, Doc("How Machines are replaced. It overrides the strategy of the class.")
    ] = None


PINNED_VERSION = Doc(
    "A Kubernetes version for these workers instead of spec.topology.version (feature gate ClusterTopologyWorkerVersionPinning)."
)


class MachineDeploymentTopology(Struct):
    class_: Annotated[
        str, REQUIRED, Len(1, 256), Doc("The class of the workers: an entry of spec.workers.machineDeployments of the ClusterClass.")
    ] = ""
    deletion: Annotated[MachineDeletionSpecWithOrder | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = (
        None
    )
    failure_domain: Annotated[
        str,
        Len(1, 256),
        Doc("The failure domain of the Machines, one of status.failureDomains of the Cluster. It overrides that of the class."),
    ] = ""
    health_check: Annotated[
        MachineDeploymentTopologyHealthCheck | None,
        Doc("The health check of these workers. It enables, disables or replaces that of the class."),
    ] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which a Machine must be Ready before it counts as Available. If absent, it is 0.")
    ] = None
    name: Annotated[
        str,
        REQUIRED,
        Len(1, 63),
        DNS_SUBDOMAIN,
        Doc("The unique name of these workers in the topology. It is a part of the names of the created objects."),
    ] = ""
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions of Machines that their Ready condition depends on."),
    ] = ()
    replicas: Annotated[
        Int32 | None,
        Doc(
            "The number of Machines. If absent, another program such as an autoscaler may set it, and the "
            "MachineDeployment has its default."
        ),
    ] = None
    rollout: Annotated[MachineDeploymentTopologyRolloutSpec | None, Doc("When and how Machines are replaced.")] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("The values of variables that differ for these Machines.")] = None
    version: Annotated[str, Len(1, 256), PINNED_VERSION] = ""


class MachinePoolTopology(Struct):
    class_: Annotated[
        str, REQUIRED, Len(1, 256), Doc("The class of the pool: an entry of spec.workers.machinePools of the ClusterClass.")
    ] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    failure_domains: Annotated[
        tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("The failure domains of the pool. They override those of the class.")
    ] = ()
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which a Machine must be Ready before it counts as Available. If absent, it is 0.")
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 63), DNS_SUBDOMAIN, Doc("The unique name of the pool in the topology.")] = ""
    replicas: Annotated[Int32 | None, Doc("The number of machines. If absent, another program such as an autoscaler may set it.")] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("The values of variables that differ for these Machines.")] = None
    version: Annotated[str, Len(1, 256), PINNED_VERSION] = ""


class WorkersTopology(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    machine_deployments: Annotated[
        tuple[MachineDeploymentTopology, ...], Items(1, 2000), ListMap("name"), Doc("The MachineDeployments of workers.")
    ] = ()
    machine_pools: Annotated[tuple[MachinePoolTopology, ...], Items(1, 2000), ListMap("name"), Doc("The MachinePools of workers.")] = ()


class Topology(Struct):
    class_ref: Annotated[ClusterClassRef, REQUIRED, Doc("The ClusterClass that the cluster is created from.")] = ClusterClassRef()
    control_plane: Annotated[ControlPlaneTopology | None, Doc("The settings of the control plane.")] = None
    variables: Annotated[
        tuple[ClusterVariable, ...],
        Items(1, 1000),
        ListMap("name"),
        Doc("The values of variables for the whole cluster. They must fit the definitions in status.variables of the ClusterClass."),
    ] = ()
    version: Annotated[str, REQUIRED, Len(1, 256), Doc('The Kubernetes version. A missing "v" at the beginning is added.')] = ""
    workers: Annotated[WorkersTopology | None, Doc("The groups of workers.")] = None


class ClusterSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    availability_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions of the Cluster that Available depends on. If absent, those of the ClusterClass apply."),
    ] = ()
    cluster_network: Annotated[ClusterNetwork | None, Doc("The networks of Pods and Services, and the port of the API server.")] = None
    control_plane_endpoint: Annotated[
        APIEndpoint | None, Doc("The address at which clients reach the API server. A user or a provider sets it.")
    ] = None
    control_plane_ref: Annotated[
        ContractVersionedObjectReference | None,
        Doc("A reference to the control plane object of a provider. It cannot be removed once it is set."),
    ] = None
    infrastructure_ref: Annotated[
        ContractVersionedObjectReference | None,
        Doc("A reference to the infrastructure object of a provider. It cannot be removed once it is set."),
    ] = None
    paused: Annotated[bool | None, Doc("If true, no controller changes the Cluster or the objects that belong to it.")] = None
    topology: Annotated[
        Topology | None,
        Doc("A description of the whole cluster, from which its objects are created with a ClusterClass (feature gate ClusterTopology)."),
    ] = None


class ClusterV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[
        str | None, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")
    ] = None
    failure_reason: Annotated[str | None, Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = None


class ClusterDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class ClusterInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_initialized: Annotated[bool | None, Doc("True after the API server has accepted requests for the first time.")] = None
    infrastructure_provisioned: Annotated[
        bool | None, Doc("True after the infrastructure was provisioned, or if the Cluster has none.")
    ] = None


class ClusterStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    control_plane: Annotated[ReplicaCounters | None, KEEP_EMPTY, Doc("The numbers of control plane Machines.")] = None
    deprecated: Annotated[
        ClusterDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    failure_domains: Annotated[
        tuple[FailureDomain, ...], Items(1, 100), ListMap("name"), Doc("The failure domains that the infrastructure object reported.")
    ] = ()
    initialization: Annotated[
        ClusterInitializationStatus | None, Doc("The steps of provisioning that are done. They are never set back.")
    ] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"),
        Doc("A summary for people. Programs must read conditions. Unknown values are shown as Unknown; Failed is never set."),
    ] = ""
    workers: Annotated[ReplicaCounters | None, KEEP_EMPTY, Doc("The numbers of worker Machines.")] = None


class Cluster(Object):
    """A managed Kubernetes cluster."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "Cluster"
    spec: Annotated[ClusterSpec, REQUIRED, Doc("The desired state, which users set.")] = ClusterSpec()
    status: Annotated[ClusterStatus, Doc("The observed state, which controllers write.")] = ClusterStatus()
