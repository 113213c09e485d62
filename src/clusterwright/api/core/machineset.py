"""MachineSet, MachineDeployment and MachinePool."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Each, Int32, IntOrString, Items, Len, OneOf, Props
from clusterwright.api.core.machine import MachineTemplateSpec
from clusterwright.api.core.shared import MachineDeploymentRolloutStrategy, MachineNamingSpec, StatusVersions
from clusterwright.api.kubernetes import ObjectReference
from clusterwright.api.meta import ALWAYS, KEEP_EMPTY, Conditions, LabelSelector, Object, ObservedGeneration, Struct, V1Beta1Conditions


class MachineSetDeletionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    order: Annotated[str, OneOf("Random", "Newest", "Oldest"), Doc("absent = Random")] = ""


class MachineSetSpec(Struct):
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable; equals template clusterName")] = ""
    deletion: Annotated[MachineSetDeletionSpec | None, Doc("scale-down ordering")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("Machine name template")] = None
    replicas: Annotated[Int32 | None, Doc("number of Machines")] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("must match template labels")] = LabelSelector()
    template: Annotated[MachineTemplateSpec, REQUIRED, Doc("Machine template")] = MachineTemplateSpec()


class MachineSetV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str | None, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = None
    failure_reason: Annotated[str | None, Doc("legacy terminal-failure token; informational only")] = None
    fully_labeled_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    ready_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0


class MachineSetDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineSetV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class MachineSetStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("Machines with Available=True")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachineSetDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    observed_generation: ObservedGeneration = 0
    ready_replicas: Annotated[Int32 | None, Doc("Machines with Ready=True")] = None
    replicas: Annotated[Int32 | None, Doc("observed Machine count (includes provisioning and deleting)")] = None
    selector: Annotated[str, Len(1, 4096), Doc("selector in query-string form (scale subresource)")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("Machines with UpToDate=True")] = None
    versions: StatusVersions = ()


class MachineSet(Object):
    """Keeps a number of equal Machines."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineSet"
    spec: Annotated[MachineSetSpec, REQUIRED, Doc("desired state")] = MachineSetSpec()
    status: Annotated[MachineSetStatus, Doc("observed state")] = MachineSetStatus()


class MachineDeploymentDeletionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    order: Annotated[str, OneOf("Random", "Newest", "Oldest"), Doc("absent = Random")] = ""


class MachineDeploymentRemediationSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[IntOrString | None, Doc("int or percent; absent = unlimited")] = None


class MachineDeploymentRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("roll Machines created before this instant once it has passed")] = None
    strategy: Annotated[MachineDeploymentRolloutStrategy | None, Doc("how a rollout goes; defaults to RollingUpdate")] = None


class MachineDeploymentSpec(Struct):
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable; equals template clusterName")] = ""
    deletion: Annotated[MachineDeploymentDeletionSpec | None, Doc("scale-down ordering")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("Machine name template")] = None
    paused: Annotated[bool | None, Doc("pauses rollouts of this deployment")] = None
    remediation: Annotated[MachineDeploymentRemediationSpec | None, Doc("how unhealthy Machines are remediated")] = None
    replicas: Annotated[Int32 | None, Doc("number of Machines")] = None
    rollout: Annotated[MachineDeploymentRolloutSpec | None, Doc("rollout tuning")] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("must match template labels")] = LabelSelector()
    template: Annotated[MachineTemplateSpec, REQUIRED, Doc("Machine template")] = MachineTemplateSpec()


class MachineDeploymentV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    conditions: V1Beta1Conditions = ()
    ready_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    unavailable_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0
    updated_replicas: Annotated[Int32, ALWAYS, Doc("legacy counter, always serialised")] = 0


class MachineDeploymentDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineDeploymentV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class MachineDeploymentStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("Machines with Available=True")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachineDeploymentDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[str, OneOf("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"), Doc("display only")] = ""
    ready_replicas: Annotated[Int32 | None, Doc("Machines with Ready=True")] = None
    replicas: Annotated[Int32 | None, Doc("observed Machine count (includes provisioning and deleting)")] = None
    selector: Annotated[str, Len(1, 4096), Doc("selector in query-string form (scale subresource)")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("Machines with UpToDate=True")] = None
    versions: StatusVersions = ()


class MachineDeployment(Object):
    """Rolls out changes over MachineSets."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineDeployment"
    spec: Annotated[MachineDeploymentSpec, REQUIRED, Doc("desired state")] = MachineDeploymentSpec()
    status: Annotated[MachineDeploymentStatus, Doc("observed state")] = MachineDeploymentStatus()


class MachinePoolSpec(Struct):
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable; equals template clusterName")] = ""
    failure_domains: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("pool placement")] = ()
    provider_id_list: Annotated[tuple[str, ...], Items(None, 10000), ATOMIC, Each(Len(1, 512)), Doc("copied from InfraMachinePool")] = (
        msgspec.field(name="providerIDList", default=())
    )
    replicas: Annotated[Int32 | None, Doc("number of Machines")] = None
    template: Annotated[MachineTemplateSpec, REQUIRED, Doc("refs point at concrete BootstrapConfig and InfraMachinePool")] = (
        MachineTemplateSpec()
    )


class MachinePoolV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, Doc("legacy counter")] = 0
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[str | None, Len(1, 10240), Doc("legacy terminal-failure text; informational only")] = None
    failure_reason: Annotated[str | None, Doc("legacy terminal-failure token; informational only")] = None
    ready_replicas: Annotated[Int32, Doc("legacy counter")] = 0
    unavailable_replicas: Annotated[Int32, Doc("legacy counter")] = 0


class MachinePoolDeprecatedStatus(Struct):
    v1beta1: Annotated[MachinePoolV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class MachinePoolInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_data_secret_created: Annotated[bool | None, Doc("latched")] = None
    infrastructure_provisioned: Annotated[bool | None, Doc("latched")] = None


class MachinePoolStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("Machines with Available=True")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachinePoolDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    initialization: Annotated[MachinePoolInitializationStatus | None, Doc("one-way latches")] = None
    node_refs: Annotated[tuple[ObjectReference, ...], Items(None, 10000), ATOMIC, Doc("Nodes of the pool")] = ()
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown"),
        Doc("display only"),
    ] = ""
    ready_replicas: Annotated[Int32 | None, Doc("Machines with Ready=True")] = None
    replicas: Annotated[Int32 | None, Doc("from InfraMachinePool")] = None
    up_to_date_replicas: Annotated[Int32 | None, Doc("Machines with UpToDate=True")] = None
    versions: StatusVersions = ()


class MachinePool(Object):
    """A pool of hosts that the infrastructure scales as one."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachinePool"
    spec: Annotated[MachinePoolSpec, REQUIRED, Doc("desired state")] = MachinePoolSpec()
    status: Annotated[MachinePoolStatus, Doc("observed state")] = MachinePoolStatus()
