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

    annotations: Annotated[Mapping[str, str], Doc("annotation map")] = {}
    labels: Annotated[Mapping[str, str], Doc("label map")] = {}


class ContractVersionedObjectReference(Struct):
    """A reference without version and namespace. The namespace is that of the referrer; CRD labels determine the version (section 9.1)."""

    api_group: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("group only; version comes from CRD contract labels")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("kind of the object")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("same namespace as the referrer")] = ""


class ClusterClassTemplateReference(Struct):
    """A reference with a full apiVersion; no namespace (same namespace as the referrer)."""

    api_version: Annotated[str, REQUIRED, Len(1, 317), GROUP_VERSION, Doc("full group/version")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("kind of the template")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("name of the template; same namespace as the referrer")] = ""


class MachineReadinessGate(Struct):
    """A readiness gate, also for availabilityGates of Cluster and ClusterClass."""

    condition_type: Annotated[str, REQUIRED, Len(1, 316), COND_TYPE, Doc("condition to read; missing counts as Unknown")] = ""
    polarity: Annotated[str, OneOf("Positive", "Negative"), Doc("absent = Positive")] = ""


class MachineTaint(Struct):
    effect: Annotated[
        str, REQUIRED, OneOf("NoSchedule", "PreferNoSchedule", "NoExecute"), Doc("what happens to Pods that do not tolerate it")
    ] = ""
    key: Annotated[str, REQUIRED, Len(1, 317), TAINT_KEY, Doc("key of the taint; some are reserved")] = ""
    propagation: Annotated[
        str, REQUIRED, OneOf("Always", "OnInitialization"), Doc("Always = continuously enforced; OnInitialization = written once")
    ] = ""
    value: Annotated[str, Len(1, 63), LABEL_VALUE, Doc("value of the taint")] = ""


class MachineDeletionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_deletion_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0 = retry forever; defaults to 10")] = None
    node_drain_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0/absent = no limit")] = None
    node_volume_detach_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0/absent = no limit")] = None


class MachineDeletionSpecWithOrder(Struct):
    """A MachineDeletionSpec with a scale-down order; only in MachineDeployment topology and class."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_deletion_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0 = retry forever")] = None
    node_drain_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0/absent = no limit")] = None
    node_volume_detach_timeout_seconds: Annotated[Int32 | None, Range(0), Doc("0/absent = no limit")] = None
    order: Annotated[str, OneOf("Random", "Newest", "Oldest"), Doc("absent = Random")] = ""


class MachineNamingSpec(Struct):
    """A naming template; names over 63 characters are cut to 58 and get a 5-character random suffix."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template: Annotated[
        str,
        Len(1, 256),
        Doc("must contain `{{ .random }}`; vars: .cluster.name, .machineSet.name (MS/MD) or .kubeadmControlPlane.name (KCP), .random"),
    ] = ""


