"""Types that several kinds of the core group share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from clusterwright.api.constraints import (
    ATOMIC,
    COND_TYPE,
    DNS_SUBDOMAIN,
    GROUP_VERSION,
    KIND,
    LABEL_VALUE,
    PRESERVE,
    RANGE,
    REQUIRED,
    TAINT_KEY,
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
from clusterwright.api.meta import Struct
from clusterwright.api.rules import UNHEALTHY_MACHINE_CONDITION


class TemplateObjectMeta(Struct):
    """The labels and annotations of objects made from a template."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    annotations: Annotated[Mapping[str, str], Doc("The annotations, by key.")] = {}
    labels: Annotated[Mapping[str, str], Doc("The labels, by key.")] = {}


class ContractVersionedObjectReference(Struct):
    """A reference without version and namespace. The namespace is that of the referrer; CRD labels determine the version (section 9.1)."""

    api_group: Annotated[
        str,
        REQUIRED,
        Len(1, 253),
        DNS_SUBDOMAIN,
        Doc("The API group of the object. Its version comes from the contract labels of the CRD."),
    ] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("The kind of the object.")] = ""
    name: Annotated[
        str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the object, which is in the namespace of the object that refers to it.")
    ] = ""


class ClusterClassTemplateReference(Struct):
    """A reference with a full apiVersion; no namespace (same namespace as the referrer)."""

    api_version: Annotated[str, REQUIRED, Len(1, 317), GROUP_VERSION, Doc("The API group and version of the template.")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("The kind of the template.")] = ""
    name: Annotated[
        str,
        REQUIRED,
        Len(1, 253),
        DNS_SUBDOMAIN,
        Doc("The name of the template, which is in the namespace of the object that refers to it."),
    ] = ""


class MachineReadinessGate(Struct):
    """A readiness gate, also for availabilityGates of Cluster and ClusterClass."""

    condition_type: Annotated[
        str, REQUIRED, Len(1, 316), COND_TYPE, Doc("The type of the condition. A missing condition counts as Unknown.")
    ] = ""
    polarity: Annotated[
        str, OneOf("Positive", "Negative"), Doc("The status that is good: True for Positive, False for Negative. The default is Positive.")
    ] = ""


class MachineTaint(Struct):
    effect: Annotated[
        str, REQUIRED, OneOf("NoSchedule", "PreferNoSchedule", "NoExecute"), Doc("The effect on Pods that do not tolerate the taint.")
    ] = ""
    key: Annotated[str, REQUIRED, Len(1, 317), TAINT_KEY, Doc("The key of the taint. Some keys are reserved.")] = ""
    propagation: Annotated[
        str, REQUIRED, OneOf("Always", "OnInitialization"), Doc("Always keeps the taint on the Node; OnInitialization writes it once.")
    ] = ""
    value: Annotated[str, Len(1, 63), LABEL_VALUE, Doc("The value of the taint.")] = ""


class MachineDeletionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_deletion_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which the deletion of the Node is tried. 0 means without a limit; the default is 10.")
    ] = None
    node_drain_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds that this step of a deletion may take. 0 or absent means without a limit.")
    ] = None
    node_volume_detach_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds that this step of a deletion may take. 0 or absent means without a limit.")
    ] = None


class MachineDeletionSpecWithOrder(Struct):
    """A MachineDeletionSpec with a scale-down order; only in MachineDeployment topology and class."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_deletion_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which the deletion of the Node is tried. 0 means without a limit.")
    ] = None
    node_drain_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds that this step of a deletion may take. 0 or absent means without a limit.")
    ] = None
    node_volume_detach_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds that this step of a deletion may take. 0 or absent means without a limit.")
    ] = None
    order: Annotated[
        str,
        OneOf("Random", "Newest", "Oldest"),
        Doc("The order in which Machines are deleted when the number shrinks. The default is Random."),
    ] = ""


class MachineNamingSpec(Struct):
    """A naming template; names over 63 characters are cut to 58 and get a 5-character random suffix."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template: Annotated[
        str,
        Len(1, 256),
        Doc(
            "A Go template of the name. It must contain `{{ .random }}` and may use .cluster.name, and "
            ".machineSet.name or .kubeadmControlPlane.name."
        ),
    ] = ""


class MachineDeploymentRolloutStrategyRollingUpdate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_surge: Annotated[
        IntOrString | None,
        Doc("The number or percentage of Machines above the wanted number during a rollout, rounded up. The default is 1."),
    ] = None
    max_unavailable: Annotated[
        IntOrString | None,
        Doc(
            "The number or percentage of Machines that may be missing during a rollout, rounded down. The default is 0. "
            "It cannot be 0 if maxSurge is 0."
        ),
    ] = None


