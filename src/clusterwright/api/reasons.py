"""Condition types and reasons, one enumeration each per kind. Values are what stands on the wire.

Where the seeds and upstream differ both words are here: `DoesNotExist` and `AvailableInspectionFailed` are the seeds'.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reasons that mean the same on every kind."""

    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    AVAILABLE_UNKNOWN = "AvailableUnknown"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    ROLLING_OUT = "RollingOut"
    NOT_ROLLING_OUT = "NotRollingOut"
    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    NO_REPLICAS = "NoReplicas"
    WAITING_FOR_REPLICAS_SET = "WaitingForReplicasSet"
    INVALID_CONDITION_REPORTED = "InvalidConditionReported"
    INTERNAL_ERROR = "InternalError"
    OBJECT_DOES_NOT_EXIST = "ObjectDoesNotExist"
    OBJECT_DELETED = "ObjectDeleted"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"
    CONNECTION_DOWN = "ConnectionDown"
    NOT_DELETING = "NotDeleting"
    DELETING = "Deleting"
    DELETION_COMPLETED = "DeletionCompleted"
    INSPECTION_FAILED = "InspectionFailed"
    WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY = "WaitingForClusterInfrastructureReady"
    WAITING_FOR_CONTROL_PLANE_INITIALIZED = "WaitingForControlPlaneInitialized"
    WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData"
    PROVISIONED = "Provisioned"
    NOT_PROVISIONED = "NotProvisioned"


class ClusterCondition(StrEnum):
    """What is said of a Cluster."""

    AVAILABLE = "Available"
    TOPOLOGY_RECONCILED = "TopologyReconciled"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    CONTROL_PLANE_INITIALIZED = "ControlPlaneInitialized"
    CONTROL_PLANE_AVAILABLE = "ControlPlaneAvailable"
    WORKERS_AVAILABLE = "WorkersAvailable"
    CONTROL_PLANE_MACHINES_READY = "ControlPlaneMachinesReady"
    WORKER_MACHINES_READY = "WorkerMachinesReady"
    CONTROL_PLANE_MACHINES_UP_TO_DATE = "ControlPlaneMachinesUpToDate"
    WORKER_MACHINES_UP_TO_DATE = "WorkerMachinesUpToDate"
    REMOTE_CONNECTION_PROBE = "RemoteConnectionProbe"
    ROLLING_OUT = "RollingOut"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    REMEDIATING = "Remediating"
    DELETING = "Deleting"
    PAUSED = "Paused"


class ClusterReason(StrEnum):
    """Why a condition of a Cluster has its status."""

    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    AVAILABLE_UNKNOWN = "AvailableUnknown"
    INTERNAL_ERROR = "InternalError"
    RECONCILE_SUCCEEDED = "ReconcileSucceeded"
    RECONCILE_FAILED = "ReconcileFailed"
    CLUSTER_CREATING = "ClusterCreating"
    CLUSTER_UPGRADING = "ClusterUpgrading"
    MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED = "MachineDeploymentsUpgradeDeferred"
    MACHINE_POOLS_UPGRADE_DEFERRED = "MachinePoolsUpgradeDeferred"
    CLUSTER_CLASS_NOT_RECONCILED = "ClusterClassNotReconciled"
    DELETING = "Deleting"
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"
    CONTROL_PLANE_UPGRADE_PENDING = "ControlPlaneUpgradePending"
    MACHINE_DEPLOYMENTS_CREATE_PENDING = "MachineDeploymentsCreatePending"
    MACHINE_DEPLOYMENTS_UPGRADE_PENDING = "MachineDeploymentsUpgradePending"
    MACHINE_POOLS_CREATE_PENDING = "MachinePoolsCreatePending"
    MACHINE_POOLS_UPGRADE_PENDING = "MachinePoolsUpgradePending"
    LIFECYCLE_HOOK_BLOCKING = "LifecycleHookBlocking"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    INVALID_CONDITION_REPORTED = "InvalidConditionReported"
    DOES_NOT_EXIST = "DoesNotExist"
    OBJECT_DOES_NOT_EXIST = "ObjectDoesNotExist"
    OBJECT_DELETED = "ObjectDeleted"
    INITIALIZED = "Initialized"
    NOT_INITIALIZED = "NotInitialized"
    NO_WORKERS = "NoWorkers"
    NO_REPLICAS = "NoReplicas"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    PROBE_FAILED = "ProbeFailed"
    PROBE_SUCCEEDED = "ProbeSucceeded"
    ROLLING_OUT = "RollingOut"
    NOT_ROLLING_OUT = "NotRollingOut"
    ROLLING_OUT_UNKNOWN = "RollingOutUnknown"
    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_UP_UNKNOWN = "ScalingUpUnknown"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    SCALING_DOWN_UNKNOWN = "ScalingDownUnknown"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    NOT_DELETING = "NotDeleting"
    WAITING_FOR_BEFORE_DELETE_HOOK = "WaitingForBeforeDeleteHook"
    WAITING_FOR_WORKERS_DELETION = "WaitingForWorkersDeletion"
    WAITING_FOR_CONTROL_PLANE_DELETION = "WaitingForControlPlaneDeletion"
    WAITING_FOR_INFRASTRUCTURE_DELETION = "WaitingForInfrastructureDeletion"
    DELETION_COMPLETED = "DeletionCompleted"


