"""MachineHealthCheck and MachineDrainRule."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, METADATA_REQUIRED, REQUIRED, Doc, Each, Int32, Items, Len, OneOf, Props, Range
from clusterwright.api.core.shared import ClusterClassTemplateReference, MachineHealthCheckChecks, MachineHealthCheckRemediationTriggerIf
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, ObservedGeneration, Struct, V1Beta1Conditions
from clusterwright.api.rules import UNIQUE_MACHINES, UNIQUE_PODS


class MachineHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[
        ClusterClassTemplateReference | None,
        Doc("A template from which an object for external remediation is created. If absent, the owner of the Machine replaces it."),
    ] = None
    trigger_if: Annotated[
        MachineHealthCheckRemediationTriggerIf | None, Doc("A limit above which nothing is remediated. If absent, there is no limit.")
    ] = None


class MachineHealthCheckSpec(Struct):
    checks: Annotated[
        MachineHealthCheckChecks | None,
        Doc("The conditions of unhealthy Machines. If absent, only a missing or late Node and the annotation for remediation count."),
    ] = None
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("The name of the Cluster. It cannot be changed.")] = ""
    remediation: Annotated[
        MachineHealthCheckRemediation | None, Doc("How unhealthy Machines are remediated. If absent, their owner always replaces them.")
    ] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("The labels of the Machines that are checked. It cannot be empty.")] = LabelSelector()


class MachineHealthCheckV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class MachineHealthCheckDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineHealthCheckV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class MachineHealthCheckStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    current_healthy: Annotated[Int32 | None, Range(0), Doc("The number of healthy Machines.")] = None
    deprecated: Annotated[
        MachineHealthCheckDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    expected_machines: Annotated[Int32 | None, Range(0), Doc("The number of Machines that are checked.")] = None
    observed_generation: ObservedGeneration = 0
    remediations_allowed: Annotated[
        Int32 | None, Range(0), Doc("The number of Machines that may still become unhealthy before remediation stops.")
    ] = None
    targets: Annotated[
        tuple[str, ...], Items(None, 10000), ATOMIC, Each(Len(1, 253)), Doc("The names of the Machines that are checked.")
    ] = ()


class MachineHealthCheck(Object):
    """Marks unhealthy Machines and requests their remediation."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineHealthCheck"
    spec: Annotated[MachineHealthCheckSpec, REQUIRED, Doc("The desired state, which users set.")] = MachineHealthCheckSpec()
    status: Annotated[MachineHealthCheckStatus, Doc("The observed state, which controllers write.")] = MachineHealthCheckStatus()


class MachineDrainRuleDrainConfig(Struct):
    behavior: Annotated[
        str,
        REQUIRED,
        OneOf("Drain", "Skip", "WaitCompleted"),
        Doc("Drain evicts the Pods, Skip leaves them, and WaitCompleted waits until they end."),
    ] = ""
    order: Annotated[
        Int32 | None,
        Doc("The position of the Pods in the drain: lower numbers come first. If absent, it is 0. It is allowed only with Drain."),
    ] = None


class MachineDrainRuleMachineSelector(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cluster_selector: Annotated[
        LabelSelector | None,
        KEEP_EMPTY,
        Doc("The labels of the Clusters of the Machines. Both selectors must fit. If absent or empty, all Clusters."),
    ] = None
    selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("The labels of the Machines. If absent or empty, all Machines.")] = None


class MachineDrainRulePodSelector(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    namespace_selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("The labels of the Pods' namespaces. Both selectors must fit.")] = (
        None
    )
    selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("The labels of the Pods.")] = None


class MachineDrainRuleSpec(Struct):
    drain: Annotated[MachineDrainRuleDrainConfig, REQUIRED, Doc("What a drain does with the Pods.")] = MachineDrainRuleDrainConfig()
    machines: Annotated[
        tuple[MachineDrainRuleMachineSelector, ...],
        Items(1, 32),
        ATOMIC,
        UNIQUE_MACHINES,
        Doc("The Machines that the rule applies to: those that fit at least one entry. If absent, all Machines in the namespace."),
    ] = ()
    pods: Annotated[
        tuple[MachineDrainRulePodSelector, ...],
        Items(1, 32),
        ATOMIC,
        UNIQUE_PODS,
        Doc("The Pods that the rule applies to: those that fit at least one entry. If absent, all Pods."),
    ] = ()


class MachineDrainRule(Object):
    """The treatment of Pods when the Node of a Machine is drained."""

    constraints: ClassVar[tuple[object, ...]] = (METADATA_REQUIRED,)

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineDrainRule"
    spec: Annotated[MachineDrainRuleSpec, REQUIRED, Doc("The desired state, which users set.")] = MachineDrainRuleSpec()
