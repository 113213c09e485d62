"""KubeadmControlPlane and its template."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.constraints import REQUIRED, Doc, Int32, IntOrString, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.core.shared import (
    ContractVersionedObjectReference,
    MachineDeletionSpec,
    MachineNamingSpec,
    MachineReadinessGate,
    MachineTaint,
    StatusVersions,
    TemplateObjectMeta,
)
from clusterwright.api.meta import ALWAYS, KEEP_EMPTY, Conditions, Object, ObservedGeneration, Struct, V1Beta1Conditions


class KubeadmControlPlaneRolloutBeforeSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    certificates_expiry_days: Annotated[Int32, Range(7), Doc("roll when certs expire within N days")] = 0


class KubeadmControlPlaneRolloutStrategyRollingUpdate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_surge: Annotated[IntOrString | None, Doc("0 or 1; defaults to 1")] = None


class KubeadmControlPlaneRolloutStrategy(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    rolling_update: Annotated[KubeadmControlPlaneRolloutStrategyRollingUpdate | None, Doc("how Machines are replaced")] = None
    type: Annotated[str, REQUIRED, OneOf("RollingUpdate"), Doc("always RollingUpdate")] = ""


class KubeadmControlPlaneRolloutSpec(Struct):
    """The rollout settings of KubeadmControlPlane and its template."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("roll Machines older than this instant once passed")] = None
    before: Annotated[KubeadmControlPlaneRolloutBeforeSpec | None, Doc("roll ahead of an event")] = None
    strategy: Annotated[KubeadmControlPlaneRolloutStrategy | None, Doc("how a rollout goes")] = None


class KubeadmControlPlaneRemediationSpec(Struct):
    """The remediation settings of a KubeadmControlPlane."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_retry: Annotated[Int32 | None, Doc("absent = unlimited")] = None
    min_healthy_period_seconds: Annotated[Int32 | None, Range(0), Doc("absent = 3600 at runtime")] = None
    retry_period_seconds: Annotated[Int32 | None, Range(0), Doc("absent = immediate")] = None


class KubeadmControlPlaneMachineTemplateSpec(Struct):
    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    infrastructure_ref: Annotated[ContractVersionedObjectReference, REQUIRED, Doc("InfraMachineTemplate")] = (
        ContractVersionedObjectReference()
    )
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("further Machine conditions that feed Machine Ready")
    ] = ()
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()


class KubeadmControlPlaneMachineTemplate(Struct):
    metadata: Annotated[TemplateObjectMeta | None, Doc("propagated in place")] = None
    spec: Annotated[KubeadmControlPlaneMachineTemplateSpec, REQUIRED, Doc("spec of the Machines")] = (
        KubeadmControlPlaneMachineTemplateSpec()
    )


class KubeadmControlPlaneSpec(Struct):
    kubeadm_config_spec: Annotated[KubeadmConfigSpec | None, Doc("bootstrap settings for all control-plane Machines")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("Machine name template")] = None
    machine_template: Annotated[KubeadmControlPlaneMachineTemplate, REQUIRED, Doc("Machine shape")] = KubeadmControlPlaneMachineTemplate()
    remediation: Annotated[KubeadmControlPlaneRemediationSpec | None, Doc("how unhealthy Machines are remediated")] = None
    replicas: Annotated[Int32 | None, Doc("defaulted to 1; odd unless external etcd")] = None
    rollout: Annotated[KubeadmControlPlaneRolloutSpec | None, Doc("rollout tuning")] = None
    version: Annotated[str, REQUIRED, Len(1, 256), Doc("Kubernetes version; at most one minor version up per update")] = ""


class KubeadmControlPlaneV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str | None, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = None
    failure_reason: Annotated[str, Doc("legacy terminal-failure token; informational only")] = ""
    ready_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    unavailable_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    updated_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0


class KubeadmControlPlaneDeprecatedStatus(Struct):
    v1beta1: Annotated[KubeadmControlPlaneV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class KubeadmControlPlaneInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_initialized: Annotated[bool | None, Doc("contract latch")] = None


class LastRemediationStatus(Struct):
    machine: Annotated[str, REQUIRED, Len(1, 253), Doc("remediated Machine")] = ""
    retry_count: Annotated[Int32 | None, REQUIRED, Range(0), Doc("how often it was tried before")] = None
    time: Annotated[datetime | None, REQUIRED, Doc("when it was remediated")] = None


class KubeadmControlPlaneStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("Machines with Available=True")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        KubeadmControlPlaneDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    initialization: Annotated[KubeadmControlPlaneInitializationStatus | None, Doc("one-way latches")] = None
    last_remediation: Annotated[LastRemediationStatus | None, Doc("bookkeeping for retries")] = None
    observed_generation: ObservedGeneration = 0
    ready_replicas: Annotated[Int32 | None, Doc("Machines with Ready=True")] = None
    replicas: Annotated[Int32 | None, Doc("observed Machine count (includes provisioning and deleting)")] = None
    selector: Annotated[str, Len(1, 4096), Doc("selector in query-string form")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("Machines with UpToDate=True")] = None
    version: Annotated[str, Len(1, 256), Doc("lowest version among control-plane Machines; deprecated, see versions")] = ""
    versions: StatusVersions = ()


class KubeadmControlPlane(Object):
    """A control plane made of Machines and set up by kubeadm."""

    api_version: str = "controlplane.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmControlPlane"
    spec: Annotated[KubeadmControlPlaneSpec, REQUIRED, Doc("desired state")] = KubeadmControlPlaneSpec()
    status: Annotated[KubeadmControlPlaneStatus, Doc("observed state")] = KubeadmControlPlaneStatus()


class KubeadmControlPlaneTemplateMachineTemplateSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()


class KubeadmControlPlaneTemplateMachineTemplate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of the Machines")] = None
    spec: Annotated[KubeadmControlPlaneTemplateMachineTemplateSpec | None, Doc("spec of the Machines")] = None


class KubeadmControlPlaneTemplateResourceSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    kubeadm_config_spec: Annotated[KubeadmConfigSpec | None, Doc("bootstrap settings of all control-plane Machines")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("Machine name template")] = None
    machine_template: Annotated[KubeadmControlPlaneTemplateMachineTemplate | None, Doc("no infrastructureRef, no readinessGates here")] = (
        None
    )
    remediation: Annotated[KubeadmControlPlaneRemediationSpec | None, Doc("how unhealthy Machines are remediated")] = None
    rollout: Annotated[KubeadmControlPlaneRolloutSpec | None, Doc("rollout tuning")] = None


class KubeadmControlPlaneTemplateResource(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of what is made from it")] = None
    spec: Annotated[KubeadmControlPlaneTemplateResourceSpec | None, Doc("KCP spec without replicas/version")] = None


class KubeadmControlPlaneTemplateSpec(Struct):
    template: Annotated[KubeadmControlPlaneTemplateResource, REQUIRED, Doc("what is made from it")] = KubeadmControlPlaneTemplateResource()


class KubeadmControlPlaneTemplate(Object):
    """The template for the KubeadmControlPlanes of topologies."""

    api_version: str = "controlplane.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmControlPlaneTemplate"
    spec: Annotated[KubeadmControlPlaneTemplateSpec, Doc("desired state")] = KubeadmControlPlaneTemplateSpec()