class ClusterClassCondition(StrEnum):
    """What is said of a ClusterClass."""

    VARIABLES_READY = "VariablesReady"
    REF_VERSIONS_UP_TO_DATE = "RefVersionsUpToDate"
    PAUSED = "Paused"


class ClusterClassReason(StrEnum):
    """Why a condition of a ClusterClass has its status."""

    VARIABLES_READY = "VariablesReady"
    VARIABLE_DISCOVERY_FAILED = "VariableDiscoveryFailed"
    REF_VERSIONS_UP_TO_DATE = "RefVersionsUpToDate"
    REF_VERSIONS_NOT_UP_TO_DATE = "RefVersionsNotUpToDate"
    INTERNAL_ERROR = "InternalError"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class MachineCondition(StrEnum):
    """What is said of a Machine, by its controller, its owner and health checks."""

    AVAILABLE = "Available"
    READY = "Ready"
    UP_TO_DATE = "UpToDate"
    UPDATING = "Updating"
    BOOTSTRAP_CONFIG_READY = "BootstrapConfigReady"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    NODE_READY = "NodeReady"
    NODE_HEALTHY = "NodeHealthy"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    OWNER_REMEDIATED = "OwnerRemediated"
    EXTERNALLY_REMEDIATED = "ExternallyRemediated"
    DELETING = "Deleting"
    PAUSED = "Paused"
    API_SERVER_POD_HEALTHY = "APIServerPodHealthy"
    CONTROLLER_MANAGER_POD_HEALTHY = "ControllerManagerPodHealthy"
    SCHEDULER_POD_HEALTHY = "SchedulerPodHealthy"
    ETCD_POD_HEALTHY = "EtcdPodHealthy"
    ETCD_MEMBER_HEALTHY = "EtcdMemberHealthy"
    NODE_KUBEADM_LABELS_AND_TAINTS_SET = "NodeKubeadmLabelsAndTaintsSet"


