"""The words of the control plane contract: annotations, labels, condition types, field managers, waits."""

from __future__ import annotations

from datetime import timedelta

from clusterwright.api import wellknown

FINALIZER = wellknown.KUBEADM_CONTROL_PLANE_FINALIZER
FIELD_MANAGER = "capi-kubeadmcontrolplane"
METADATA_MANAGER = "capi-kubeadmcontrolplane-metadata"

# labels
CLUSTER_NAME = wellknown.CLUSTER_NAME_LABEL
CONTROL_PLANE = wellknown.CONTROL_PLANE_LABEL
CONTROL_PLANE_NAME = wellknown.CONTROL_PLANE_NAME_LABEL
NODE_ROLE = wellknown.NODE_ROLE_CONTROL_PLANE_LABEL

# annotations
SKIP_COREDNS = wellknown.SKIP_COREDNS_ANNOTATION
SKIP_KUBE_PROXY = wellknown.SKIP_KUBE_PROXY_ANNOTATION
REMEDIATION_IN_PROGRESS = wellknown.REMEDIATION_IN_PROGRESS_ANNOTATION
REMEDIATION_FOR = wellknown.REMEDIATION_FOR_ANNOTATION
LEGACY_CLUSTER_CONFIGURATION = wellknown.KUBEADM_CLUSTER_CONFIGURATION_ANNOTATION
PRE_TERMINATE_PREFIX = wellknown.PRE_TERMINATE_HOOK_PREFIX
PRE_TERMINATE_HOOK = wellknown.KCP_PRE_TERMINATE_HOOK
DELETE_MACHINE = wellknown.DELETE_MACHINE_ANNOTATION
REMEDIATE_MACHINE = wellknown.REMEDIATE_MACHINE_ANNOTATION
UPDATE_IN_PROGRESS = wellknown.UPDATE_IN_PROGRESS_ANNOTATION
PENDING_HOOKS = wellknown.PENDING_HOOKS_ANNOTATION
CERTIFICATES_EXPIRY = wellknown.CERTIFICATES_EXPIRY_ANNOTATION
CLONED_FROM_NAME = wellknown.CLONED_FROM_NAME_ANNOTATION
CLONED_FROM_GROUP_KIND = wellknown.CLONED_FROM_GROUP_KIND_ANNOTATION
UPGRADE_STEP = wellknown.UPGRADE_STEP_ANNOTATION
PAUSED = wellknown.PAUSED_ANNOTATION

# conditions of the control plane
AVAILABLE = "Available"
INITIALIZED = "Initialized"
CERTIFICATES_AVAILABLE = "CertificatesAvailable"
ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"
COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
MACHINES_READY = "MachinesReady"
MACHINES_UP_TO_DATE = "MachinesUpToDate"
ROLLING_OUT = "RollingOut"
SCALING_UP = "ScalingUp"
SCALING_DOWN = "ScalingDown"
REMEDIATING = "Remediating"
DELETING = "Deleting"
OWNED_CONDITIONS = (
    AVAILABLE, CERTIFICATES_AVAILABLE, INITIALIZED, ETCD_CLUSTER_HEALTHY, COMPONENTS_HEALTHY, ROLLING_OUT, REMEDIATING, SCALING_DOWN,
    SCALING_UP, MACHINES_READY, MACHINES_UP_TO_DATE, "Paused", DELETING,
)  # fmt: skip

# conditions of a Machine
UP_TO_DATE = "UpToDate"
NODE_LABELS_AND_TAINTS = "NodeKubeadmLabelsAndTaintsSet"
API_SERVER_POD = "APIServerPodHealthy"
CONTROLLER_MANAGER_POD = "ControllerManagerPodHealthy"
SCHEDULER_POD = "SchedulerPodHealthy"
ETCD_POD = "EtcdPodHealthy"
ETCD_MEMBER = "EtcdMemberHealthy"
OWNER_REMEDIATED = "OwnerRemediated"
HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
KUBERNETES_PODS = (API_SERVER_POD, CONTROLLER_MANAGER_POD, SCHEDULER_POD)
COMPONENTS = {
    API_SERVER_POD: "kube-apiserver",
    CONTROLLER_MANAGER_POD: "kube-controller-manager",
    SCHEDULER_POD: "kube-scheduler",
    ETCD_POD: "etcd",
}
MACHINE_HEALTH = (NODE_LABELS_AND_TAINTS, *COMPONENTS, ETCD_MEMBER)
MACHINE_OWNED_CONDITIONS = (UP_TO_DATE, *MACHINE_HEALTH)

CHECK_LOGS = "Please check controller logs for errors"
INTERNAL_ERROR = "InternalError"

# waits; each is only the net below a watch
POLL = timedelta(seconds=20)
PREFLIGHT_WAIT = timedelta(seconds=15)
DELETE_WAIT = timedelta(seconds=30)
DEPENDENT_CERTIFICATE_WAIT = timedelta(seconds=30)
SOON = timedelta(seconds=1)
AT_ONCE = timedelta(milliseconds=1)
SURFACE_AFTER = timedelta(seconds=10)
MEMBERS_SETTLE = timedelta(minutes=2)
REMOTE_CONDITIONS_GRACE = timedelta(minutes=5)


def pod_conditions(*, managed_etcd: bool) -> tuple[str, ...]:
    """The static-pod conditions that a Machine carries, in the order in which they are reported."""
    return (*KUBERNETES_PODS, ETCD_POD) if managed_etcd else KUBERNETES_PODS


def health_conditions(*, managed_etcd: bool) -> tuple[str, ...]:
    """The conditions that must all be True for a healthy control plane Machine."""
    return (*KUBERNETES_PODS, ETCD_MEMBER, ETCD_POD) if managed_etcd else KUBERNETES_PODS


def limited(names: list[str] | tuple[str, ...], limit: int = 3) -> str:
    """Sorted names joined by commas; beyond `limit` only how many more there are."""
    ordered = sorted(names)
    rest = len(ordered) - limit
    return ", ".join([*ordered[:limit], f"... ({rest} more)"] if rest > 0 else ordered)


def go_duration(seconds: int) -> str:
    """A duration as Go prints it: `10m0s`, `1h0m0s`, `30s`."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"