class MachineDeploymentRolloutStrategyRollingUpdate(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_surge: Annotated[IntOrString | None, Doc("int or percent (round up); default 1")] = None
    max_unavailable: Annotated[IntOrString | None, Doc("int or percent (round down); default 0; both must not be integer 0")] = None


class MachineDeploymentRolloutStrategy(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    rolling_update: Annotated[MachineDeploymentRolloutStrategyRollingUpdate | None, Doc("only meaningful for RollingUpdate")] = None
    type: Annotated[str, REQUIRED, OneOf("RollingUpdate", "OnDelete"), Doc("defaults to RollingUpdate")] = ""


class UnhealthyMachineCondition(Struct):
    status: Annotated[str, REQUIRED, OneOf("True", "False", "Unknown"), Doc("status that counts as unhealthy")] = ""
    timeout_seconds: Annotated[Int32 | None, REQUIRED, Range(0), Doc("how long it must hold")] = None
    type: Annotated[str, REQUIRED, Len(1, 316), COND_TYPE, UNHEALTHY_MACHINE_CONDITION, Doc("Machine condition type")] = ""


class UnhealthyNodeCondition(Struct):
    status: Annotated[str, REQUIRED, Len(1), Doc("status that counts as unhealthy")] = ""
    timeout_seconds: Annotated[Int32 | None, REQUIRED, Range(0), Doc("how long it must hold")] = None
    type: Annotated[str, REQUIRED, Len(1), Doc("Node condition type")] = ""


class MachineHealthCheckChecks(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    node_startup_timeout_seconds: Annotated[
        Int32 | None, Range(0), Doc("how long a Node may take to appear; defaults to 600, 0 means forever, otherwise at least 30")
    ] = None
    unhealthy_machine_conditions: Annotated[tuple[UnhealthyMachineCondition, ...], Items(1, 100), ATOMIC, Doc("OR-ed")] = ()
    unhealthy_node_conditions: Annotated[tuple[UnhealthyNodeCondition, ...], Items(1, 100), ATOMIC, Doc("OR-ed")] = ()


class MachineHealthCheckRemediationTriggerIf(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    unhealthy_in_range: Annotated[str, Len(1, 32), RANGE, Doc("`[lo-hi]` inclusive; wins over the other field")] = ""
    unhealthy_less_than_or_equal_to: Annotated[IntOrString | None, Doc("int or percent upper bound of unhealthy Machines")] = None


class ClusterVariable(Struct):
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("name of the variable")] = ""
    value: Annotated[Any, REQUIRED, PRESERVE, Doc("any JSON; validated against the class schema")] = None


class TopologyVariableOverrides(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    overrides: Annotated[tuple[ClusterVariable, ...], Items(1, 1000), ListMap("name"), Doc("override cluster-wide values")] = ()


class NetworkRanges(Struct):
    cidr_blocks: Annotated[tuple[str, ...], REQUIRED, Items(1, 100), ATOMIC, Each(Len(1, 43)), Doc("ranges in CIDR notation")] = ()


class APIEndpoint(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    host: Annotated[str, Len(1, 512), Doc("host name or address")] = ""
    port: Annotated[Int32, Range(1, 65535), Doc("port")] = 0


class FailureDomain(Struct):
    attributes: Annotated[Mapping[str, str], Doc("free-form")] = {}
    control_plane: Annotated[bool | None, Doc("usable for control-plane Machines")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("name of the failure domain")] = ""


class MachineAddress(Struct):
    address: Annotated[str, REQUIRED, Len(1, 256), Doc("the address")] = ""
    type: Annotated[str, REQUIRED, OneOf("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"), Doc("kind of address")] = ""


class StatusVersion(Struct):
    """An entry of `status.versions` of all owners of Machines, oldest version first."""

    replicas: Annotated[Int32 | None, Range(1), Doc("Machines, or Nodes of a pool without Machines, that have this version")] = None
    version: Annotated[str, REQUIRED, Len(1, 256), Doc("Kubernetes version, as the kubelet reports it where that is known")] = ""


class UpgradePlanVersion(Struct):
    """An entry of `upgradePlan` in Cluster `status.controlPlane` and `status.workers`."""

    version: Annotated[str, REQUIRED, Len(1, 256), Doc("Kubernetes version of one step of the upgrade")] = ""


StatusVersions = Annotated[
    tuple[StatusVersion, ...], Items(1, 100), ListMap("version"), Doc("Kubernetes versions of the Machines, oldest first")
]


class ReplicaCounters(Struct):
    """The counters in Cluster `status.controlPlane` and `status.workers`."""

    available_replicas: Annotated[Int32 | None, Doc("Machines with Available=True")] = None
    desired_replicas: Annotated[Int32 | None, Doc("sum of desired replicas")] = None
    ready_replicas: Annotated[Int32 | None, Doc("Machines with Ready=True")] = None
    replicas: Annotated[Int32 | None, Doc("observed Machine count (includes provisioning and deleting)")] = None
    up_to_date_replicas: Annotated[Int32 | None, Doc("Machines with UpToDate=True")] = None
    upgrade_plan: Annotated[
        tuple[UpgradePlanVersion, ...], Items(1, 32), ATOMIC, Doc("versions still to come; only while a topology is upgraded")
    ] = ()
    versions: Annotated[tuple[StatusVersion, ...], Items(1, 32), ATOMIC, Doc("Kubernetes versions in use, oldest first")] = ()
