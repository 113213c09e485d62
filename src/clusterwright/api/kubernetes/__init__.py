"""Built-in kinds of Kubernetes, as far as upstream's v1 groups that we serve or read."""

# fmt: off
# ruff: noqa: I001

from clusterwright.api.kubernetes.admissionregistration import (
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig, WebhookServiceReference,
)
from clusterwright.api.kubernetes.apiextensions import (
    ConversionServiceReference, ConversionWebhookClientConfig, CustomResourceColumnDefinition, CustomResourceConversion,
    CustomResourceDefinition, CustomResourceDefinitionCondition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus, CustomResourceDefinitionVersion, CustomResourceSubresources, CustomResourceSubresourceScale,
    CustomResourceValidation, SelectableField, WebhookConversion,
)
from clusterwright.api.kubernetes.apps import (
    ControllerRevision, DaemonSet, DaemonSetCondition, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy, Deployment,
    DeploymentCondition, DeploymentSpec, DeploymentStatus, DeploymentStrategy, PodTemplateSpec, ReplicaSet, ReplicaSetCondition,
    ReplicaSetSpec, ReplicaSetStatus, RollingUpdateDaemonSet, RollingUpdateDeployment, RollingUpdateStatefulSetStrategy,
    StatefulSet, StatefulSetCondition, StatefulSetOrdinals, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
    StatefulSetStatus, StatefulSetUpdateStrategy,
)
from clusterwright.api.kubernetes.auth import (
    BoundObjectReference, FieldSelectorAttributes, LabelSelectorAttributes, LocalSubjectAccessReview, NonResourceAttributes,
    NonResourceRule, ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectReview,
    SelfSubjectReviewStatus, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectAccessReview, SubjectAccessReviewSpec,
    SubjectAccessReviewStatus, SubjectRulesReviewStatus, TokenRequest, TokenRequestSpec, TokenRequestStatus, TokenReview,
    TokenReviewSpec, TokenReviewStatus, UserInfo,
)
from clusterwright.api.kubernetes.container import (
    AppArmorProfile, Capabilities, ConfigMapEnvSource, Container, ContainerPort, ContainerResizePolicy, ContainerRestartRule,
    ContainerRestartRuleOnExitCodes, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, ContainerUser, EnvFromSource, EnvVar, EnvVarSource, EphemeralContainer, ExecAction, GRPCAction, HTTPGetAction,
    HTTPHeader, ImageVolumeStatus, Lifecycle, LifecycleHandler, LinuxContainerUser, Probe, ResourceClaim, ResourceHealth,
    ResourceRequirements, ResourceStatus, SeccompProfile, SecretEnvSource, SecurityContext, SELinuxOptions, SleepAction,
    TCPSocketAction, VolumeDevice, VolumeMount, VolumeMountStatus, VolumeStatus, WindowsSecurityContextOptions,
)
from clusterwright.api.kubernetes.coordination import (
    Lease, LeaseSpec,
)
from clusterwright.api.kubernetes.core import (
    ClientIPConfig, ConfigMap, EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Event, EventSeries, EventSource,
    LoadBalancerIngress, LoadBalancerStatus, Namespace, NamespaceCondition, NamespaceSpec, NamespaceStatus, PortStatus, Secret,
    Service, ServiceAccount, ServicePort, ServiceSpec, ServiceStatus, SessionAffinityConfig,
)
from clusterwright.api.kubernetes.events import (
    EventsEvent, EventsEventSeries,
)
from clusterwright.api.kubernetes.node import (
    AttachedVolume, ConfigMapNodeConfigSource, ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeConfigSource,
    NodeConfigStatus, NodeDaemonEndpoints, NodeFeatures, NodePodPreemptionPolicy, NodeRuntimeHandler, NodeRuntimeHandlerFeatures,
    NodeSpec, NodeStatus, NodeSwapStatus, NodeSystemInfo, Taint,
)
from clusterwright.api.kubernetes.pod import (
    Affinity, ContainerExtendedResourceRequest, EvictionResponder, HostAlias, HostIP, NodeAffinity, NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources, NodeAllocatableResourceClaimStatus, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity,
    PodCondition, PodDNSConfig, PodDNSConfigOption, PodExtendedResourceClaimStatus, PodIP, PodOS, PodReadinessGate,
    PodResourceClaim, PodResourceClaimStatus, PodSchedulingGate, PodSchedulingGroup, PodSecurityContext, PodSpec, PodStatus,
    PodVolumeHealth, PreferredSchedulingTerm, Sysctl, Toleration, TopologySpreadConstraint, VolumeHealthCondition,
    WeightedPodAffinityTerm,
)
from clusterwright.api.kubernetes.policy import (
    Eviction, PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
)
from clusterwright.api.kubernetes.rbac import (
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
)
from clusterwright.api.kubernetes.references import (
    ConfigMapKeySelector, FileKeySelector, KeyToPath, LocalObjectReference, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectFieldSelector, ObjectReference, ResourceFieldSelector, SecretKeySelector, SecretReference, TypedLocalObjectReference,
    TypedObjectReference,
)
from clusterwright.api.kubernetes.storage import (
    AzureFilePersistentVolumeSource, CephFSPersistentVolumeSource, CinderPersistentVolumeSource, CSIDriver, CSIDriverSpec, CSINode,
    CSINodeDriver, CSINodeSpec, CSINodeStatus, CSIPersistentVolumeSource, CSITokenRequest, FlexPersistentVolumeSource,
    GlusterfsPersistentVolumeSource, ISCSIPersistentVolumeSource, LocalVolumeSource, ModifyVolumeStatus, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimCondition, PersistentVolumeClaimStatus, PersistentVolumeSpec,
    PersistentVolumeStatus, RBDPersistentVolumeSource, ScaleIOPersistentVolumeSource, StorageClass, StorageHealth,
    StorageHealthCondition, StorageOSPersistentVolumeSource, TopologySelectorLabelRequirement, TopologySelectorTerm,
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec, VolumeAttachmentStatus, VolumeError, VolumeHealthStatus,
    VolumeNodeAffinity, VolumeNodeResources,
)
from clusterwright.api.kubernetes.volume import (
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource, CephFSVolumeSource, CinderVolumeSource,
    ClusterTrustBundleProjection, ConfigMapProjection, ConfigMapVolumeSource, CSIVolumeSource, DownwardAPIProjection,
    DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource, FCVolumeSource, FlexVolumeSource,
    FlockerVolumeSource, GCEPersistentDiskVolumeSource, GitRepoVolumeSource, GlusterfsVolumeSource, HostPathVolumeSource,
    ImageVolumeSource, ISCSIVolumeSource, NFSVolumeSource, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource, PhotonPersistentDiskVolumeSource, PodCertificateProjection, PortworxVolumeSource,
    ProjectedVolumeSource, QuobyteVolumeSource, RBDVolumeSource, ScaleIOVolumeSource, SecretProjection, SecretVolumeSource,
    ServiceAccountTokenProjection, StorageOSVolumeSource, Volume, VolumeProjection, VolumeResourceRequirements,
    VsphereVirtualDiskVolumeSource,
)