class MachineReason(StrEnum):
    """Why a condition of a Machine has its status."""

    WAITING_FOR_MIN_READY_SECONDS = "WaitingForMinReadySeconds"
    AVAILABLE = "Available"
    NOT_READY = "NotReady"
    INTERNAL_ERROR = "InternalError"
    READY = "Ready"
    READY_UNKNOWN = "ReadyUnknown"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UPDATING = "Updating"
    NOT_UPDATING = "NotUpdating"
    IN_PLACE_UPDATING = "InPlaceUpdating"
    IN_PLACE_UPDATE_FAILED = "InPlaceUpdateFailed"
    DATA_SECRET_PROVIDED = "DataSecretProvided"  # noqa: S105
    INVALID_CONDITION_REPORTED = "InvalidConditionReported"
    OBJECT_DOES_NOT_EXIST = "ObjectDoesNotExist"
    OBJECT_DELETED = "ObjectDeleted"
    NODE_READY = "NodeReady"
    NODE_NOT_READY = "NodeNotReady"
    NODE_READY_UNKNOWN = "NodeReadyUnknown"
    NODE_HEALTHY = "NodeHealthy"
    NODE_NOT_HEALTHY = "NodeNotHealthy"
    NODE_HEALTHY_UNKNOWN = "NodeHealthyUnknown"
    NODE_DOES_NOT_EXIST = "NodeDoesNotExist"
    NODE_DELETED = "NodeDeleted"
    INSPECTION_FAILED = "InspectionFailed"
    CONNECTION_DOWN = "ConnectionDown"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    UNHEALTHY_NODE = "UnhealthyNode"
    UNHEALTHY_MACHINE = "UnhealthyMachine"
    NODE_STARTUP_TIMEOUT = "NodeStartupTimeout"
    HAS_REMEDIATE_ANNOTATION = "HasRemediateAnnotation"
    WAITING_FOR_REMEDIATION = "WaitingForRemediation"
    CANNOT_BE_REMEDIATED = "CannotBeRemediated"
    REMEDIATION_DEFERRED = "RemediationDeferred"
    MACHINE_DELETING = "MachineDeleting"
    REMEDIATION_TEMPLATE_NOT_FOUND = "RemediationTemplateNotFound"
    REMEDIATION_REQUEST_CREATION_FAILED = "RemediationRequestCreationFailed"
    NOT_DELETING = "NotDeleting"
    DELETING = "Deleting"
    WAITING_FOR_PRE_DRAIN_HOOK = "WaitingForPreDrainHook"
    DRAINING_NODE = "DrainingNode"
    WAITING_FOR_VOLUME_DETACH = "WaitingForVolumeDetach"
    WAITING_FOR_PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook"
    WAITING_FOR_INFRASTRUCTURE_DELETION = "WaitingForInfrastructureDeletion"
    WAITING_FOR_BOOTSTRAP_DELETION = "WaitingForBootstrapDeletion"
    DELETING_NODE = "DeletingNode"
    DELETION_COMPLETED = "DeletionCompleted"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"
    RUNNING = "Running"
    PROVISIONING = "Provisioning"
    DOES_NOT_EXIST = "DoesNotExist"
    FAILED = "Failed"
    HEALTHY = "Healthy"
    NOT_HEALTHY = "NotHealthy"
    SET = "Set"
    NOT_SET = "NotSet"


class MachineSetCondition(StrEnum):
    """What is said of a MachineSet."""

    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    MACHINES_READY = "MachinesReady"
    MACHINES_UP_TO_DATE = "MachinesUpToDate"
    REMEDIATING = "Remediating"
    DELETING = "Deleting"
    PAUSED = "Paused"


class MachineSetReason(StrEnum):
    """Why a condition of a MachineSet has its status."""

    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    INTERNAL_ERROR = "InternalError"
    WAITING_FOR_REPLICAS_SET = "WaitingForReplicasSet"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    NO_REPLICAS = "NoReplicas"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    NOT_DELETING = "NotDeleting"
    DELETING = "Deleting"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class MachineDeploymentCondition(StrEnum):
    """What is said of a MachineDeployment."""

    AVAILABLE = "Available"
    MACHINES_READY = "MachinesReady"
    MACHINES_UP_TO_DATE = "MachinesUpToDate"
    ROLLING_OUT = "RollingOut"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    REMEDIATING = "Remediating"
    DELETING = "Deleting"
    PAUSED = "Paused"


class MachineDeploymentReason(StrEnum):
    """Why a condition of a MachineDeployment has its status."""

    WAITING_FOR_REPLICAS_SET = "WaitingForReplicasSet"
    WAITING_FOR_AVAILABLE_REPLICAS_SET = "WaitingForAvailableReplicasSet"
    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    INTERNAL_ERROR = "InternalError"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    NO_REPLICAS = "NoReplicas"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    ROLLING_OUT = "RollingOut"
    NOT_ROLLING_OUT = "NotRollingOut"
    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    NOT_DELETING = "NotDeleting"
    DELETING = "Deleting"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class MachinePoolCondition(StrEnum):
    """What is said of a MachinePool."""

    PAUSED = "Paused"


