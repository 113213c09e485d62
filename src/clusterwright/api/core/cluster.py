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

    api_server_port: Annotated[Int32, Range(1, 65535), Doc("API server bind port; consumers assume 6443 when absent")] = 0
    pods: Annotated[NetworkRanges | None, Doc("pod CIDRs")] = None
    service_domain: Annotated[str, Len(1, 253), Doc("cluster DNS domain")] = ""
    services: Annotated[NetworkRanges | None, Doc("service CIDRs")] = None


class ClusterClassRef(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("ClusterClass name")] = ""
    namespace: Annotated[
        str, Len(1, 63), DNS_LABEL, Doc("ClusterClass namespace; absent = the Cluster namespace (resolved at read time, not written back)")
    ] = ""


class ControlPlaneTopologyHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[ClusterClassTemplateReference | None, Doc("external remediation template")] = None
    trigger_if: Annotated[MachineHealthCheckRemediationTriggerIf | None, Doc("absent = always remediate")] = None


class ControlPlaneTopologyHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[
        MachineHealthCheckChecks | None, Doc("if checks or remediation is non-empty this block replaces the class definition as a whole")
    ] = None
    enabled: Annotated[
        bool | None,
        Doc("tri-state: absent = create an MHC iff one is defined here or in the class; true = must be definable; false = never"),
    ] = None
    remediation: Annotated[ControlPlaneTopologyHealthCheckRemediation | None, Doc("whole-block override, as for checks")] = None


class ControlPlaneTopologyRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("force a rollout of Machines older than this instant once it has passed")] = None


class ControlPlaneTopology(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    health_check: Annotated[ControlPlaneTopologyHealthCheck | None, Doc("enable/override the ClusterClass health check")] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("extra Machine conditions that feed Machine Ready")
    ] = ()
    replicas: Annotated[Int32 | None, Doc("absent = field not written on the ControlPlane object")] = None
    rollout: Annotated[ControlPlaneTopologyRolloutSpec | None, Doc("only `after`")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("variable overrides")] = None


class MachineDeploymentTopologyHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[
        IntOrString | None, Doc("int or percent cap on parallel remediations; copied to MachineDeployment spec.remediation")
    ] = None
    template_ref: Annotated[ClusterClassTemplateReference | None, Doc("external remediation template")] = None
    trigger_if: Annotated[MachineHealthCheckRemediationTriggerIf | None, Doc("absent = always remediate")] = None


class MachineDeploymentTopologyHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[MachineHealthCheckChecks | None, Doc("whole-block override, as for the control plane")] = None
    enabled: Annotated[bool | None, Doc("tri-state, as for the control plane")] = None
    remediation: Annotated[
        MachineDeploymentTopologyHealthCheckRemediation | None, Doc("whole-block override, as for the control plane")
    ] = None


class MachineDeploymentTopologyRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("force a rollout once this instant has passed")] = None
    strategy: Annotated[MachineDeploymentRolloutStrategy | None, Doc("overrides class strategy")] = None


PINNED_VERSION = Doc("pins the workers to a version instead of spec.topology.version (feature gate ClusterTopologyWorkerVersionPinning)")


class MachineDeploymentTopology(Struct):
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("must name an entry of ClusterClass spec.workers.machineDeployments")] = ""
    deletion: Annotated[MachineDeletionSpecWithOrder | None, Doc("drain/detach/node-delete timeouts")] = None
    failure_domain: Annotated[str, Len(1, 256), Doc("one of Cluster status.failureDomains names; overrides class")] = ""
    health_check: Annotated[MachineDeploymentTopologyHealthCheck | None, Doc("enable/override the class health check")] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("seconds a Machine must stay Ready before it counts as Available; unset = 0")
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 63), DNS_SUBDOMAIN, Doc("unique topology name; part of the generated object name")] = ""
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("extra Machine conditions that feed Machine Ready")
    ] = ()
    replicas: Annotated[Int32 | None, Doc("absent = externally scaled (autoscaler); then MachineDeployment defaulting applies")] = None
    rollout: Annotated[MachineDeploymentTopologyRolloutSpec | None, Doc("rollout tuning")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("variable overrides")] = None
    version: Annotated[str, Len(1, 256), PINNED_VERSION] = ""