class MachineDeploymentRolloutStrategy(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    rolling_update: Annotated[MachineDeploymentRolloutStrategyRollingUpdate | None, Doc("The settings of the type RollingUpdate.")] = None
    type: Annotated[str, REQUIRED, OneOf("RollingUpdate", "OnDelete"), Doc("How Machines are replaced. The default is RollingUpdate.")] = ""


class UnhealthyMachineCondition(Struct):
    status: Annotated[str, REQUIRED, OneOf("True", "False", "Unknown"), Doc("The status at which the condition counts as unhealthy.")] = ""
    timeout_seconds: Annotated[Int32 | None, REQUIRED, Range(0), Doc("The seconds for which the condition must have this status.")] = None
    type: Annotated[str, REQUIRED, Len(1, 316), COND_TYPE, UNHEALTHY_MACHINE_CONDITION, Doc("The type of a condition of the Machine.")] = ""


class UnhealthyNodeCondition(Struct):
    status: Annotated[str, REQUIRED, Len(1), Doc("The status at which the condition counts as unhealthy.")] = ""
    timeout_seconds: Annotated[Int32 | None, REQUIRED, Range(0), Doc("The seconds for which the condition must have this status.")] = None
    type: Annotated[str, REQUIRED, Len(1), Doc("The type of a condition of the Node.")] = ""


class MachineHealthCheckChecks(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_startup_timeout_seconds: Annotated[
        Int32 | None,
        Range(0),
        Doc("The seconds within which a Node must appear. 0 means without a limit, other values are at least 30; the default is 600."),
    ] = None
    unhealthy_machine_conditions: Annotated[
        tuple[UnhealthyMachineCondition, ...],
        Items(1, 100),
        ATOMIC,
        Doc("A list of conditions. A Machine is unhealthy if at least one of them holds for its time."),
    ] = ()
    unhealthy_node_conditions: Annotated[
        tuple[UnhealthyNodeCondition, ...],
        Items(1, 100),
        ATOMIC,
        Doc("A list of conditions. A Machine is unhealthy if at least one of them holds for its time."),
    ] = ()


class MachineHealthCheckRemediationTriggerIf(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    unhealthy_in_range: Annotated[
        str,
        Len(1, 32),
        RANGE,
        Doc(
            "An inclusive range such as `[1-3]`. Machines are remediated if the number of unhealthy ones is in it. "
            "It overrides the other field."
        ),
    ] = ""
    unhealthy_less_than_or_equal_to: Annotated[
        IntOrString | None, Doc("The largest number or percentage of unhealthy Machines with which Machines are remediated.")
    ] = None


class ClusterVariable(Struct):
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the variable.")] = ""
    value: Annotated[Any, REQUIRED, PRESERVE, Doc("The value, any JSON. It must fit the schema of the variable in the ClusterClass.")] = (
        None
    )


class TopologyVariableOverrides(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    overrides: Annotated[
        tuple[ClusterVariable, ...], Items(1, 1000), ListMap("name"), Doc("The values that override those of the cluster.")
    ] = ()


class NetworkRanges(Struct):
    cidr_blocks: Annotated[
        tuple[str, ...], REQUIRED, Items(1, 100), ATOMIC, Each(Len(1, 43)), Doc("The address ranges, in CIDR notation.")
    ] = ()


class APIEndpoint(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    host: Annotated[str, Len(1, 512), Doc("The host name or IP address.")] = ""
    port: Annotated[Int32, Range(1, 65535), Doc("The port number.")] = 0


class FailureDomain(Struct):
    attributes: Annotated[Mapping[str, str], Doc("Further facts about the failure domain, in any form.")] = {}
    control_plane: Annotated[bool | None, Doc("Whether control plane Machines can be placed here.")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the failure domain.")] = ""


class MachineAddress(Struct):
    address: Annotated[str, REQUIRED, Len(1, 256), Doc("The address.")] = ""
    type: Annotated[
        str, REQUIRED, OneOf("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"), Doc("The type of the address.")
    ] = ""


class StatusVersion(Struct):
    """An entry of `status.versions` of all owners of Machines, oldest version first."""

    replicas: Annotated[
        Int32 | None, Range(1), Doc("The number of Machines with this version, or of Nodes in a pool without Machines.")
    ] = None
    version: Annotated[
        str, REQUIRED, Len(1, 256), Doc("The Kubernetes version. It is the one that the kubelet reports, if that is known.")
    ] = ""


class UpgradePlanVersion(Struct):
    """An entry of `upgradePlan` in Cluster `status.controlPlane` and `status.workers`."""

    version: Annotated[str, REQUIRED, Len(1, 256), Doc("The Kubernetes version of one step of the upgrade.")] = ""


StatusVersions = Annotated[
    tuple[StatusVersion, ...], Items(1, 100), ListMap("version"), Doc("The Kubernetes versions of the Machines, the oldest first.")
]


class ReplicaCounters(Struct):
    """The counters in Cluster `status.controlPlane` and `status.workers`."""

    available_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Available condition is True.")] = None
    desired_replicas: Annotated[Int32 | None, Doc("The number of Machines that are wanted.")] = None
    ready_replicas: Annotated[Int32 | None, Doc("The number of Machines whose Ready condition is True.")] = None
    replicas: Annotated[Int32 | None, Doc("The number of Machines that exist, with those that are being created or deleted.")] = None
    up_to_date_replicas: Annotated[Int32 | None, Doc("The number of Machines whose UpToDate condition is True.")] = None
    upgrade_plan: Annotated[
        tuple[UpgradePlanVersion, ...], Items(1, 32), ATOMIC, Doc("The versions that are still to come while the topology is upgraded.")
    ] = ()
    versions: Annotated[tuple[StatusVersion, ...], Items(1, 32), ATOMIC, Doc("The Kubernetes versions in use, the oldest first.")] = ()
