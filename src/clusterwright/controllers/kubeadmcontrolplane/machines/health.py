# ruff: noqa: E501 - tables are laid out to be read as such
"""Derive a Machine's health conditions from its Node and static Pods. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.kubernetes import Node, Pod, PodStatus
from clusterwright.api.wellknown import NODE_ROLE_CONTROL_PLANE_LABEL
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.tables import KEEP, OTHERWISE, Message, Row, Table, Transition, false, guard, message, true, unknown

UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
_STALE = "Node Ready condition is Unknown, Pod data might be stale"
_UNSCHEDULED = "Waiting to be scheduled"
_INITIALIZING = "Running init containers"
_UNREADY = "Waiting for startup or readiness probes"
_ENDED = "All the containers have been terminated"
_UNKNOWN = "Pod is reporting Unknown status"


class Unreadable:
    """A Pod that could not be read, for a reason other than its absence."""


UNREADABLE = Unreadable()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A Machine, its Node (None: does not exist) and one of its static Pods (None: does not exist).

    `nodes_error`: the Nodes could not be listed, and nothing else is known.
    """

    machine: ControlPlaneMachine
    nodes_error: str | None = None
    node: Node | None = None
    pod: Pod | Unreadable | None = None
    pod_name: str = ""


# ---------------------------------------------------------------------------------------------- Node


def node_ready_status(node: Node | None) -> str:
    """Return the status of the Node's Ready condition; empty if it has none."""
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "") if node is not None else ""


def is_unreachable(node: Node) -> bool:
    """Return whether Kubernetes has lost contact with the Node's kubelet for a long time."""
    return any(t.key == UNREACHABLE_TAINT and t.effect == "NoExecute" for t in node.spec.taints)


@guard("control plane Nodes could not be listed")
def nodes_unlisted(f: PodFacts) -> bool:
    return f.nodes_error is not None


@guard("Machine deletionTimestamp set")
def machine_deleting(f: PodFacts) -> bool:
    return f.machine.deleting


@guard("Machine has no nodeRef")
def no_node_ref(f: PodFacts) -> bool:
    return not f.machine.has_node


@guard("Machine has providerID")
def provider_id_set(f: PodFacts) -> bool:
    return bool(f.machine.provider_id)


@guard("Node does not exist")
def node_missing(f: PodFacts) -> bool:
    return f.node is None


@guard("Node is tainted unreachable:NoExecute")
def node_unreachable(f: PodFacts) -> bool:
    return f.node is not None and is_unreachable(f.node)


@guard("Node Ready condition is Unknown")
def node_ready_unknown(f: PodFacts) -> bool:
    return node_ready_status(f.node) == "Unknown"


# ----------------------------------------------------------------------------------------------- Pod


def _status(f: PodFacts) -> PodStatus:
    return f.pod.status if isinstance(f.pod, Pod) else PodStatus()


def _holds(f: PodFacts, type: str) -> bool:
    return any(c.type == type and c.status == "True" for c in _status(f).conditions)


def _waiting(f: PodFacts) -> list[str]:
    return [s.reason for c in _status(f).container_statuses if (s := c.state.waiting) is not None]


def _terminated(f: PodFacts) -> list[str]:
    return [s.reason for c in _status(f).container_statuses if (s := c.state.terminated) is not None]


@guard("Pod NotFound")
def pod_missing(f: PodFacts) -> bool:
    return f.pod is None


@guard("Pod read error")
def pod_unreadable(f: PodFacts) -> bool:
    return isinstance(f.pod, Unreadable)


@guard("phase Pending")
def pending(f: PodFacts) -> bool:
    return _status(f).phase == "Pending"


@guard("phase Running")
def running(f: PodFacts) -> bool:
    return _status(f).phase == "Running"


@guard("phase Succeeded or Failed")
def ended(f: PodFacts) -> bool:
    return _status(f).phase in {"Succeeded", "Failed"}


@guard("phase Unknown")
def phase_unknown(f: PodFacts) -> bool:
    return _status(f).phase == "Unknown"


@guard("PodScheduled=True")
def scheduled(f: PodFacts) -> bool:
    return _holds(f, "PodScheduled")


@guard("Initialized=True")
def pod_initialized(f: PodFacts) -> bool:
    return _holds(f, "Initialized")


@guard("Ready=True")
def pod_ready(f: PodFacts) -> bool:
    return _holds(f, "Ready")


@guard("a container is waiting")
def container_waiting(f: PodFacts) -> bool:
    return bool(_waiting(f))


