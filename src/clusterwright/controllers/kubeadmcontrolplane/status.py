"""Counters, versions, last remediation and the deprecated conditions of a control plane. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterwright.api.meta import V1Beta1Condition
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.health import node_ready_status
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.snapshot import Inspection
from clusterwright.kubeadm.versions import Version, parse_version

Legacy = tuple[str, str, str, str]
READY_INPUTS = ("MachinesCreated", "MachinesSpecUpToDate", "Resized", "MachinesReady", "Available", "CertificatesAvailable")
V1BETA1_OWNED = (*READY_INPUTS, "Ready", names.COMPONENTS_HEALTHY, names.ETCD_CLUSTER_HEALTHY)


def selector(cluster: str) -> str:
    """The selector of the scale subresource."""
    return f"{names.CLUSTER_NAME}={cluster},{names.CONTROL_PLANE}"


def lowest_version(machines: Sequence[ControlPlaneMachine]) -> str:
    """The lowest version among Machines that have a readable one; empty if none has."""
    found: list[tuple[Version, str]] = []
    for machine in machines:
        try:
            found.append((parse_version(machine.version), machine.version))
        except ValueError:
            continue
    return min(found, key=lambda v: _precedence(v[0]))[1] if found else ""


def _precedence(version: Version) -> tuple[object, ...]:
    """Orders versions as SemVer does, and by build where that is equal."""
    pre = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in version.pre.split(".")) if version.pre else ((2, 0, ""),)
    build = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in version.build.split(".")) if version.build else ()
    return (*version.release, pre, build)


def counters(machines: Sequence[ControlPlaneMachine]) -> dict[str, int]:
    """The v1beta2 replica counters; zero is said."""
    return {
        "replicas": len(machines),
        "ready_replicas": sum(m.is_true("Ready") for m in machines),
        "available_replicas": sum(m.is_true("Available") for m in machines),
        "up_to_date_replicas": sum(m.is_true(names.UP_TO_DATE) for m in machines),
    }


def legacy_counters(machines: Sequence[ControlPlaneMachine], inspection: Inspection, *, deleting: bool) -> dict[str, int]:
    """The deprecated replica counters: `ready` counts Nodes that were seen Ready in this pass."""
    updated = sum(m.up_to_date.holds for m in machines)
    ready = 0 if deleting else sum(node_ready_status(inspection.nodes.get(m.node)) == "True" for m in machines if m.has_node)
    return {"updated_replicas": updated, "ready_replicas": ready, "unavailable_replicas": len(machines) - ready}


def legacy_aggregate(machines: Sequence[ControlPlaneMachine], inspection: Inspection, *, managed_etcd: bool) -> Mapping[str, Legacy]:
    """The deprecated health conditions of the control plane."""
    if inspection.nodes_error is not None:
        text = f"Failed to list Nodes which are hosting control plane components: {inspection.nodes_error}"
        out: dict[str, Legacy] = {names.COMPONENTS_HEALTHY: ("Unknown", "", "ControlPlaneComponentsInspectionFailed", text)}
        if managed_etcd:
            unlisted = "Failed to list Nodes which are hosting the etcd members"
            out[names.ETCD_CLUSTER_HEALTHY] = ("Unknown", "", "EtcdClusterInspectionFailed", unlisted)
        else:
            out[names.ETCD_CLUSTER_HEALTHY] = ("True", "", "", "")
        return out
    components = _worst(
        machines, names.pod_conditions(managed_etcd=managed_etcd), inspection.component_errors, "ControlPlaneComponents", "control plane"
    )
    etcd: Legacy = ("True", "", "", "")
    if managed_etcd:
        etcd = _worst(machines, (names.ETCD_MEMBER,), inspection.etcd_errors, "EtcdCluster", "etcd member")
    return {names.COMPONENTS_HEALTHY: components, names.ETCD_CLUSTER_HEALTHY: etcd}


def _worst(machines: Sequence[ControlPlaneMachine], types: Sequence[str], errors: Sequence[str], reason: str, note: str) -> Legacy:
    groups: dict[str, set[str]] = {}
    for machine in machines:
        for condition in machine.v1beta1_conditions:
            if condition.type in types:
                groups.setdefault(condition.severity if condition.status == "False" else condition.status, set()).add(machine.name)

    def text(severity: str, what: str) -> str:
        return f"Following Machines are reporting {note} {what}: {', '.join(sorted(groups[severity]))}"

    if errors or "Error" in groups:
        lines = [*errors, *([text("Error", "errors")] if "Error" in groups else [])]
        return ("False", "Error", f"{reason}Unhealthy", "; ".join(lines))
    if "Warning" in groups:
        return ("False", "Warning", f"{reason}Unhealthy", text("Warning", "warnings"))
    if "Info" in groups:
        return ("False", "Info", f"{reason}Unhealthy", text("Info", "info"))
    if "True" in groups or "Unknown" not in groups:
        return ("True", "", "", "")
    unknown = ", ".join(sorted(groups["Unknown"]))
    return ("Unknown", "", f"{reason}Unknown", f"Following Machines are reporting unknown {note} status: {unknown}")


def legacy_machines_ready(machines: Sequence[ControlPlaneMachine], *, deleting: bool) -> V1Beta1Condition | None:
    """The deprecated aggregate of Ready.

    Upstream's objects have lost their kind where they were patched and not applied, that is while they or the control plane
    are deleting; the reason, which quotes it, is kept as its users know it.
    """
    reporters = [
        ("" if deleting or m.deleting else "Machine", m.name, m.v1beta1_conditions) for m in sorted(machines, key=lambda m: m.name)
    ]
    return v1beta1.aggregate(reporters, "MachinesReady", source_ref=True)


def legacy_ready(name: str, conditions: Sequence[V1Beta1Condition]) -> V1Beta1Condition | None:
    """The deprecated summary."""
    return v1beta1.summary("KubeadmControlPlane", name, conditions, types=READY_INPUTS)
