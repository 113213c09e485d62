"""Condition types, field managers and intervals of a control plane."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

FIELD_MANAGER: Final = "capi-kubeadmcontrolplane"
METADATA_MANAGER: Final = "capi-kubeadmcontrolplane-metadata"
KUBE_SYSTEM: Final = "kube-system"

# conditions of the control plane
AVAILABLE: Final = "Available"
INITIALIZED: Final = "Initialized"
CERTIFICATES_AVAILABLE: Final = "CertificatesAvailable"
ETCD_CLUSTER_HEALTHY: Final = "EtcdClusterHealthy"
COMPONENTS_HEALTHY: Final = "ControlPlaneComponentsHealthy"

# conditions of a Machine
UP_TO_DATE: Final = "UpToDate"
NODE_LABELS_AND_TAINTS: Final = "NodeKubeadmLabelsAndTaintsSet"
API_SERVER_POD: Final = "APIServerPodHealthy"
CONTROLLER_MANAGER_POD: Final = "ControllerManagerPodHealthy"
SCHEDULER_POD: Final = "SchedulerPodHealthy"
ETCD_POD: Final = "EtcdPodHealthy"
ETCD_MEMBER: Final = "EtcdMemberHealthy"
OWNER_REMEDIATED: Final = "OwnerRemediated"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
KUBERNETES_PODS: Final = (API_SERVER_POD, CONTROLLER_MANAGER_POD, SCHEDULER_POD)
COMPONENTS: Final = {
    API_SERVER_POD: "kube-apiserver",
    CONTROLLER_MANAGER_POD: "kube-controller-manager",
    SCHEDULER_POD: "kube-scheduler",
    ETCD_POD: "etcd",
}
"""The static Pod of each condition."""
MACHINE_HEALTH: Final = (NODE_LABELS_AND_TAINTS, *COMPONENTS, ETCD_MEMBER)
LEADER_UNKNOWN: Final = "unable to move etcd leadership, failed to detect etcd leader"
NO_CANDIDATE: Final = "unable to move etcd leadership, no candidate machines for etcd leadership found"

MACHINE_OWNED_CONDITIONS: Final = (UP_TO_DATE, *MACHINE_HEALTH)

# waits; each is only the net below a watch
POLL: Final = timedelta(seconds=20)
PREFLIGHT_WAIT: Final = timedelta(seconds=15)
DELETE_WAIT: Final = timedelta(seconds=30)
DEPENDENT_CERTIFICATE_WAIT: Final = timedelta(seconds=30)
SOON: Final = timedelta(seconds=1)
AT_ONCE: Final = timedelta(milliseconds=1)
SURFACE_AFTER: Final = timedelta(seconds=10)
MEMBERS_SETTLE: Final = timedelta(minutes=2)
REMOTE_CONDITIONS_GRACE: Final = timedelta(minutes=5)


def pod_conditions(*, managed_etcd: bool) -> tuple[str, ...]:
    """Return the static-pod conditions of a Machine, in reporting order."""
    return (*KUBERNETES_PODS, ETCD_POD) if managed_etcd else KUBERNETES_PODS


def health_conditions(*, managed_etcd: bool) -> tuple[str, ...]:
    """Return the conditions that must all be True on a healthy control plane Machine."""
    return (*KUBERNETES_PODS, ETCD_MEMBER, ETCD_POD) if managed_etcd else KUBERNETES_PODS
