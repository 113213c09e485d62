"""The core group: cluster.x-k8s.io/v1beta2."""

# fmt: off
# ruff: noqa: I001

from clusterwright.api.core.cluster import (
    Cluster, ClusterClassRef, ClusterDeprecatedStatus, ClusterInitializationStatus, ClusterNetwork, ClusterSpec, ClusterStatus,
    ClusterV1Beta1DeprecatedStatus, ControlPlaneTopology, ControlPlaneTopologyHealthCheck,
    ControlPlaneTopologyHealthCheckRemediation, ControlPlaneTopologyRolloutSpec, MachineDeploymentTopology,
    MachineDeploymentTopologyHealthCheck, MachineDeploymentTopologyHealthCheckRemediation, MachineDeploymentTopologyRolloutSpec,
    MachinePoolTopology, Topology, WorkersTopology,
)
from clusterwright.api.core.clusterclass import (
    ClassNamingSpec, ClassTemplateHolder, ClusterClass, ClusterClassDeprecatedStatus, ClusterClassPatch, ClusterClassSpec,
    ClusterClassStatus, ClusterClassStatusVariable, ClusterClassStatusVariableDefinition, ClusterClassUpgrade,
    ClusterClassUpgradeExternal, ClusterClassV1Beta1DeprecatedStatus, ClusterClassVariable, ClusterClassVariableMetadata,
    ControlPlaneClass, ControlPlaneClassHealthCheck, ControlPlaneClassHealthCheckRemediation, ExternalPatchDefinition,
    InfrastructureClass, JSONPatch, JSONPatchValue, JSONSchemaProps, MachineDeploymentClass, MachineDeploymentClassHealthCheck,
    MachineDeploymentClassHealthCheckRemediation, MachineDeploymentClassRolloutSpec, MachinePoolClass, PatchDefinition,
    PatchSelector, PatchSelectorMatch, PatchSelectorMatchMachineDeploymentClass, PatchSelectorMatchMachinePoolClass, ValidationRule,
    VariableSchema, VariableSchemaMetadata, WorkersClass,
)
from clusterwright.api.core.health import (
    MachineDrainRule, MachineDrainRuleDrainConfig, MachineDrainRuleMachineSelector, MachineDrainRulePodSelector,
    MachineDrainRuleSpec, MachineHealthCheck, MachineHealthCheckDeprecatedStatus, MachineHealthCheckRemediation,
    MachineHealthCheckSpec, MachineHealthCheckStatus, MachineHealthCheckV1Beta1DeprecatedStatus,
)
from clusterwright.api.core.machine import (
    Bootstrap, Machine, MachineDeletionStatus, MachineDeprecatedStatus, MachineInitializationStatus, MachineNodeReference,
    MachineSpec, MachineStatus, MachineTemplateSpec, MachineV1Beta1DeprecatedStatus,
)
from clusterwright.api.core.machineset import (
    MachineDeployment, MachineDeploymentDeletionSpec, MachineDeploymentDeprecatedStatus, MachineDeploymentRemediationSpec,
    MachineDeploymentRolloutSpec, MachineDeploymentSpec, MachineDeploymentStatus, MachineDeploymentV1Beta1DeprecatedStatus,
    MachinePool, MachinePoolDeprecatedStatus, MachinePoolInitializationStatus, MachinePoolSpec, MachinePoolStatus,
    MachinePoolV1Beta1DeprecatedStatus, MachineSet, MachineSetDeletionSpec, MachineSetDeprecatedStatus, MachineSetSpec,
    MachineSetStatus, MachineSetV1Beta1DeprecatedStatus,
)
from clusterwright.api.core.shared import (
    APIEndpoint, ClusterClassTemplateReference, ClusterVariable, ContractVersionedObjectReference, FailureDomain, MachineAddress,
    MachineDeletionSpec, MachineDeletionSpecWithOrder, MachineDeploymentRolloutStrategy,
    MachineDeploymentRolloutStrategyRollingUpdate, MachineHealthCheckChecks, MachineHealthCheckRemediationTriggerIf,
    MachineNamingSpec, MachineReadinessGate, MachineTaint, NetworkRanges, ReplicaCounters, TemplateObjectMeta,
    TopologyVariableOverrides, UnhealthyMachineCondition, UnhealthyNodeCondition,
)

