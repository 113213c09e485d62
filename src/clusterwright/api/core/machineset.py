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

    order: Annotated[
        str,
        OneOf("Random", "Newest", "Oldest"),
        Doc("The order in which Machines are deleted when the number shrinks. The default is Random."),
    ] = ""


class MachineSetSpec(Struct):
    cluster_name: Annotated[
        str, REQUIRED, Len(1, 63), Doc("The name of the Cluster, which the template must repeat. It cannot be changed.")
    ] = ""
    deletion: Annotated[MachineSetDeletionSpec | None, Doc("The order of deletion when the number of Machines shrinks.")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("How Machines are named.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that are wanted.")] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("The labels of the Machines. The labels of the template must fit.")] = LabelSelector()
    template: Annotated[MachineTemplateSpec, REQUIRED, Doc("The template of the Machines.")] = MachineTemplateSpec()


class MachineSetV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[
        str | None, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")
    ] = None
    failure_reason: Annotated[str | None, Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = None
    fully_labeled_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    ready_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0


class MachineSetDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineSetV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class MachineSetStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Available condition is True.")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachineSetDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    observed_generation: ObservedGeneration = 0
    ready_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Ready condition is True.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that exist, with those that are being created or deleted.")] = None
    selector: Annotated[str, Len(1, 4096), Doc("The label selector of the Machines, as in a query, for the scale subresource.")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("The number of Machines whose UpToDate condition is True.")] = None
    versions: StatusVersions = ()


class MachineSet(Object):
    """Keeps a number of equal Machines."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineSet"
    spec: Annotated[MachineSetSpec, REQUIRED, Doc("The desired state, which users set.")] = MachineSetSpec()
    status: Annotated[MachineSetStatus, Doc("The observed state, which controllers write.")] = MachineSetStatus()


class MachineDeploymentDeletionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    order: Annotated[
        str,
        OneOf("Random", "Newest", "Oldest"),
        Doc("The order in which Machines are deleted when the number shrinks. The default is Random."),
    ] = ""


class MachineDeploymentRemediationSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[
        IntOrString | None,
        Doc("The number or percentage of Machines that may be remediated at the same time. If absent, there is no limit."),
    ] = None


class MachineDeploymentRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    after: Annotated[datetime | None, Doc("A time. When it has passed, Machines that were created earlier are replaced.")] = None
    strategy: Annotated[MachineDeploymentRolloutStrategy | None, Doc("How a rollout replaces Machines. The default is RollingUpdate.")] = (
        None
    )


class MachineDeploymentSpec(Struct):
    cluster_name: Annotated[
        str, REQUIRED, Len(1, 63), Doc("The name of the Cluster, which the template must repeat. It cannot be changed.")
    ] = ""
    deletion: Annotated[MachineDeploymentDeletionSpec | None, Doc("The order of deletion when the number of Machines shrinks.")] = None
    machine_naming: Annotated[MachineNamingSpec | None, Doc("How Machines are named.")] = None
    paused: Annotated[bool | None, Doc("If true, rollouts of this MachineDeployment stop.")] = None
    remediation: Annotated[MachineDeploymentRemediationSpec | None, Doc("How unhealthy Machines are remediated.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that are wanted.")] = None
    rollout: Annotated[MachineDeploymentRolloutSpec | None, Doc("When and how Machines are replaced.")] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("The labels of the Machines. The labels of the template must fit.")] = LabelSelector()
    template: Annotated[MachineTemplateSpec, REQUIRED, Doc("The template of the Machines.")] = MachineTemplateSpec()


class MachineDeploymentV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    conditions: V1Beta1Conditions = ()
    ready_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    unavailable_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0
    updated_replicas: Annotated[Int32, ALWAYS, Doc("A number in the form of v1beta1, which is always written.")] = 0


class MachineDeploymentDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineDeploymentV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class MachineDeploymentStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Available condition is True.")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachineDeploymentDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str, OneOf("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"), Doc("A summary for people. Programs must read conditions.")
    ] = ""
    ready_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Ready condition is True.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that exist, with those that are being created or deleted.")] = None
    selector: Annotated[str, Len(1, 4096), Doc("The label selector of the Machines, as in a query, for the scale subresource.")] = ""
    up_to_date_replicas: Annotated[Int32 | None, Doc("The number of Machines whose UpToDate condition is True.")] = None
    versions: StatusVersions = ()


class MachineDeployment(Object):
    """Rolls out changes over MachineSets."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineDeployment"
    spec: Annotated[MachineDeploymentSpec, REQUIRED, Doc("The desired state, which users set.")] = MachineDeploymentSpec()
    status: Annotated[MachineDeploymentStatus, Doc("The observed state, which controllers write.")] = MachineDeploymentStatus()


class MachinePoolSpec(Struct):
    cluster_name: Annotated[
        str, REQUIRED, Len(1, 63), Doc("The name of the Cluster, which the template must repeat. It cannot be changed.")
    ] = ""
    failure_domains: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("The failure domains in which the machines must be placed.")
    ] = ()
    provider_id_list: Annotated[
        tuple[str, ...],
        Items(None, 10000),
        ATOMIC,
        Each(Len(1, 512)),
        Doc("The identities of the machines, copied from the infrastructure pool."),
    ] = msgspec.field(name="providerIDList", default=())
    replicas: Annotated[Int32 | None, Doc("The number of Machines that are wanted.")] = None
    template: Annotated[
        MachineTemplateSpec,
        REQUIRED,
        Doc("The template of the machines. It refers to a bootstrap configuration and an infrastructure pool, not to templates."),
    ] = MachineTemplateSpec()


