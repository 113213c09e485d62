"""MachineHealthCheck and MachineDrainRule."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, METADATA_REQUIRED, REQUIRED, Doc, Each, Int32, Items, Len, OneOf, Props, Range
from clusterwright.api.core.shared import ClusterClassTemplateReference, MachineHealthCheckChecks, MachineHealthCheckRemediationTriggerIf
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, ObservedGeneration, Struct, V1Beta1Conditions
from clusterwright.api.rules import UNIQUE_MACHINES, UNIQUE_PODS


class MachineHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[ClusterClassTemplateReference | None, Doc("external remediation; absent = OwnerRemediated handoff")] = None
    trigger_if: Annotated[MachineHealthCheckRemediationTriggerIf | None, Doc("absent = always remediate")] = None


class MachineHealthCheckSpec(Struct):
    checks: Annotated[
        MachineHealthCheckChecks | None, Doc("absent = only startup timeout, deleted Node and remediate annotation are checked")
    ] = None
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable")] = ""
    remediation: Annotated[MachineHealthCheckRemediation | None, Doc("absent = always, via owner")] = None
    selector: Annotated[LabelSelector, REQUIRED, Doc("Machines to watch; must be non-empty")] = LabelSelector()


class MachineHealthCheckV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class MachineHealthCheckDeprecatedStatus(Struct):
    v1beta1: Annotated[MachineHealthCheckV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class MachineHealthCheckStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    current_healthy: Annotated[Int32 | None, Range(0), Doc("healthy targets")] = None
    deprecated: Annotated[
        MachineHealthCheckDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    expected_machines: Annotated[Int32 | None, Range(0), Doc("all targets")] = None
    observed_generation: ObservedGeneration = 0
    remediations_allowed: Annotated[Int32 | None, Range(0), Doc("remediations left before short circuit")] = None
    targets: Annotated[tuple[str, ...], Items(None, 10000), ATOMIC, Each(Len(1, 253)), Doc("target Machine names")] = ()


class MachineHealthCheck(Object):
    """Marks unhealthy Machines and requests their remediation."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineHealthCheck"
    spec: Annotated[MachineHealthCheckSpec, REQUIRED, Doc("desired state")] = MachineHealthCheckSpec()
    status: Annotated[MachineHealthCheckStatus, Doc("observed state")] = MachineHealthCheckStatus()


class MachineDrainRuleDrainConfig(Struct):
    behavior: Annotated[
        str,
        REQUIRED,
        OneOf("Drain", "Skip", "WaitCompleted"),
        Doc("Drain = evict; Skip = leave; WaitCompleted = never evict, wait for completion"),
    ] = ""
    order: Annotated[Int32 | None, Doc("lower first; absent = 0; only with Drain")] = None


class MachineDrainRuleMachineSelector(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    cluster_selector: Annotated[
        LabelSelector | None, KEEP_EMPTY, Doc("by labels of the Machine's Cluster; AND with selector; absent/empty = all")
    ] = None
    selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("by Machine labels; absent/empty = all")] = None


class MachineDrainRulePodSelector(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    namespace_selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("by Namespace labels; AND with selector")] = None
    selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("by Pod labels")] = None


class MachineDrainRuleSpec(Struct):
    drain: Annotated[MachineDrainRuleDrainConfig, REQUIRED, Doc("what happens to the Pods")] = MachineDrainRuleDrainConfig()
    machines: Annotated[
        tuple[MachineDrainRuleMachineSelector, ...],
        Items(1, 32),
        ATOMIC,
        UNIQUE_MACHINES,
        Doc("OR of entries; absent = all Machines in namespace"),
    ] = ()
    pods: Annotated[
        tuple[MachineDrainRulePodSelector, ...], Items(1, 32), ATOMIC, UNIQUE_PODS, Doc("OR of entries; absent = all Pods")
    ] = ()


class MachineDrainRule(Object):
    """The treatment of Pods when the Node of a Machine is drained."""

    constraints: ClassVar[tuple[object, ...]] = (METADATA_REQUIRED,)

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "MachineDrainRule"
    spec: Annotated[MachineDrainRuleSpec, REQUIRED, Doc("desired state")] = MachineDrainRuleSpec()