__all__ = [
    "APIEndpoint", "Bootstrap", "ClassNamingSpec", "ClassTemplateHolder", "Cluster", "ClusterClass", "ClusterClassDeprecatedStatus",
    "ClusterClassPatch", "ClusterClassRef", "ClusterClassSpec", "ClusterClassStatus", "ClusterClassStatusVariable",
    "ClusterClassStatusVariableDefinition", "ClusterClassTemplateReference", "ClusterClassUpgrade", "ClusterClassUpgradeExternal",
    "ClusterClassV1Beta1DeprecatedStatus", "ClusterClassVariable", "ClusterClassVariableMetadata", "ClusterDeprecatedStatus",
    "ClusterInitializationStatus", "ClusterNetwork", "ClusterSpec", "ClusterStatus", "ClusterV1Beta1DeprecatedStatus",
    "ClusterVariable", "ContractVersionedObjectReference", "ControlPlaneClass", "ControlPlaneClassHealthCheck",
    "ControlPlaneClassHealthCheckRemediation", "ControlPlaneTopology", "ControlPlaneTopologyHealthCheck",
    "ControlPlaneTopologyHealthCheckRemediation", "ControlPlaneTopologyRolloutSpec", "ExternalPatchDefinition", "FailureDomain",
    "InfrastructureClass", "JSONPatch", "JSONPatchValue", "JSONSchemaProps", "Machine", "MachineAddress", "MachineDeletionSpec",
    "MachineDeletionSpecWithOrder", "MachineDeletionStatus", "MachineDeployment", "MachineDeploymentClass",
    "MachineDeploymentClassHealthCheck", "MachineDeploymentClassHealthCheckRemediation", "MachineDeploymentClassRolloutSpec",
    "MachineDeploymentDeletionSpec", "MachineDeploymentDeprecatedStatus", "MachineDeploymentRemediationSpec",
    "MachineDeploymentRolloutSpec", "MachineDeploymentRolloutStrategy", "MachineDeploymentRolloutStrategyRollingUpdate",
    "MachineDeploymentSpec", "MachineDeploymentStatus", "MachineDeploymentTopology", "MachineDeploymentTopologyHealthCheck",
    "MachineDeploymentTopologyHealthCheckRemediation", "MachineDeploymentTopologyRolloutSpec",
    "MachineDeploymentV1Beta1DeprecatedStatus", "MachineDeprecatedStatus", "MachineDrainRule", "MachineDrainRuleDrainConfig",
    "MachineDrainRuleMachineSelector", "MachineDrainRulePodSelector", "MachineDrainRuleSpec", "MachineHealthCheck",
    "MachineHealthCheckChecks", "MachineHealthCheckDeprecatedStatus", "MachineHealthCheckRemediation",
    "MachineHealthCheckRemediationTriggerIf", "MachineHealthCheckSpec", "MachineHealthCheckStatus",
    "MachineHealthCheckV1Beta1DeprecatedStatus", "MachineInitializationStatus", "MachineNamingSpec", "MachineNodeReference",
    "MachinePool", "MachinePoolClass", "MachinePoolDeprecatedStatus", "MachinePoolInitializationStatus", "MachinePoolSpec",
    "MachinePoolStatus", "MachinePoolTopology", "MachinePoolV1Beta1DeprecatedStatus", "MachineReadinessGate", "MachineSet",
    "MachineSetDeletionSpec", "MachineSetDeprecatedStatus", "MachineSetSpec", "MachineSetStatus",
    "MachineSetV1Beta1DeprecatedStatus", "MachineSpec", "MachineStatus", "MachineTaint", "MachineTemplateSpec",
    "MachineV1Beta1DeprecatedStatus", "NetworkRanges", "PatchDefinition", "PatchSelector", "PatchSelectorMatch",
    "PatchSelectorMatchMachineDeploymentClass", "PatchSelectorMatchMachinePoolClass", "ReplicaCounters", "TemplateObjectMeta",
    "Topology", "TopologyVariableOverrides", "UnhealthyMachineCondition", "UnhealthyNodeCondition", "ValidationRule",
    "VariableSchema", "VariableSchemaMetadata", "WorkersClass", "WorkersTopology",
]