class MachinePoolV1Beta1DeprecatedStatus(Struct):
    available_replicas: Annotated[Int32, Doc("A number in the form of v1beta1.")] = 0
    conditions: V1Beta1Conditions = ()
    failure_message: Annotated[
        str | None, Len(1, 10240), Doc("The text of a failure in the form of v1beta1. No controller depends on it.")
    ] = None
    failure_reason: Annotated[str | None, Doc("The name of a failure in the form of v1beta1. No controller depends on it.")] = None
    ready_replicas: Annotated[Int32, Doc("A number in the form of v1beta1.")] = 0
    unavailable_replicas: Annotated[Int32, Doc("A number in the form of v1beta1.")] = 0


class MachinePoolDeprecatedStatus(Struct):
    v1beta1: Annotated[MachinePoolV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class MachinePoolInitializationStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    bootstrap_data_secret_created: Annotated[
        bool | None, Doc("True after the bootstrap data existed for the first time. It is never set back.")
    ] = None
    infrastructure_provisioned: Annotated[
        bool | None, Doc("True after the bootstrap data existed for the first time. It is never set back.")
    ] = None


class MachinePoolStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    available_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Available condition is True.")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        MachinePoolDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    initialization: Annotated[
        MachinePoolInitializationStatus | None, Doc("The steps of provisioning that are done. Each is never set back.")
    ] = None
    node_refs: Annotated[tuple[ObjectReference, ...], Items(None, 10000), ATOMIC, Doc("The Nodes of the pool.")] = ()
    observed_generation: ObservedGeneration = 0
    phase: Annotated[
        str,
        OneOf("Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown"),
        Doc("A summary for people. Programs must read conditions."),
    ] = ""
    ready_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Ready condition is True.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of machines, as the infrastructure pool reports it.")] = None
    up_to_date_replicas: Annotated[Int32 | None, Doc("The number of Machines whose UpToDate condition is True.")] = None
    versions: StatusVersions = ()


class MachinePool(Object):
    """A pool of hosts that the infrastructure scales as one."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachinePool"
    spec: Annotated[MachinePoolSpec, REQUIRED, Doc("The desired state, which users set.")] = MachinePoolSpec()
    status: Annotated[MachinePoolStatus, Doc("The observed state, which controllers write.")] = MachinePoolStatus()
