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

    certificates_expiry_days: Annotated[
        Int32, Range(7), Doc("The days before the expiry of certificates at which Machines are replaced.")
    ] = 0


class KubeadmControlPlaneRolloutStrategyRollingUpdate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_surge: Annotated[IntOrString | None, Doc("The number of Machines above the wanted number: 0 or 1. The default is 1.")] = None


class KubeadmControlPlaneRolloutStrategy(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    rolling_update: Annotated[
        KubeadmControlPlaneRolloutStrategyRollingUpdate | None, Doc("The settings of the replacement of Machines.")
    ] = None
    type: Annotated[str, REQUIRED, OneOf("RollingUpdate"), Doc("The type of the strategy, which is always RollingUpdate.")] = ""


class KubeadmControlPlaneRolloutSpec(Struct):
    """The rollout settings of KubeadmControlPlane and its template."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("A time. When it has passed, Machines that were created before it are replaced.")] = None
    before: Annotated[KubeadmControlPlaneRolloutBeforeSpec | None, Doc("The events before which Machines are replaced.")] = None
    strategy: Annotated[KubeadmControlPlaneRolloutStrategy | None, Doc("How a rollout replaces Machines.")] = None


class KubeadmControlPlaneRemediationSpec(Struct):
    """The remediation settings of a KubeadmControlPlane."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_retry: Annotated[Int32 | None, Doc("The number of times that a remediation is repeated. If absent, there is no limit.")] = None
    min_healthy_period_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds after which a new failure does not count as a repetition. If absent, it is 3600.")
    ] = None
    retry_period_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds between a failed remediation and the next one. If absent, the next one starts at once.")
    ] = None


class KubeadmControlPlaneMachineTemplateSpec(Struct):
    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    infrastructure_ref: Annotated[ContractVersionedObjectReference, REQUIRED, Doc("The template of infrastructure machines.")] = (
        ContractVersionedObjectReference()
    )
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


class KubeadmControlPlaneMachineTemplate(Struct):
    metadata: Annotated[
        TemplateObjectMeta | None, Doc("The labels and annotations of the Machines. Changes reach Machines that exist.")
    ] = None
    spec: Annotated[KubeadmControlPlaneMachineTemplateSpec, REQUIRED, Doc("The spec of the Machines.")] = (
        KubeadmControlPlaneMachineTemplateSpec()
    )


class KubeadmControlPlaneSpec(Struct):
    kubeadm_config_spec: Annotated[KubeadmConfigSpec | None, Doc("The bootstrap configuration of all control plane Machines.")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("How Machines are named.")] = None
    machine_template: Annotated[KubeadmControlPlaneMachineTemplate, REQUIRED, Doc("The form of the Machines.")] = (
        KubeadmControlPlaneMachineTemplate()
    )
    remediation: Annotated[KubeadmControlPlaneRemediationSpec | None, Doc("How unhealthy Machines are remediated.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines. The default is 1. It must be odd unless etcd is external.")] = None
    rollout: Annotated[KubeadmControlPlaneRolloutSpec | None, Doc("When and how Machines are replaced.")] = None
    version: Annotated[str, REQUIRED, Len(1, 256), Doc("The Kubernetes version. An update can raise it by at most one minor version.")] = ""


class KubeadmControlPlaneV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[
        str | None, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")
    ] = None
    failure_reason: Annotated[str, Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = ""
    ready_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    unavailable_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    updated_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0


class KubeadmControlPlaneDeprecatedStatus(Struct):
    v1beta1: Annotated[KubeadmControlPlaneV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class KubeadmControlPlaneInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane_initialized: Annotated[
        bool | None, Doc("True after the bootstrap data was created for the first time. Other controllers wait for it.")
    ] = None


class LastRemediationStatus(Struct):
    machine: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the Machine that was remediated.")] = ""
    retry_count: Annotated[Int32 | None, REQUIRED, Range(0), Doc("The number of earlier repetitions.")] = None
    time: Annotated[datetime | None, REQUIRED, Doc("The time of the remediation.")] = None


class KubeadmControlPlaneStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Available condition is True.")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        KubeadmControlPlaneDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    initialization: Annotated[
        KubeadmControlPlaneInitializationStatus | None, Doc("The steps of provisioning that are done. Each is never set back.")
    ] = None
    last_remediation: Annotated[LastRemediationStatus | None, Doc("The last remediation, from which repetitions are counted.")] = None
    observed_generation: ObservedGeneration = 0
    ready_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Ready condition is True.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that exist, with those that are being created or deleted.")] = None
    selector: Annotated[str, Len(1, 4096), Doc("The label selector of the Machines, as in a query.")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("The number of Machines whose UpToDate condition is True.")] = None
    version: Annotated[str, Len(1, 256), Doc("The lowest version of the control plane Machines. It is deprecated; use versions.")] = ""
    versions: StatusVersions = ()


class KubeadmControlPlane(Object):
    """A control plane made of Machines and set up by kubeadm."""

    api_version: str = "controlplane.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmControlPlane"
    spec: Annotated[KubeadmControlPlaneSpec, REQUIRED, Doc("The desired state, which users set.")] = KubeadmControlPlaneSpec()
    status: Annotated[KubeadmControlPlaneStatus, Doc("The observed state, which controllers write.")] = KubeadmControlPlaneStatus()


class KubeadmControlPlaneTemplateMachineTemplateSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()


class KubeadmControlPlaneTemplateMachineTemplate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the Machines.")] = None
    spec: Annotated[KubeadmControlPlaneTemplateMachineTemplateSpec | None, Doc("The spec of the Machines.")] = None


class KubeadmControlPlaneTemplateResourceSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    kubeadm_config_spec: Annotated[KubeadmConfigSpec | None, Doc("The bootstrap configuration of control plane Machines.")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("How Machines are named.")] = None
    machine_template: Annotated[
        KubeadmControlPlaneTemplateMachineTemplate | None,
        Doc("The form of the Machines. It has no infrastructureRef and no readinessGates here."),
    ] = None
    remediation: Annotated[KubeadmControlPlaneRemediationSpec | None, Doc("How unhealthy Machines are remediated.")] = None
    rollout: Annotated[KubeadmControlPlaneRolloutSpec | None, Doc("When and how Machines are replaced.")] = None


class KubeadmControlPlaneTemplateResource(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created from the template.")] = (
        None
    )
    spec: Annotated[
        KubeadmControlPlaneTemplateResourceSpec | None, Doc("The spec of a KubeadmControlPlane, without replicas and version.")
    ] = None


class KubeadmControlPlaneTemplateSpec(Struct):
    template: Annotated[KubeadmControlPlaneTemplateResource, REQUIRED, Doc("The objects that are created from the template.")] = (
        KubeadmControlPlaneTemplateResource()
    )


class KubeadmControlPlaneTemplate(Object):
    """The template for the KubeadmControlPlanes of topologies."""

    api_version: str = "controlplane.cluster.x-k8s.io/v1beta2"
    kind: str = "KubeadmControlPlaneTemplate"
    spec: Annotated[KubeadmControlPlaneTemplateSpec, Doc("The desired state, which users set.")] = KubeadmControlPlaneTemplateSpec()
