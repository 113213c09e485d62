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

    template: Annotated[
        str, Len(1, 1024), Doc("A Go template of the name. Names above 63 characters are cut to 58, and 5 random characters are added.")
    ] = ""


class ClassTemplateHolder(Struct):
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("A reference to the template.")] = ClusterClassTemplateReference()


class ClusterClassVariableMetadata(Struct):
    """Legacy variable metadata."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    annotations: Annotated[Mapping[str, str], Doc("The annotations, by key.")] = {}
    labels: Annotated[Mapping[str, str], Doc("The labels, by key.")] = {}


class ValidationRule(Struct):
    field_path: Annotated[str, Len(1, 512), Doc("The path of the field that is reported, relative to the value and without an index.")] = ""
    message: Annotated[str, Len(1, 512), Doc("The error text, without line breaks.")] = ""
    message_expression: Annotated[str, Len(1, 1024), Doc("A CEL expression that returns the error text. It overrides message.")] = ""
    reason: Annotated[
        str,
        OneOf("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"),
        Default("FieldValueInvalid"),
        Doc("The reason for the error, for programs."),
    ] = ""
    rule: Annotated[str, REQUIRED, Len(1, 4096), Doc("The rule in CEL. A rule that names oldSelf applies only to updates.")] = ""


class VariableSchemaMetadata(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    annotations: Annotated[Mapping[str, str], Doc("The annotations, by key.")] = {}
    labels: Annotated[Mapping[str, str], Doc("The labels, by key.")] = {}


class JSONSchemaProps(Struct):
    """The schema of a ClusterClass variable; nested schemas are plain JSON."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    additional_properties: Annotated[Any, PRESERVE, Doc("The schema of values of a map. It cannot be combined with properties.")] = None
    all_of: Annotated[Any, PRESERVE, Doc("A list of schemas. A value must fit all of them.")] = None
    any_of: Annotated[Any, PRESERVE, Doc("A list of schemas. A value must fit all of them.")] = None
    default: Annotated[Any, PRESERVE, Doc("The value if a Cluster sets none.")] = None
    description: Annotated[str, Len(1, 4096), Doc("The meaning of the variable, for people.")] = ""
    enum: Annotated[tuple[Any, ...], Items(None, 100), ATOMIC, Each(PRESERVE), Doc("The values that are allowed.")] = ()
    example: Annotated[Any, PRESERVE, Doc("A value as an example.")] = None
    exclusive_maximum: Annotated[bool | None, Doc("If true, the value must be less than maximum.")] = None
    exclusive_minimum: Annotated[bool | None, Doc("If true, the value must be greater than minimum.")] = None
    format: Annotated[str, Len(1, 32), Doc("The format of a string. Unknown formats are ignored.")] = ""
    items: Annotated[Any, PRESERVE, Doc("The schema of the items of a list.")] = None
    max_items: Annotated[Int64 | None, Doc("The largest number of items in a list.")] = None
    max_length: Annotated[Int64 | None, Doc("The largest number of characters in a string.")] = None
    max_properties: Annotated[Int64 | None, Doc("The largest number of keys in an object.")] = None
    maximum: Annotated[Int64 | None, Doc("The largest number that is allowed. It is an integer, even if the type is number.")] = None
    min_items: Annotated[Int64 | None, Doc("The smallest number of items in a list.")] = None
    min_length: Annotated[Int64 | None, Doc("The smallest number of characters in a string.")] = None
    min_properties: Annotated[Int64 | None, Doc("The smallest number of keys in an object.")] = None
    minimum: Annotated[Int64 | None, Doc("The largest number that is allowed. It is an integer, even if the type is number.")] = None
    not_: Annotated[Any, PRESERVE, Doc("The schema of the items of a list.")] = None
    one_of: Annotated[Any, PRESERVE, Doc("A list of schemas. A value must fit all of them.")] = None
    pattern: Annotated[str, Len(1, 512), Doc("A regular expression that a string must match.")] = ""
    properties: Annotated[Any, PRESERVE, Doc("The schemas of the keys of an object.")] = None
    required: Annotated[tuple[str, ...], Items(1, 1000), ATOMIC, Each(Len(1, 256)), Doc("The keys that an object must have.")] = ()
    type: Annotated[
        str,
        OneOf("object", "array", "string", "integer", "number", "boolean"),
        Doc("The type of the value. It may be absent with x-kubernetes-int-or-string."),
    ] = ""
    unique_items: Annotated[bool | None, Doc("If true, no two items of a list may be equal.")] = None
    x_kubernetes_int_or_string: Annotated[bool | None, Doc("If true, a number or a string is allowed.")] = msgspec.field(
        name="x-kubernetes-int-or-string", default=None
    )
    x_kubernetes_preserve_unknown_fields: Annotated[
        bool | None, Doc("If true, unknown keys are kept, also at deeper levels where no schema says otherwise.")
    ] = msgspec.field(name="x-kubernetes-preserve-unknown-fields", default=None)
    x_kubernetes_validations: Annotated[
        tuple[ValidationRule, ...], Items(1, 100), ListMap("rule"), Doc("Rules in CEL that values must meet.")
    ] = msgspec.field(name="x-kubernetes-validations", default=())
    x_metadata: Annotated[VariableSchemaMetadata | None, Doc("Labels and annotations of the variable for tools.")] = msgspec.field(
        name="x-metadata", default=None
    )


class ControlPlaneClassHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    template_ref: Annotated[
        ClusterClassTemplateReference | None, Doc("A template from which an object for external remediation is created.")
    ] = None
    trigger_if: Annotated[
        MachineHealthCheckRemediationTriggerIf | None, Doc("A limit above which nothing is remediated. If absent, there is no limit.")
    ] = None


class ControlPlaneClassHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[MachineHealthCheckChecks | None, Doc("The conditions of unhealthy Machines.")] = None
    remediation: Annotated[ControlPlaneClassHealthCheckRemediation | None, Doc("How unhealthy Machines are remediated.")] = None


class ControlPlaneClass(Struct):
    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    health_check: Annotated[
        ControlPlaneClassHealthCheck | None, Doc("The health check of control planes. It requires machineInfrastructure.")
    ] = None
    machine_infrastructure: Annotated[
        ClassTemplateHolder | None,
        Doc("The infrastructure template of control plane Machines. It is allowed only for control planes that consist of Machines."),
    ] = None
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    naming: Annotated[ClassNamingSpec | None, Doc("How the object is named. The default is `{{ .cluster.name }}-{{ .random }}`.")] = None
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
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("A reference to the template of control plane objects.")] = (
        ClusterClassTemplateReference()
    )


class InfrastructureClass(Struct):
    naming: Annotated[ClassNamingSpec | None, Doc("How the object is named. The default is `{{ .cluster.name }}-{{ .random }}`.")] = None
    template_ref: Annotated[ClusterClassTemplateReference, REQUIRED, Doc("A reference to the template of infrastructure objects.")] = (
        ClusterClassTemplateReference()
    )


class JSONPatchValue(Struct):
    template: Annotated[str, Len(1, 10240), Doc("A Go template whose result is YAML or JSON. It cannot be combined with variable.")] = ""
    variable: Annotated[str, Len(1, 256), Doc("The path of a variable, or of a built-in variable.")] = ""


class JSONPatch(Struct):
    op: Annotated[str, REQUIRED, OneOf("add", "replace", "remove"), Doc("The operation: add, replace or remove.")] = ""
    path: Annotated[
        str,
        REQUIRED,
        Len(1, 512),
        Doc("The path of the field, which starts with `/spec`. An index of a list must be 0 or `-`, and only for add."),
    ] = ""
    value: Annotated[Any, PRESERVE, Doc("The value, as JSON. It cannot be combined with valueFrom.")] = None
    value_from: Annotated[JSONPatchValue | None, KEEP_EMPTY, Doc("A source from which the value is computed.")] = None


class PatchSelectorMatchMachineDeploymentClass(Struct):
    names: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("The names of classes. A name may begin or end with `*`.")
    ] = ()


class PatchSelectorMatchMachinePoolClass(Struct):
    names: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("The names of classes. A name may begin or end with `*`.")
    ] = ()