class MachinePoolReason(StrEnum):
    """Why a condition of a MachinePool has its status."""

    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class MachineHealthCheckCondition(StrEnum):
    """What is said of a MachineHealthCheck."""

    REMEDIATION_ALLOWED = "RemediationAllowed"
    PAUSED = "Paused"


class MachineHealthCheckReason(StrEnum):
    """Why a condition of a MachineHealthCheck has its status."""

    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class ClusterResourceSetCondition(StrEnum):
    """What is said of a ClusterResourceSet."""

    RESOURCES_APPLIED = "ResourcesApplied"
    PAUSED = "Paused"


class ClusterResourceSetReason(StrEnum):
    """Why a condition of a ClusterResourceSet has its status."""

    APPLIED = "Applied"
    NOT_APPLIED = "NotApplied"
    WRONG_SECRET_TYPE = "WrongSecretType"  # noqa: S105
    INTERNAL_ERROR = "InternalError"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class ExtensionConfigCondition(StrEnum):
    """What is said of an ExtensionConfig."""

    DISCOVERED = "Discovered"
    PAUSED = "Paused"


class ExtensionConfigReason(StrEnum):
    """Why a condition of an ExtensionConfig has its status."""

    DISCOVERED = "Discovered"
    NOT_DISCOVERED = "NotDiscovered"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class IPAddressClaimCondition(StrEnum):
    """What is said of an IPAddressClaim."""

    READY = "Ready"


class IPAddressClaimReason(StrEnum):
    """Why a condition of an IPAddressClaim has its status."""

    ALLOCATION_FAILED = "AllocationFailed"
    POOL_NOT_READY = "PoolNotReady"
    POOL_EXHAUSTED = "PoolExhausted"


class KubeadmConfigCondition(StrEnum):
    """What is said of a KubeadmConfig."""

    READY = "Ready"
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    DATA_SECRET_AVAILABLE = "DataSecretAvailable"  # noqa: S105
    PAUSED = "Paused"


class KubeadmConfigReason(StrEnum):
    """Why a condition of a KubeadmConfig has its status."""

    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    INTERNAL_ERROR = "InternalError"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class KubeadmControlPlaneCondition(StrEnum):
    """What is said of a KubeadmControlPlane."""

    AVAILABLE = "Available"
    INITIALIZED = "Initialized"
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"
    CONTROL_PLANE_COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
    MACHINES_READY = "MachinesReady"
    MACHINES_UP_TO_DATE = "MachinesUpToDate"
    ROLLING_OUT = "RollingOut"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    REMEDIATING = "Remediating"
    DELETING = "Deleting"
    PAUSED = "Paused"


class KubeadmControlPlaneReason(StrEnum):
    """Why a condition of a KubeadmControlPlane has its status."""

    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    AVAILABLE_INSPECTION_FAILED = "AvailableInspectionFailed"
    INSPECTION_FAILED = "InspectionFailed"
    INITIALIZED = "Initialized"
    NOT_INITIALIZED = "NotInitialized"
    INTERNAL_ERROR = "InternalError"
    HEALTHY = "Healthy"
    NOT_HEALTHY = "NotHealthy"
    HEALTH_UNKNOWN = "HealthUnknown"
    CONNECTION_DOWN = "ConnectionDown"
    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    NO_REPLICAS = "NoReplicas"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UP_TO_DATE_UNKNOWN = "UpToDateUnknown"
    ROLLING_OUT = "RollingOut"
    NOT_ROLLING_OUT = "NotRollingOut"
    SCALING_UP = "ScalingUp"
    NOT_SCALING_UP = "NotScalingUp"
    SCALING_DOWN = "ScalingDown"
    NOT_SCALING_DOWN = "NotScalingDown"
    WAITING_FOR_REPLICAS_SET = "WaitingForReplicasSet"
    REMEDIATING = "Remediating"
    NOT_REMEDIATING = "NotRemediating"
    NOT_DELETING = "NotDeleting"
    WAITING_FOR_WORKERS_DELETION = "WaitingForWorkersDeletion"
    WAITING_FOR_MACHINE_DELETION = "WaitingForMachineDeletion"
    DELETION_COMPLETED = "DeletionCompleted"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class DevMachineCondition(StrEnum):
    """What is said of a DevMachine."""

    READY = "Ready"
    VM_PROVISIONED = "VMProvisioned"
    NODE_PROVISIONED = "NodeProvisioned"
    ETCD_PROVISIONED = "EtcdProvisioned"
    API_SERVER_PROVISIONED = "APIServerProvisioned"
    PAUSED = "Paused"


