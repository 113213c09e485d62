"""Counters, versions and the last remediation of a control plane. Pure."""

from __future__ import annotations

from typing import Any

from clusterwright.api.controlplane import KubeadmControlPlane, LastRemediationStatus
from clusterwright.api.copying import replace
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.controllers.kit.conditions import with_v1beta1_status
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.health import node_ready_status
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import RemediationData
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone
from clusterwright.controllers.version_counts import of_machines


def counted(c: ControlPlaneDone, last: RemediationData | None) -> KubeadmControlPlane:
    """Return the control plane with its counters in both forms, selector and version, including zeros. `last`: the previous status."""
    versions = of_machines(c.machines)
    changes: dict[str, Any] = {
        "selector": f"{CLUSTER_NAME_LABEL}={c.cluster.key.name},{CONTROL_PLANE_LABEL}",
        "replicas": len(c.owned),
        "ready_replicas": sum(m.is_true("Ready") for m in c.owned),
        "available_replicas": sum(m.is_true("Available") for m in c.owned),
        "up_to_date_replicas": sum(m.is_true(names.UP_TO_DATE) for m in c.owned),
        "versions": versions,
    }
    if versions:
        changes["version"] = versions[0].version
    if last is not None:
        changes["last_remediation"] = LastRemediationStatus(machine=last.machine, time=last.time, retry_count=last.retry_count)
    ready = ready_nodes(c)
    return with_v1beta1_status(
        replace(c.object, status=replace(c.object.status, **changes)),
        updated_replicas=c.up_to_date,
        ready_replicas=ready,
        unavailable_replicas=len(c.owned) - ready,
    )


def ready_nodes(c: ControlPlaneDone) -> int:
    """Return how many Nodes this pass saw Ready; none while deleting."""
    nodes = c.inspection.nodes
    return 0 if c.deleting else sum(node_ready_status(nodes.get(m.node)) == "True" for m in c.owned if m.has_node)
