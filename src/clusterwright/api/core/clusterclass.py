"""ClusterClass: classes, patches and variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from clusterwright.api.constraints import (
    ATOMIC,
    GROUP_VERSION,
    KIND,
    PRESERVE,
    REQUIRED,
    Default,
    Doc,
    Each,
    Int32,
    Int64,
    IntOrString,
    Items,
    Len,
    ListMap,
    OneOf,
    Props,
    Range,
)
from clusterwright.api.core.shared import (
    ClusterClassTemplateReference,
    MachineDeletionSpec,
    MachineDeletionSpecWithOrder,
    MachineDeploymentRolloutStrategy,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediationTriggerIf,
    MachineReadinessGate,
    MachineTaint,
    TemplateObjectMeta,
)
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, ObservedGeneration, Struct, V1Beta1Conditions


class ClassNamingSpec(Struct):
    """The naming template of a class. Unlike in MachineNamingSpec, `.random` is not mandatory."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template: Annotated[str, Len(1, 1024), Doc("Go template; result over 63 chars is cut to 58 + 5 random chars")] = ""


class ClassTemplateHolder(Struct):
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("the template")] = ClusterClassTemplateReference()


class ClusterClassVariableMetadata(Struct):
    """Legacy variable metadata."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    annotations: Annotated[Mapping[str, str], Doc("annotation map")] = {}
    labels: Annotated[Mapping[str, str], Doc("label map")] = {}


class ValidationRule(Struct):
    field_path: Annotated[str, Len(1, 512), Doc("relative JSON path, no list index")] = ""
    message: Annotated[str, Len(1, 512), Doc("no line breaks")] = ""
    message_expression: Annotated[str, Len(1, 1024), Doc("CEL string; wins over message")] = ""
    reason: Annotated[
        str,
        OneOf("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"),
        Default("FieldValueInvalid"),
        Doc("what a failure is called in the answer"),
    ] = ""
    rule: Annotated[str, REQUIRED, Len(1, 4096), Doc("CEL; oldSelf makes it an update-only rule")] = ""


class VariableSchemaMetadata(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    annotations: Annotated[Mapping[str, str], Doc("annotation map")] = {}
    labels: Annotated[Mapping[str, str], Doc("label map")] = {}


class JSONSchemaProps(Struct):
    """The schema of a ClusterClass variable; nested schemas are plain JSON."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    additional_properties: Annotated[Any, PRESERVE, Doc("nested JSONSchemaProps; exclusive with properties")] = None
    all_of: Annotated[Any, PRESERVE, Doc("list of JSONSchemaProps")] = None
    any_of: Annotated[Any, PRESERVE, Doc("list of JSONSchemaProps")] = None
    default: Annotated[Any, PRESERVE, Doc("value when the variable is not set")] = None
    description: Annotated[str, Len(1, 4096), Doc("what the variable means")] = ""
    enum: Annotated[tuple[Any, ...], Items(None, 100), ATOMIC, Each(PRESERVE), Doc("allowed values")] = ()
    example: Annotated[Any, PRESERVE, Doc("an example value")] = None
    exclusive_maximum: Annotated[bool | None, Doc("whether the maximum itself is excluded")] = None
    exclusive_minimum: Annotated[bool | None, Doc("whether the minimum itself is excluded")] = None
    format: Annotated[str, Len(1, 32), Doc("string formats; unknown ignored")] = ""
    items: Annotated[Any, PRESERVE, Doc("nested JSONSchemaProps")] = None
    max_items: Annotated[Int64 | None, Doc("most items of a list")] = None
    max_length: Annotated[Int64 | None, Doc("most characters of a string")] = None
    max_properties: Annotated[Int64 | None, Doc("most keys of an object")] = None
    maximum: Annotated[Int64 | None, Doc("integer even for number type")] = None
    min_items: Annotated[Int64 | None, Doc("fewest items of a list")] = None
    min_length: Annotated[Int64 | None, Doc("fewest characters of a string")] = None
    min_properties: Annotated[Int64 | None, Doc("fewest keys of an object")] = None
    minimum: Annotated[Int64 | None, Doc("integer even for number type")] = None
    not_: Annotated[Any, PRESERVE, Doc("nested JSONSchemaProps")] = None
    one_of: Annotated[Any, PRESERVE, Doc("list of JSONSchemaProps")] = None
    pattern: Annotated[str, Len(1, 512), Doc("regular expression for strings")] = ""
    properties: Annotated[Any, PRESERVE, Doc("map name -> JSONSchemaProps")] = None
    required: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 256)), Doc("keys that must be there")] = ()
    type: Annotated[
        str, OneOf("object", "array", "string", "integer", "number", "boolean"), Doc("absent allowed with x-kubernetes-int-or-string")
    ] = ""
    unique_items: Annotated[bool | None, Doc("whether items must differ")] = None
    x_kubernetes_int_or_string: Annotated[bool | None, Doc("whether a number or a string is taken")] = msgspec.field(
        name="x-kubernetes-int-or-string", default=None
    )
    x_kubernetes_preserve_unknown_fields: Annotated[bool | None, Doc("recursive unless narrowed")] = msgspec.field(
        name="x-kubernetes-preserve-unknown-fields", default=None
    )
    x_kubernetes_validations: Annotated[tuple[ValidationRule, ...], Items(1, 100), ListMap("rule"), Doc("CEL rules on variable values")] = (
        msgspec.field(name="x-kubernetes-validations", default=())
    )
    x_metadata: Annotated[VariableSchemaMetadata | None, Doc("labels/annotations for tooling")] = msgspec.field(
        name="x-metadata", default=None
    )


class ControlPlaneClassHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[ClusterClassTemplateReference | None, Doc("external remediation template")] = None
    trigger_if: Annotated[MachineHealthCheckRemediationTriggerIf | None, Doc("absent = always remediate")] = None


class ControlPlaneClassHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[MachineHealthCheckChecks | None, Doc("health checks")] = None
    remediation: Annotated[ControlPlaneClassHealthCheckRemediation | None, Doc("remediation settings")] = None


class ControlPlaneClass(Struct):
    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    health_check: Annotated[ControlPlaneClassHealthCheck | None, Doc("MHC definition; only valid with machineInfrastructure")] = None
    machine_infrastructure: Annotated[
        ClassTemplateHolder | None, Doc("InfraMachineTemplate for control-plane Machines (only Machine-based control planes)")
    ] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    naming: Annotated[ClassNamingSpec | None, Doc("default template `{{ .cluster.name }}-{{ .random }}`")] = None
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("extra Machine conditions that feed Machine Ready")
    ] = ()
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("ControlPlaneTemplate")] = ClusterClassTemplateReference()


class InfrastructureClass(Struct):
    naming: Annotated[ClassNamingSpec | None, Doc("default template `{{ .cluster.name }}-{{ .random }}`")] = None
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("InfraClusterTemplate")] = ClusterClassTemplateReference()


class JSONPatchValue(Struct):
    template: Annotated[str, Len(1, 10240), Doc("Go template rendering to YAML/JSON; exclusive with variable")] = ""
    variable: Annotated[str, Len(1, 256), Doc("variable path or builtin path")] = ""


class JSONPatch(Struct):
    op: Annotated[str, REQUIRED, OneOf("add", "replace", "remove"), Doc("add, replace or remove")] = ""
    path: Annotated[str, REQUIRED, Len(1, 512), Doc("must start with `/spec`; array index only 0 or `-` and only for add")] = ""
    value: Annotated[Any, PRESERVE, Doc("literal JSON; exclusive with valueFrom")] = None
    value_from: Annotated[JSONPatchValue | None, KEEP_EMPTY, Doc("computed value")] = None


class PatchSelectorMatchMachineDeploymentClass(Struct):
    names: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("class names; one leading or trailing `*` allowed")
    ] = ()


class PatchSelectorMatchMachinePoolClass(Struct):
    names: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("class names; one leading or trailing `*` allowed")
    ] = ()