@guard("a container last ended with an exit code")
def container_crashed(f: PodFacts) -> bool:
    return any(s.exit_code != 0 for c in _status(f).container_statuses if (s := c.last_state.terminated) is not None)


@guard("a container is terminated")
def container_terminated(f: PodFacts) -> bool:
    return bool(_terminated(f))


@message("Failed to get the Node hosting the Pod: <error>")
def nodes_error_text(f: PodFacts) -> str:
    return f"Failed to get the Node hosting the Pod: {f.nodes_error}"


@message("Waiting for a Node with spec.providerID <id> to exist")
def waiting_for_node(f: PodFacts) -> str:
    return f"Waiting for a Node with spec.providerID {f.machine.provider_id} to exist"


@message("Waiting for <Kind> to report spec.providerID")
def waiting_for_provider_id(f: PodFacts) -> str:
    return f"Waiting for {f.machine.infrastructure_kind} to report spec.providerID"


@message("Node <node> does not exist")
def node_does_not_exist(f: PodFacts) -> str:
    return f"Node {f.machine.node} does not exist"


@message("Node <node> is unreachable")
def node_is_unreachable(f: PodFacts) -> str:
    return f"Node {f.machine.node} is unreachable"


@message("<reasons of the waiting containers>")
def waiting_reasons(f: PodFacts) -> str:
    return ", ".join(_waiting(f))


@message("<reasons of the terminated containers>")
def terminated_reasons(f: PodFacts) -> str:
    return ", ".join(_terminated(f))


@message("Failed to get the Node which is hosting this component: <error>")
def hosting_error_text(f: PodFacts) -> str:
    return f"Failed to get the Node which is hosting this component: {f.nodes_error}"


@message("Pod <name> is missing")
def pod_missing_text(f: PodFacts) -> str:
    return f"Pod {f.pod_name} is missing"


def _provisioning(text: str | Message[PodFacts] = "") -> Transition[PodFacts]:
    return false("PodProvisioning", text, "Info")


def _failed(text: str | Message[PodFacts]) -> Transition[PodFacts]:
    return false("PodFailed", text, "Error")


def _uninspected(text: str | Message[PodFacts]) -> Transition[PodFacts]:
    return unknown("PodInspectionFailed", text)


# fmt: off
POD_HEALTHY: Table[PodFacts] = Table(
    "PodHealthy",
    Row("nodes-unlisted",        nodes_unlisted,                                  unknown("InspectionFailed", nodes_error_text), v1beta1=_uninspected(hosting_error_text)),
    Row("deleting",              machine_deleting,                                false("Deleting", "Machine is deleting"), v1beta1=false("Deleting", "", "Info")),
    Row("waiting-for-node",      no_node_ref & provider_id_set,                   unknown("InspectionFailed", waiting_for_node)),
    Row("waiting-for-infra",     no_node_ref,                                     unknown("InspectionFailed", waiting_for_provider_id)),
    Row("node-missing",          node_missing,                                    unknown("InspectionFailed", node_does_not_exist), v1beta1=_failed("Missing Node")),
    Row("node-unreachable",      node_unreachable,                                unknown("InspectionFailed", node_is_unreachable), v1beta1=_uninspected("Node is unreachable")),
    Row("node-stale",            node_ready_unknown,                              unknown("InspectionFailed", _STALE), v1beta1=_uninspected(_STALE)),
    Row("pod-missing",           pod_missing,                                     false("DoesNotExist", "Pod does not exist"), v1beta1=false("PodMissing", pod_missing_text, "Error")),
    Row("pod-unreadable",        pod_unreadable,                                  unknown("InspectionFailed", CHECK_LOGS), v1beta1=_uninspected("Failed to get Pod status")),
    Row("pod-unscheduled",       pending & ~scheduled,                            false("Provisioning", _UNSCHEDULED), v1beta1=_provisioning(_UNSCHEDULED)),
    Row("pod-initializing",      pending & ~pod_initialized,                      false("Provisioning", _INITIALIZING), v1beta1=_provisioning(_INITIALIZING)),
    Row("pod-pending",           pending,                                         false("Provisioning"), v1beta1=_provisioning()),
    Row("pod-running",           running & pod_ready,                             true("Running"), v1beta1=true("")),
    Row("containers-crashing",   running & container_waiting & container_crashed, false("Failed", waiting_reasons), v1beta1=_failed(waiting_reasons)),
    Row("containers-waiting",    running & container_waiting,                     false("Provisioning", waiting_reasons), v1beta1=_provisioning(waiting_reasons)),
    Row("containers-terminated", running & container_terminated,                  false("Failed", terminated_reasons), v1beta1=_failed(terminated_reasons)),
    Row("pod-unready",           running,                                         false("Provisioning", _UNREADY), v1beta1=_provisioning(_UNREADY)),
    Row("pod-ended",             ended,                                           false("Failed", _ENDED), v1beta1=_failed(_ENDED)),
    Row("pod-unknown",           phase_unknown,                                   unknown("InspectionFailed", _UNKNOWN), v1beta1=_uninspected(_UNKNOWN)),
    Row("pod-phase-unset",       OTHERWISE,                                       KEEP),
    about="the health of one static Pod of a control plane Machine",
    at_most_one=[(pod_missing, pod_unreadable, pending, running, ended, phase_unknown)],
    assuming=[~(node_missing & (node_unreachable | node_ready_unknown)), node_missing | ~nodes_unlisted],
)
# fmt: on