class DevMachineReason(StrEnum):
    """Why a condition of a DevMachine has its status."""

    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY = "WaitingForClusterInfrastructureReady"
    WAITING_FOR_CONTROL_PLANE_INITIALIZED = "WaitingForControlPlaneInitialized"
    WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData"
    WAITING_FOR_VM_PROVISIONED = "WaitingForVMProvisioned"
    WAITING_FOR_NODE_PROVISIONED = "WaitingForNodeProvisioned"
    WAITING_FOR_STARTUP_TIMEOUT = "WaitingForStartupTimeout"
    PROVISIONED = "Provisioned"
    INTERNAL_ERROR = "InternalError"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class DevClusterCondition(StrEnum):
    """What is said of a DevCluster."""

    READY = "Ready"
    PAUSED = "Paused"


class DevClusterReason(StrEnum):
    """Why a condition of a DevCluster has its status."""

    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    NOT_PAUSED = "NotPaused"
    PAUSED = "Paused"


class V1Beta1ConditionType(StrEnum):
    """Condition types of the deprecated form, under `status.deprecated.v1beta1.conditions`."""

    READY = "Ready"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    CONTROL_PLANE_INITIALIZED = "ControlPlaneInitialized"
    CONTROL_PLANE_READY = "ControlPlaneReady"
    BOOTSTRAP_READY = "BootstrapReady"
    DRAINING_SUCCEEDED = "DrainingSucceeded"
    PRE_DRAIN_DELETE_HOOK_SUCCEEDED = "PreDrainDeleteHookSucceeded"
    PRE_TERMINATE_DELETE_HOOK_SUCCEEDED = "PreTerminateDeleteHookSucceeded"
    VOLUME_DETACH_SUCCEEDED = "VolumeDetachSucceeded"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    OWNER_REMEDIATED = "OwnerRemediated"
    EXTERNAL_REMEDIATION_TEMPLATE_AVAILABLE = "ExternalRemediationTemplateAvailable"
    EXTERNAL_REMEDIATION_REQUEST_AVAILABLE = "ExternalRemediationRequestAvailable"
    NODE_HEALTHY = "NodeHealthy"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    AVAILABLE = "Available"
    MACHINE_SET_READY = "MachineSetReady"
    MACHINES_CREATED = "MachinesCreated"
    MACHINES_READY = "MachinesReady"
    RESIZED = "Resized"
    TOPOLOGY_RECONCILED = "TopologyReconciled"
    VARIABLES_RECONCILED = "VariablesReconciled"
    REF_VERSIONS_UP_TO_DATE = "RefVersionsUpToDate"
    REPLICAS_READY = "ReplicasReady"
    RESOURCES_APPLIED = "ResourcesApplied"
    DISCOVERED = "Discovered"
    DATA_SECRET_AVAILABLE = "DataSecretAvailable"  # noqa: S105
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    MACHINES_SPEC_UP_TO_DATE = "MachinesSpecUpToDate"
    CONTROL_PLANE_COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
    ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"
    API_SERVER_POD_HEALTHY = "APIServerPodHealthy"
    CONTROLLER_MANAGER_POD_HEALTHY = "ControllerManagerPodHealthy"
    SCHEDULER_POD_HEALTHY = "SchedulerPodHealthy"
    ETCD_POD_HEALTHY = "EtcdPodHealthy"
    ETCD_MEMBER_HEALTHY = "EtcdMemberHealthy"


class Severity(StrEnum):
    """How bad a False condition of the deprecated form is."""

    ERROR = "Error"
    WARNING = "Warning"
    INFO = "Info"