class MachinePoolTopology(Struct):
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("must name an entry of ClusterClass spec.workers.machinePools")] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    failure_domains: Annotated[tuple[str, ...], Items(1, 100), ATOMIC, Each(Len(1, 256)), Doc("overrides class list")] = ()
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("seconds a Machine must stay Ready before it counts as Available; unset = 0")
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 63), DNS_SUBDOMAIN, Doc("unique topology name")] = ""
    replicas: Annotated[Int32 | None, Doc("absent = externally scaled")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()
    variables: Annotated[TopologyVariableOverrides | None, Doc("variable overrides")] = None
    version: Annotated[str, Len(1, 256), PINNED_VERSION] = ""


class WorkersTopology(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    machine_deployments: Annotated[
        tuple[MachineDeploymentTopology, ...], Items(1, 2000), ListMap("name"), Doc("worker MachineDeployments")
    ] = ()
    machine_pools: Annotated[tuple[MachinePoolTopology, ...], Items(1, 2000), ListMap("name"), Doc("worker MachinePools")] = ()


class Topology(Struct):
    class_ref: Annotated[ClusterClassRef, REQUIRED, Doc("ClusterClass to instantiate")] = ClusterClassRef()
    control_plane: Annotated[ControlPlaneTopology | None, Doc("control-plane knobs")] = None
    variables: Annotated[
        tuple[ClusterVariable, ...],
        Items(1, 1000),
        ListMap("name"),
        Doc("cluster-wide variable values, checked against ClusterClass status.variables"),
    ] = ()
    version: Annotated[str, REQUIRED, Len(1, 256), Doc('Kubernetes version; a missing "v" is added')] = ""
    workers: Annotated[WorkersTopology | None, Doc("worker pools")] = None


class ClusterSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    availability_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("extra Cluster conditions folded into Available; falls back to the ClusterClass list"),
    ] = ()
    cluster_network: Annotated[ClusterNetwork | None, Doc("pod/service/API-port network settings")] = None
    control_plane_endpoint: Annotated[
        APIEndpoint | None, Doc("where clients reach the API server; filled by user, infra or control-plane provider")
    ] = None
    control_plane_ref: Annotated[
        ContractVersionedObjectReference | None, Doc("ControlPlane provider object; cannot be removed once set")
    ] = None
    infrastructure_ref: Annotated[
        ContractVersionedObjectReference | None, Doc("InfraCluster provider object; cannot be removed once set")
    ] = None
    paused: Annotated[bool | None, Doc("true stops reconciliation of the Cluster and everything that belongs to it")] = None
    topology: Annotated[Topology | None, Doc("managed topology (gate ClusterTopology)")] = None


class ClusterV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str | None, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = None
    failure_reason: Annotated[str | None, Doc("legacy terminal-failure token; informational only")] = None


class ClusterDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class ClusterInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_initialized: Annotated[bool | None, Doc("latched true once the API server accepts requests")] = None
    infrastructure_provisioned: Annotated[bool | None, Doc("latched true once infra reports provisioned (or no infraRef)")] = None


class ClusterStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    control_plane: Annotated[ReplicaCounters | None, KEEP_EMPTY, Doc("control-plane replica counters")] = None
    deprecated: Annotated[
        ClusterDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    failure_domains: Annotated[
        tuple[FailureDomain, ...], Items(1, 100), ListMap("name"), Doc("copied from InfraCluster once provisioned")
    ] = ()
    initialization: Annotated[ClusterInitializationStatus | None, Doc("one-way provisioning latches")] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"),
        Doc("display only; Failed is never set by v1beta2 controllers; unrecognised reads as Unknown"),
    ] = ""
    workers: Annotated[ReplicaCounters | None, KEEP_EMPTY, Doc("worker replica counters")] = None


class Cluster(Object):
    """A managed Kubernetes cluster."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "Cluster"
    spec: Annotated[ClusterSpec, REQUIRED, Doc("desired state")] = ClusterSpec()
    status: Annotated[ClusterStatus, Doc("observed state")] = ClusterStatus()