class PatchSelectorMatch(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane: Annotated[bool | None, Doc("match control-plane template and its machineInfrastructure")] = None
    infrastructure_cluster: Annotated[bool | None, Doc("match InfraClusterTemplate")] = None
    machine_deployment_class: Annotated[PatchSelectorMatchMachineDeploymentClass | None, KEEP_EMPTY, Doc("match worker classes")] = None
    machine_pool_class: Annotated[PatchSelectorMatchMachinePoolClass | None, KEEP_EMPTY, Doc("match pool classes")] = None


class PatchSelector(Struct):
    api_version: Annotated[str, REQUIRED, Len(1, 317), GROUP_VERSION, Doc("must equal the template apiVersion")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("must equal the template kind")] = ""
    match_resources: Annotated[PatchSelectorMatch, REQUIRED, Doc("where the template is referenced; fields are OR-ed")] = (
        PatchSelectorMatch()
    )


class PatchDefinition(Struct):
    json_patches: Annotated[tuple[JSONPatch, ...], REQUIRED, Items(1, 100), ATOMIC, Doc("applied in order")] = ()
    selector: Annotated[PatchSelector, REQUIRED, Doc("which templates to patch")] = PatchSelector()


class ExternalPatchDefinition(Struct):
    discover_variables_extension: Annotated[str, Len(1, 512), Doc("handler name `<handler>.<ExtensionConfig>`")] = ""
    generate_patches_extension: Annotated[str, Len(1, 512), Doc("handler name; one of generate/validate is mandatory")] = ""
    settings: Annotated[Mapping[str, str], Doc("override ExtensionConfig settings")] = {}
    validate_topology_extension: Annotated[str, Len(1, 512), Doc("handler name")] = ""


class ClusterClassPatch(Struct):
    definitions: Annotated[tuple[PatchDefinition, ...], Items(None, 100), ATOMIC, Doc("inline patches; exclusive with external")] = ()
    description: Annotated[str, Len(1, 1024), Doc("free text")] = ""
    enabled_if: Annotated[str, Len(1, 256), Doc("Go template; patch applies when it renders to boolean true; absent = always")] = ""
    external: Annotated[
        ExternalPatchDefinition | None, KEEP_EMPTY, Doc("runtime-extension patch (gate RuntimeSDK); exclusive with definitions")
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("unique; the word `inline` is reserved")] = ""


class ClusterClassUpgradeExternal(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    generate_upgrade_plan_extension: Annotated[str, Len(1, 512), Doc("handler that computes the upgrade plan")] = ""


class ClusterClassUpgrade(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    external: Annotated[ClusterClassUpgradeExternal | None, Doc("extension-driven upgrades")] = None


class VariableSchema(Struct):
    open_api_v3_schema: Annotated[JSONSchemaProps, REQUIRED, Doc("CRD-like structural schema subset")] = msgspec.field(
        name="openAPIV3Schema", default=JSONSchemaProps()
    )


class ClusterClassVariable(Struct):
    deprecated_v1_beta1_metadata: Annotated[ClusterClassVariableMetadata | None, Doc("deprecated form of x-metadata in the schema")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("no `.`; `builtin` is reserved")] = ""
    required: Annotated[bool | None, REQUIRED, Doc("must be present in Cluster spec.topology.variables")] = None
    schema: Annotated[VariableSchema, REQUIRED, Doc("variable schema")] = VariableSchema()


class MachineDeploymentClassHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[IntOrString | None, Doc("int or percent")] = None
    template_ref: Annotated[ClusterClassTemplateReference | None, Doc("external remediation template")] = None
    trigger_if: Annotated[MachineHealthCheckRemediationTriggerIf | None, Doc("absent = always remediate")] = None


class MachineDeploymentClassHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[MachineHealthCheckChecks | None, Doc("health checks")] = None
    remediation: Annotated[MachineDeploymentClassHealthCheckRemediation | None, Doc("remediation settings")] = None


class MachineDeploymentClassRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    strategy: Annotated[MachineDeploymentRolloutStrategy | None, Doc("default strategy")] = None


class MachineDeploymentClass(Struct):
    bootstrap: Annotated[ClassTemplateHolder, REQUIRED, Doc("BootstrapConfigTemplate")] = ClassTemplateHolder()
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("class name (list key)")] = ""
    deletion: Annotated[MachineDeletionSpecWithOrder | None, Doc("drain/detach/node-delete timeouts")] = None
    failure_domain: Annotated[str, Len(1, 256), Doc("default failure domain")] = ""
    health_check: Annotated[MachineDeploymentClassHealthCheck | None, Doc("MHC definition")] = None
    infrastructure: Annotated[ClassTemplateHolder, REQUIRED, Doc("InfraMachineTemplate")] = ClassTemplateHolder()
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("seconds a Machine must stay Ready before it counts as Available; unset = 0")
    ] = None
    naming: Annotated[ClassNamingSpec | None, Doc("default `{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}`")] = (
        None
    )
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("extra Machine conditions that feed Machine Ready")
    ] = ()
    rollout: Annotated[MachineDeploymentClassRolloutSpec | None, Doc("only `strategy`")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()


class MachinePoolClass(Struct):
    bootstrap: Annotated[ClassTemplateHolder, REQUIRED, Doc("BootstrapConfigTemplate")] = ClassTemplateHolder()
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("class name (list key)")] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("drain/detach/node-delete timeouts")] = None
    failure_domains: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("default list")] = ()
    infrastructure: Annotated[ClassTemplateHolder, REQUIRED, Doc("InfraMachinePoolTemplate")] = ClassTemplateHolder()
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels/annotations stamped on the generated object(s)")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("seconds a Machine must stay Ready before it counts as Available; unset = 0")
    ] = None
    naming: Annotated[ClassNamingSpec | None, Doc("default `{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}`")] = None
    taints: Annotated[
        tuple[MachineTaint, ...], Items(1, 64), ListMap("key", "effect"), Doc("taints of the Nodes (feature gate MachineTaintPropagation)")
    ] = ()