__all__ = [
    "AWSElasticBlockStoreVolumeSource", "Affinity", "AggregationRule", "AppArmorProfile", "AttachedVolume", "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource", "AzureFileVolumeSource", "BoundObjectReference", "CSIDriver", "CSIDriverSpec", "CSINode",
    "CSINodeDriver", "CSINodeSpec", "CSINodeStatus", "CSIPersistentVolumeSource", "CSITokenRequest", "CSIVolumeSource",
    "Capabilities", "CephFSPersistentVolumeSource", "CephFSVolumeSource", "CinderPersistentVolumeSource", "CinderVolumeSource",
    "ClientIPConfig", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundleProjection", "ConfigMap", "ConfigMapEnvSource",
    "ConfigMapKeySelector", "ConfigMapNodeConfigSource", "ConfigMapProjection", "ConfigMapVolumeSource", "Container",
    "ContainerExtendedResourceRequest", "ContainerImage", "ContainerPort", "ContainerResizePolicy", "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes", "ContainerState", "ContainerStateRunning", "ContainerStateTerminated",
    "ContainerStateWaiting", "ContainerStatus", "ContainerUser", "ControllerRevision", "ConversionServiceReference",
    "ConversionWebhookClientConfig", "CustomResourceColumnDefinition", "CustomResourceConversion", "CustomResourceDefinition",
    "CustomResourceDefinitionCondition", "CustomResourceDefinitionNames", "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus", "CustomResourceDefinitionVersion", "CustomResourceSubresourceScale",
    "CustomResourceSubresources", "CustomResourceValidation", "DaemonEndpoint", "DaemonSet", "DaemonSetCondition", "DaemonSetSpec",
    "DaemonSetStatus", "DaemonSetUpdateStrategy", "Deployment", "DeploymentCondition", "DeploymentSpec", "DeploymentStatus",
    "DeploymentStrategy", "DownwardAPIProjection", "DownwardAPIVolumeFile", "DownwardAPIVolumeSource", "EmptyDirVolumeSource",
    "EndpointAddress", "EndpointPort", "EndpointSubset", "Endpoints", "EnvFromSource", "EnvVar", "EnvVarSource",
    "EphemeralContainer", "EphemeralVolumeSource", "Event", "EventSeries", "EventSource", "EventsEvent", "EventsEventSeries",
    "Eviction", "EvictionResponder", "ExecAction", "FCVolumeSource", "FieldSelectorAttributes", "FileKeySelector",
    "FlexPersistentVolumeSource", "FlexVolumeSource", "FlockerVolumeSource", "GCEPersistentDiskVolumeSource", "GRPCAction",
    "GitRepoVolumeSource", "GlusterfsPersistentVolumeSource", "GlusterfsVolumeSource", "HTTPGetAction", "HTTPHeader", "HostAlias",
    "HostIP", "HostPathVolumeSource", "ISCSIPersistentVolumeSource", "ISCSIVolumeSource", "ImageVolumeSource", "ImageVolumeStatus",
    "KeyToPath", "LabelSelectorAttributes", "Lease", "LeaseSpec", "Lifecycle", "LifecycleHandler", "LinuxContainerUser",
    "LoadBalancerIngress", "LoadBalancerStatus", "LocalObjectReference", "LocalSubjectAccessReview", "LocalVolumeSource",
    "MatchCondition", "ModifyVolumeStatus", "MutatingWebhook", "MutatingWebhookConfiguration", "NFSVolumeSource", "Namespace",
    "NamespaceCondition", "NamespaceSpec", "NamespaceStatus", "Node", "NodeAddress", "NodeAffinity",
    "NodeAllocatableMappedResources", "NodeAllocatableOverheadResources", "NodeAllocatableResourceClaimStatus", "NodeCondition",
    "NodeConfigSource", "NodeConfigStatus", "NodeDaemonEndpoints", "NodeFeatures", "NodePodPreemptionPolicy", "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures", "NodeSelector", "NodeSelectorRequirement", "NodeSelectorTerm", "NodeSpec", "NodeStatus",
    "NodeSwapStatus", "NodeSystemInfo", "NonResourceAttributes", "NonResourceRule", "ObjectFieldSelector", "ObjectReference",
    "PersistentVolume", "PersistentVolumeClaim", "PersistentVolumeClaimCondition", "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus", "PersistentVolumeClaimTemplate", "PersistentVolumeClaimVolumeSource", "PersistentVolumeSpec",
    "PersistentVolumeStatus", "PhotonPersistentDiskVolumeSource", "Pod", "PodAffinity", "PodAffinityTerm", "PodAntiAffinity",
    "PodCertificateProjection", "PodCondition", "PodDNSConfig", "PodDNSConfigOption", "PodDisruptionBudget",
    "PodDisruptionBudgetSpec", "PodDisruptionBudgetStatus", "PodExtendedResourceClaimStatus", "PodIP", "PodOS", "PodReadinessGate",
    "PodResourceClaim", "PodResourceClaimStatus", "PodSchedulingGate", "PodSchedulingGroup", "PodSecurityContext", "PodSpec",
    "PodStatus", "PodTemplateSpec", "PodVolumeHealth", "PolicyRule", "PortStatus", "PortworxVolumeSource",
    "PreferredSchedulingTerm", "Probe", "ProjectedVolumeSource", "QuobyteVolumeSource", "RBDPersistentVolumeSource",
    "RBDVolumeSource", "ReplicaSet", "ReplicaSetCondition", "ReplicaSetSpec", "ReplicaSetStatus", "ResourceAttributes",
    "ResourceClaim", "ResourceFieldSelector", "ResourceHealth", "ResourceRequirements", "ResourceRule", "ResourceStatus", "Role",
    "RoleBinding", "RoleRef", "RollingUpdateDaemonSet", "RollingUpdateDeployment", "RollingUpdateStatefulSetStrategy",
    "RuleWithOperations", "SELinuxOptions", "ScaleIOPersistentVolumeSource", "ScaleIOVolumeSource", "SeccompProfile", "Secret",
    "SecretEnvSource", "SecretKeySelector", "SecretProjection", "SecretReference", "SecretVolumeSource", "SecurityContext",
    "SelectableField", "SelfSubjectAccessReview", "SelfSubjectAccessReviewSpec", "SelfSubjectReview", "SelfSubjectReviewStatus",
    "SelfSubjectRulesReview", "SelfSubjectRulesReviewSpec", "Service", "ServiceAccount", "ServiceAccountTokenProjection",
    "ServicePort", "ServiceSpec", "ServiceStatus", "SessionAffinityConfig", "SleepAction", "StatefulSet", "StatefulSetCondition",
    "StatefulSetOrdinals", "StatefulSetPersistentVolumeClaimRetentionPolicy", "StatefulSetSpec", "StatefulSetStatus",
    "StatefulSetUpdateStrategy", "StorageClass", "StorageHealth", "StorageHealthCondition", "StorageOSPersistentVolumeSource",
    "StorageOSVolumeSource", "Subject", "SubjectAccessReview", "SubjectAccessReviewSpec", "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus", "Sysctl", "TCPSocketAction", "Taint", "TokenRequest", "TokenRequestSpec", "TokenRequestStatus",
    "TokenReview", "TokenReviewSpec", "TokenReviewStatus", "Toleration", "TopologySelectorLabelRequirement", "TopologySelectorTerm",
    "TopologySpreadConstraint", "TypedLocalObjectReference", "TypedObjectReference", "UserInfo", "ValidatingWebhook",
    "ValidatingWebhookConfiguration", "Volume", "VolumeAttachment", "VolumeAttachmentSource", "VolumeAttachmentSpec",
    "VolumeAttachmentStatus", "VolumeDevice", "VolumeError", "VolumeHealthCondition", "VolumeHealthStatus", "VolumeMount",
    "VolumeMountStatus", "VolumeNodeAffinity", "VolumeNodeResources", "VolumeProjection", "VolumeResourceRequirements",
    "VolumeStatus", "VsphereVirtualDiskVolumeSource", "WebhookClientConfig", "WebhookConversion", "WebhookServiceReference",
    "WeightedPodAffinityTerm", "WindowsSecurityContextOptions",
]