# --------------------------------------------------------------------------------- labels and taints


def expects_control_plane_taint(machine: ControlPlaneMachine) -> bool:
    """Return whether the Node should carry the control plane taint: the Machine asks for it, or kubeadm sets it."""
    if any(_is_control_plane_taint(t.key, t.effect) for t in machine.object.spec.taints):
        return True
    if machine.config is None:
        return False
    section = "joinConfiguration" if machine.config.at("spec", "joinConfiguration", "controlPlane") is not None else "initConfiguration"
    taints = machine.config.at("spec", section, "nodeRegistration", "taints")
    return taints is None or any(_is_control_plane_taint(t.get("key"), t.get("effect")) for t in taints)


def _is_control_plane_taint(key: str, effect: str) -> bool:
    return (key, effect) == (NODE_ROLE_CONTROL_PLANE_LABEL, "NoSchedule")


def _lacks_label(f: PodFacts) -> bool:
    return f.node is None or NODE_ROLE_CONTROL_PLANE_LABEL not in f.node.metadata.labels


def _lacks_taint(f: PodFacts) -> bool:
    has = f.node is not None and any(_is_control_plane_taint(t.key, t.effect) for t in f.node.spec.taints)
    return expects_control_plane_taint(f.machine) and not has


label_missing = guard(f"Node label {NODE_ROLE_CONTROL_PLANE_LABEL} missing")(_lacks_label)
taint_missing = guard(f"Node taint {NODE_ROLE_CONTROL_PLANE_LABEL}:NoSchedule expected and missing")(_lacks_taint)


@message("Node <node> does not have the control-plane label")
def no_label(f: PodFacts) -> str:
    return f"Node {f.machine.node} does not have the {NODE_ROLE_CONTROL_PLANE_LABEL} label"


@message("Node <node> does not have the control-plane:NoSchedule taint")
def no_taint(f: PodFacts) -> str:
    return f"Node {f.machine.node} does not have the {NODE_ROLE_CONTROL_PLANE_LABEL}:NoSchedule taint"


@message("Node <node> does not have the control-plane label and the control-plane:NoSchedule taint")
def no_label_and_taint(f: PodFacts) -> str:
    return f"{no_label(f)} and the {NODE_ROLE_CONTROL_PLANE_LABEL}:NoSchedule taint"


# fmt: off
LABELS_AND_TAINTS_SET: Table[PodFacts] = Table(
    names.NODE_LABELS_AND_TAINTS,
    Row("nodes-unlisted",    nodes_unlisted,                                     unknown("InspectionFailed", "Failed to get the Node")),
    Row("deleting",          machine_deleting & (no_node_ref | node_missing),    false("Deleting", "Machine is deleting")),
    Row("waiting-for-node",  no_node_ref & provider_id_set,                      unknown("InspectionFailed", waiting_for_node)),
    Row("waiting-for-infra", no_node_ref,                                        unknown("InspectionFailed", waiting_for_provider_id)),
    Row("node-missing",      node_missing,                                       unknown("InspectionFailed", node_does_not_exist)),
    Row("node-unreachable",  ~machine_deleting & node_unreachable,               unknown("InspectionFailed", node_is_unreachable)),
    Row("both-missing",      label_missing & taint_missing,                      false("NotSet", no_label_and_taint)),
    Row("label-missing",     label_missing,                                      false("NotSet", no_label)),
    Row("taint-missing",     taint_missing,                                      false("NotSet", no_taint)),
    Row("set",               OTHERWISE,                                          true("Set")),
    about="whether kubeadm's label and taint are on the Node",
    assuming=[~(node_missing & node_unreachable), node_missing | ~nodes_unlisted],
)
# fmt: on