class WorkersClass(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    machine_deployments: Annotated[
        tuple[MachineDeploymentClass, ...], Items(1, 100), ListMap("class"), Doc("MachineDeployment classes")
    ] = ()
    machine_pools: Annotated[tuple[MachinePoolClass, ...], Items(1, 100), ListMap("class"), Doc("MachinePool classes")] = ()


class ClusterClassSpec(Struct):
    availability_gates: Annotated[
        tuple[MachineReadinessGate, ...], Items(1, 32), ListMap("conditionType"), Doc("default gates for Clusters that set none")
    ] = ()
    control_plane: Annotated[ControlPlaneClass, REQUIRED, Doc("control-plane class")] = ControlPlaneClass()
    infrastructure: Annotated[InfrastructureClass, REQUIRED, Doc("InfraCluster class")] = InfrastructureClass()
    kubernetes_versions: Annotated[
        tuple[str, ...],
        Items(1, 100),
        ATOMIC,
        Each(Len(1, 256)),
        Doc("allowed versions, ascending, no minor gap; enables chained upgrades"),
    ] = ()
    patches: Annotated[tuple[ClusterClassPatch, ...], Items(1, 1000), ATOMIC, Doc("applied in list order")] = ()
    upgrade: Annotated[ClusterClassUpgrade | None, Doc("upgrade hooks")] = None
    variables: Annotated[tuple[ClusterClassVariable, ...], Items(1, 1000), ATOMIC, Doc("variable definitions (names unique)")] = ()
    workers: Annotated[WorkersClass | None, Doc("worker classes")] = None


class ClusterClassV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ClusterClassDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterClassV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class ClusterClassStatusVariableDefinition(Struct):
    deprecated_v1_beta1_metadata: Annotated[ClusterClassVariableMetadata | None, Doc("deprecated form")] = None
    from_: Annotated[str, REQUIRED, Len(1, 256), Doc("`inline` or the patch name")] = ""
    required: Annotated[bool | None, REQUIRED, Doc("as in spec")] = None
    schema: Annotated[VariableSchema, REQUIRED, Doc("as in spec")] = VariableSchema()


class ClusterClassStatusVariable(Struct):
    definitions: Annotated[tuple[ClusterClassStatusVariableDefinition, ...], REQUIRED, Items(1, 100), ATOMIC, Doc("one per origin")] = ()
    definitions_conflict: Annotated[bool | None, Doc("true when origins disagree; then variable cannot be used")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("variable name")] = ""


class ClusterClassStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ClusterClassDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    observed_generation: ObservedGeneration = 0
    variables: Annotated[
        tuple[ClusterClassStatusVariable, ...], Items(None, 1000), ATOMIC, Doc("resolved definitions (inline + discovered)")
    ] = ()


class ClusterClass(Object):
    """A reusable template of Clusters."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterClass"
    spec: Annotated[ClusterClassSpec, REQUIRED, Doc("desired state")] = ClusterClassSpec()
    status: Annotated[ClusterClassStatus, Doc("observed state")] = ClusterClassStatus()