class PatchSelectorMatch(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    control_plane: Annotated[bool | None, Doc("If true, the templates of the control plane and of its Machines are patched.")] = None
    infrastructure_cluster: Annotated[bool | None, Doc("If true, the template of the infrastructure object is patched.")] = None
    machine_deployment_class: Annotated[
        PatchSelectorMatchMachineDeploymentClass | None, KEEP_EMPTY, Doc("The worker classes whose templates are patched.")
    ] = None
    machine_pool_class: Annotated[
        PatchSelectorMatchMachinePoolClass | None, KEEP_EMPTY, Doc("The pool classes whose templates are patched.")
    ] = None


class PatchSelector(Struct):
    api_version: Annotated[str, REQUIRED, Len(1, 317), GROUP_VERSION, Doc("The API group and version of the templates.")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("The kind of the templates.")] = ""
    match_resources: Annotated[
        PatchSelectorMatch, REQUIRED, Doc("The places in the ClusterClass that refer to the templates. At least one of them must fit.")
    ] = PatchSelectorMatch()


class PatchDefinition(Struct):
    json_patches: Annotated[
        tuple[JSONPatch, ...], REQUIRED, Items(1, 100), ATOMIC, Doc("The operations, applied in the order of the list.")
    ] = ()
    selector: Annotated[PatchSelector, REQUIRED, Doc("The templates that the patch changes.")] = PatchSelector()


class ExternalPatchDefinition(Struct):
    discover_variables_extension: Annotated[
        str, Len(1, 512), Doc("The handler that defines variables, as `<handler>.<ExtensionConfig>`.")
    ] = ""
    generate_patches_extension: Annotated[
        str, Len(1, 512), Doc("The handler that computes patches. This or validateTopologyExtension is required.")
    ] = ""
    settings: Annotated[Mapping[str, str], Doc("Settings for the extension. They override those of the ExtensionConfig.")] = {}
    validate_topology_extension: Annotated[str, Len(1, 512), Doc("The handler that validates the result.")] = ""


class ClusterClassPatch(Struct):
    definitions: Annotated[
        tuple[PatchDefinition, ...],
        Items(None, 100),
        ATOMIC,
        Doc("The patches that are written here. They cannot be combined with external."),
    ] = ()
    description: Annotated[str, Len(1, 1024), Doc("A description for people.")] = ""
    enabled_if: Annotated[
        str, Len(1, 256), Doc("A Go template. The patch is applied if its result is true. If absent, the patch is always applied.")
    ] = ""
    external: Annotated[
        ExternalPatchDefinition | None,
        KEEP_EMPTY,
        Doc("A patch that a runtime extension computes (feature gate RuntimeSDK). It cannot be combined with definitions."),
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The unique name of the patch. The name `inline` is reserved.")] = ""


class ClusterClassUpgradeExternal(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    generate_upgrade_plan_extension: Annotated[str, Len(1, 512), Doc("The handler that computes the versions of an upgrade.")] = ""


class ClusterClassUpgrade(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    external: Annotated[ClusterClassUpgradeExternal | None, Doc("The extensions that take part in upgrades.")] = None


class VariableSchema(Struct):
    open_api_v3_schema: Annotated[JSONSchemaProps, REQUIRED, Doc("A structural schema, as in a CRD but with fewer keywords.")] = (
        msgspec.field(name="openAPIV3Schema", default=JSONSchemaProps())
    )


class ClusterClassVariable(Struct):
    deprecated_v1_beta1_metadata: Annotated[
        ClusterClassVariableMetadata | None,
        Doc("Labels and annotations of the variable in a deprecated form. Use x-metadata in the schema instead."),
    ] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the variable. It has no `.`, and `builtin` is reserved.")] = ""
    required: Annotated[bool | None, REQUIRED, Doc("If true, each Cluster must set the variable in spec.topology.variables.")] = None
    schema: Annotated[VariableSchema, REQUIRED, Doc("The schema of the values.")] = VariableSchema()


class MachineDeploymentClassHealthCheckRemediation(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    max_in_flight: Annotated[IntOrString | None, Doc("The number or percentage of Machines that may be remediated at the same time.")] = (
        None
    )
    template_ref: Annotated[
        ClusterClassTemplateReference | None, Doc("A template from which an object for external remediation is created.")
    ] = None
    trigger_if: Annotated[
        MachineHealthCheckRemediationTriggerIf | None, Doc("A limit above which nothing is remediated. If absent, there is no limit.")
    ] = None


class MachineDeploymentClassHealthCheck(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    checks: Annotated[MachineHealthCheckChecks | None, Doc("The conditions of unhealthy Machines.")] = None
    remediation: Annotated[MachineDeploymentClassHealthCheckRemediation | None, Doc("How unhealthy Machines are remediated.")] = None


class MachineDeploymentClassRolloutSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    strategy: Annotated[MachineDeploymentRolloutStrategy | None, Doc("The strategy if a Cluster sets none.")] = None


class MachineDeploymentClass(Struct):
    bootstrap: Annotated[ClassTemplateHolder, REQUIRED, Doc("The template of the bootstrap configuration.")] = ClassTemplateHolder()
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("The unique name of the class.")] = ""
    deletion: Annotated[MachineDeletionSpecWithOrder | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = (
        None
    )
    failure_domain: Annotated[str, Len(1, 256), Doc("The failure domain of Machines if a Cluster sets none.")] = ""
    health_check: Annotated[MachineDeploymentClassHealthCheck | None, Doc("The health check of these workers.")] = None
    infrastructure: Annotated[ClassTemplateHolder, REQUIRED, Doc("The template of infrastructure machines.")] = ClassTemplateHolder()
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which a Machine must be Ready before it counts as Available. If absent, it is 0.")
    ] = None
    naming: Annotated[
        ClassNamingSpec | None,
        Doc("How the object is named. The default is `{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}`."),
    ] = None
    readiness_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions of Machines that their Ready condition depends on."),
    ] = ()
    rollout: Annotated[MachineDeploymentClassRolloutSpec | None, Doc("How Machines are replaced.")] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()


class MachinePoolClass(Struct):
    bootstrap: Annotated[ClassTemplateHolder, REQUIRED, Doc("The template of the bootstrap configuration.")] = ClassTemplateHolder()
    class_: Annotated[str, REQUIRED, Len(1, 256), Doc("The unique name of the class.")] = ""
    deletion: Annotated[MachineDeletionSpec | None, Doc("The time limits for draining, detaching volumes and deleting Nodes.")] = None
    failure_domains: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("The failure domains of the pool if a Cluster sets none.")
    ] = ()
    infrastructure: Annotated[ClassTemplateHolder, REQUIRED, Doc("The template of infrastructure pools.")] = ClassTemplateHolder()
    metadata: Annotated[TemplateObjectMeta | None, Doc("The labels and annotations of the objects that are created.")] = None
    min_ready_seconds: Annotated[
        Int32 | None, Range(0), Doc("The seconds for which a Machine must be Ready before it counts as Available. If absent, it is 0.")
    ] = None
    naming: Annotated[
        ClassNamingSpec | None,
        Doc("How the object is named. The default is `{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}`."),
    ] = None
    taints: Annotated[
        tuple[MachineTaint, ...],
        Items(1, 64),
        ListMap("key", "effect"),
        Doc("The taints of the Nodes (feature gate MachineTaintPropagation)."),
    ] = ()


class WorkersClass(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    machine_deployments: Annotated[
        tuple[MachineDeploymentClass, ...], Items(1, 100), ListMap("class"), Doc("The classes of MachineDeployments.")
    ] = ()
    machine_pools: Annotated[tuple[MachinePoolClass, ...], Items(1, 100), ListMap("class"), Doc("The classes of MachinePools.")] = ()


class ClusterClassSpec(Struct):
    availability_gates: Annotated[
        tuple[MachineReadinessGate, ...],
        Items(1, 32),
        ListMap("conditionType"),
        Doc("Further conditions that Available of a Cluster depends on, for Clusters that set none."),
    ] = ()
    control_plane: Annotated[ControlPlaneClass, REQUIRED, Doc("The class of control planes.")] = ControlPlaneClass()
    infrastructure: Annotated[InfrastructureClass, REQUIRED, Doc("The class of the infrastructure object.")] = InfrastructureClass()
    kubernetes_versions: Annotated[
        tuple[str, ...],
        Items(1, 100),
        ATOMIC,
        Each(Len(1, 256)),
        Doc(
            "The Kubernetes versions that are allowed, ascending and without a gap between minor versions. "
            "They allow upgrades in several steps."
        ),
    ] = ()
    patches: Annotated[tuple[ClusterClassPatch, ...], Items(1, 1000), ATOMIC, Doc("The patches, applied in the order of the list.")] = ()
    upgrade: Annotated[ClusterClassUpgrade | None, Doc("The settings of upgrades.")] = None
    variables: Annotated[
        tuple[ClusterClassVariable, ...], Items(1, 1000), ATOMIC, Doc("The definitions of variables. Their names are unique.")
    ] = ()
    workers: Annotated[WorkersClass | None, Doc("The classes of workers.")] = None


class ClusterClassV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ClusterClassDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterClassV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class ClusterClassStatusVariableDefinition(Struct):
    deprecated_v1_beta1_metadata: Annotated[
        ClusterClassVariableMetadata | None, Doc("Labels and annotations of the variable in a deprecated form.")
    ] = None
    from_: Annotated[str, REQUIRED, Len(1, 256), Doc("The source of the definition: `inline`, or the name of a patch.")] = ""
    required: Annotated[bool | None, REQUIRED, Doc("If true, each Cluster must set the variable.")] = None
    schema: Annotated[VariableSchema, REQUIRED, Doc("If true, each Cluster must set the variable.")] = VariableSchema()


class ClusterClassStatusVariable(Struct):
    definitions: Annotated[
        tuple[ClusterClassStatusVariableDefinition, ...],
        REQUIRED,
        Items(1, 100),
        ATOMIC,
        Doc("The definitions of the variable, one for each source."),
    ] = ()
    definitions_conflict: Annotated[bool | None, Doc("True if the definitions differ. Then no Cluster can set the variable.")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the variable, unique in this list.")] = ""


class ClusterClassStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ClusterClassDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    observed_generation: ObservedGeneration = 0
    variables: Annotated[
        tuple[ClusterClassStatusVariable, ...],
        Items(None, 1000),
        ATOMIC,
        Doc("All definitions of variables: those in spec, and those of extensions."),
    ] = ()


class ClusterClass(Object):
    """A reusable template of Clusters."""

    api_version: str = "cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterClass"
    spec: Annotated[ClusterClassSpec, REQUIRED, Doc("The desired state, which users set.")] = ClusterClassSpec()
    status: Annotated[ClusterClassStatus, Doc("The observed state, which controllers write.")] = ClusterClassStatus()
