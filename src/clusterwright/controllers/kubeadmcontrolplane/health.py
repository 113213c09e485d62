# ruff: noqa: D103 - a guard's text and a message's form say what they are
# ruff: noqa: E501 - tables are laid out to be read as such
"""What a look at a Machine's Node, static Pods and etcd member means for the Machine's conditions. Pure.

Each table answers the v1beta2 condition; `legacy_*` says the same in the deprecated form, which sometimes differs in status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.meta import Unstructured
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.tables.guard import OTHERWISE, guard, message
from clusterwright.tables.table import KEEP, Row, Table, false, true, unknown
from clusterwright.workload.access import EtcdMember

UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"


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
    node: Unstructured | None = None
    pod: Unstructured | Unreadable | None = None
    pod_name: str = ""


# ---------------------------------------------------------------------------------------------- Node


def _node_conditions(node: Unstructured | None) -> Mapping[str, str]:
    found = (node.at("status", "conditions") if node is not None else None) or ()
    return {c.get("type", ""): c.get("status", "") for c in found}


def node_ready_status(node: Unstructured | None) -> str:
    """The status of the Node's Ready condition; empty if it has none."""
    return _node_conditions(node).get("Ready", "")


def is_unreachable(node: Unstructured) -> bool:
    """Whether Kubernetes has lost the Node's kubelet for long."""
    taints = node.at("spec", "taints") or ()
    return any(t.get("key") == UNREACHABLE_TAINT and t.get("effect") == "NoExecute" for t in taints)


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


def _pod(f: PodFacts) -> Unstructured | None:
    return f.pod if isinstance(f.pod, Unstructured) else None


def _phase(f: PodFacts) -> str:
    pod = _pod(f)
    return str(pod.at("status", "phase") or "") if pod is not None else ""


def _pod_condition(f: PodFacts, type: str) -> bool:
    pod = _pod(f)
    found = (pod.at("status", "conditions") if pod is not None else None) or ()
    return any(c.get("type") == type and c.get("status") == "True" for c in found)


def _containers(f: PodFacts) -> Sequence[Mapping[str, Any]]:
    pod = _pod(f)
    return (pod.at("status", "containerStatuses") if pod is not None else None) or ()


def _reasons(f: PodFacts, state: str) -> list[str]:
    found = ((c.get("state") or {}).get(state) for c in _containers(f))
    return [str(s.get("reason", "")) for s in found if s]


@guard("Pod NotFound")
def pod_missing(f: PodFacts) -> bool:
    return f.pod is None


@guard("Pod read error")
def pod_unreadable(f: PodFacts) -> bool:
    return isinstance(f.pod, Unreadable)


@guard("phase Pending")
def pending(f: PodFacts) -> bool:
    return _phase(f) == "Pending"


@guard("phase Running")
def running(f: PodFacts) -> bool:
    return _phase(f) == "Running"


@guard("phase Succeeded or Failed")
def ended(f: PodFacts) -> bool:
    return _phase(f) in {"Succeeded", "Failed"}


@guard("phase Unknown")
def phase_unknown(f: PodFacts) -> bool:
    return _phase(f) == "Unknown"


@guard("PodScheduled=True")
def scheduled(f: PodFacts) -> bool:
    return _pod_condition(f, "PodScheduled")


@guard("Initialized=True")
def pod_initialized(f: PodFacts) -> bool:
    return _pod_condition(f, "Initialized")


@guard("Ready=True")
def pod_ready(f: PodFacts) -> bool:
    return _pod_condition(f, "Ready")


@guard("a container is waiting")
def container_waiting(f: PodFacts) -> bool:
    return bool(_reasons(f, "waiting"))


@guard("a container last ended with an exit code")
def container_crashed(f: PodFacts) -> bool:
    return any(((c.get("lastState") or {}).get("terminated") or {}).get("exitCode", 0) != 0 for c in _containers(f))


@guard("a container is terminated")
def container_terminated(f: PodFacts) -> bool:
    return bool(_reasons(f, "terminated"))


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
    return ", ".join(_reasons(f, "waiting"))


@message("<reasons of the terminated containers>")
def terminated_reasons(f: PodFacts) -> str:
    return ", ".join(_reasons(f, "terminated"))


# fmt: off
POD_HEALTHY: Table[PodFacts] = Table(
    "PodHealthy",
    Row("nodes-unlisted",        nodes_unlisted,                                    unknown("InspectionFailed", nodes_error_text)),
    Row("deleting",              machine_deleting,                                  false("Deleting", "Machine is deleting")),
    Row("waiting-for-node",      no_node_ref & provider_id_set,                     unknown("InspectionFailed", waiting_for_node)),
    Row("waiting-for-infra",     no_node_ref,                                       unknown("InspectionFailed", waiting_for_provider_id)),
    Row("node-missing",          node_missing,                                      unknown("InspectionFailed", node_does_not_exist)),
    Row("node-unreachable",      node_unreachable,                                  unknown("InspectionFailed", node_is_unreachable)),
    Row("node-stale",            node_ready_unknown,                                unknown("InspectionFailed", "Node Ready condition is Unknown, Pod data might be stale")),
    Row("pod-missing",           pod_missing,                                       false("DoesNotExist", "Pod does not exist")),
    Row("pod-unreadable",        pod_unreadable,                                    unknown("InspectionFailed", names.CHECK_LOGS)),
    Row("pod-unscheduled",       pending & ~scheduled,                              false("Provisioning", "Waiting to be scheduled")),
    Row("pod-initializing",      pending & ~pod_initialized,                        false("Provisioning", "Running init containers")),
    Row("pod-pending",           pending,                                           false("Provisioning")),
    Row("pod-running",           running & pod_ready,                               true("Running")),
    Row("containers-crashing",   running & container_waiting & container_crashed,   false("Failed", waiting_reasons)),
    Row("containers-waiting",    running & container_waiting,                       false("Provisioning", waiting_reasons)),
    Row("containers-terminated", running & container_terminated,                    false("Failed", terminated_reasons)),
    Row("pod-unready",           running,                                           false("Provisioning", "Waiting for startup or readiness probes")),
    Row("pod-ended",             ended,                                             false("Failed", "All the containers have been terminated")),
    Row("pod-unknown",           phase_unknown,                                     unknown("InspectionFailed", "Pod is reporting Unknown status")),
    Row("pod-phase-unset",       OTHERWISE,                                         KEEP),
    about="the health of one static Pod of a control plane Machine",
    at_most_one=[(pod_missing, pod_unreadable, pending, running, ended, phase_unknown)],
    assuming=[~(node_missing & (node_unreachable | node_ready_unknown)), node_missing | ~nodes_unlisted],
)
# fmt: on

Legacy = tuple[str, str, str, str]
"""A deprecated condition: status, severity, reason, message."""

_LEGACY_BY_ROW: Mapping[str, Legacy | None] = {
    "deleting": ("False", "Info", "Deleting", ""),
    "waiting-for-node": None,
    "waiting-for-infra": None,
    "node-missing": ("False", "Error", "PodFailed", "Missing Node"),
    "node-unreachable": ("Unknown", "", "PodInspectionFailed", "Node is unreachable"),
    "pod-unreadable": ("Unknown", "", "PodInspectionFailed", "Failed to get Pod status"),
    "pod-running": ("True", "", "", ""),
    "pod-phase-unset": None,
}
_LEGACY_BY_REASON = {
    "Provisioning": ("False", "Info", "PodProvisioning"),
    "Failed": ("False", "Error", "PodFailed"),
    "InspectionFailed": ("Unknown", "", "PodInspectionFailed"),
}


def legacy_pod_condition(row: str, reason: str, text: str, facts: PodFacts) -> Legacy | None:
    """The deprecated form of what POD_HEALTHY decided; None leaves the deprecated condition as it is."""
    if row == "nodes-unlisted":
        return ("Unknown", "", "PodInspectionFailed", f"Failed to get the Node which is hosting this component: {facts.nodes_error}")
    if row == "pod-missing":
        return ("False", "Error", "PodMissing", f"Pod {facts.pod_name} is missing")
    if row in _LEGACY_BY_ROW:
        return _LEGACY_BY_ROW[row]
    return (*_LEGACY_BY_REASON[reason], text)


# --------------------------------------------------------------------------------- labels and taints


def expects_control_plane_taint(machine: ControlPlaneMachine) -> bool:
    """Whether the Node should carry the control plane taint: the Machine asks for it, or kubeadm sets it."""
    if any(t.get("key") == names.NODE_ROLE and t.get("effect") == "NoSchedule" for t in machine.spec.get("taints") or ()):
        return True
    if machine.config is None:
        return False
    section = "joinConfiguration" if machine.config.at("spec", "joinConfiguration", "controlPlane") is not None else "initConfiguration"
    taints = machine.config.at("spec", section, "nodeRegistration", "taints")
    return taints is None or any(t.get("key") == names.NODE_ROLE and t.get("effect") == "NoSchedule" for t in taints)


def _lacks_label(f: PodFacts) -> bool:
    labels = (f.node.at("metadata", "labels") if f.node is not None else None) or {}
    return names.NODE_ROLE not in labels


def _lacks_taint(f: PodFacts) -> bool:
    taints = (f.node.at("spec", "taints") if f.node is not None else None) or ()
    has = any(t.get("key") == names.NODE_ROLE and t.get("effect") == "NoSchedule" for t in taints)
    return expects_control_plane_taint(f.machine) and not has


label_missing = guard(f"Node label {names.NODE_ROLE} missing")(_lacks_label)
taint_missing = guard(f"Node taint {names.NODE_ROLE}:NoSchedule expected and missing")(_lacks_taint)


@message("Node <node> does not have the control-plane label")
def no_label(f: PodFacts) -> str:
    return f"Node {f.machine.node} does not have the {names.NODE_ROLE} label"


@message("Node <node> does not have the control-plane:NoSchedule taint")
def no_taint(f: PodFacts) -> str:
    return f"Node {f.machine.node} does not have the {names.NODE_ROLE}:NoSchedule taint"


@message("Node <node> does not have the control-plane label and the control-plane:NoSchedule taint")
def no_label_and_taint(f: PodFacts) -> str:
    return f"{no_label(f)} and the {names.NODE_ROLE}:NoSchedule taint"


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


# ----------------------------------------------------------------------------------------- etcd member


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFacts:
    """What asking etcd found, in the order of asking; the first failure ends it.

    `members` is None if the list was not got; `endpoint` is who answered. `asked` is False where no Node could be asked.
    """

    asked: bool = False
    connect_error: str | None = None
    endpoint: str = ""
    status_errors: tuple[str, ...] = ()
    members_error: str | None = None
    alarms_error: str | None = None
    members: tuple[EtcdMember, ...] | None = None
    silent: Mapping[str, str] = field(default_factory=dict)
    """By Node: why its own member does not answer, though others list it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """A Machine beside what etcd said."""

    machine: ControlPlaneMachine
    nodes_listed: bool
    etcd: EtcdFacts

    @property
    def member(self) -> EtcdMember | None:
        """The member on the Machine's Node."""
        return next((m for m in self.etcd.members or () if m.name and m.name == self.machine.node), None)

    @property
    def alarms(self) -> tuple[str, ...]:
        """The member's alarms that say something, worst known order first."""
        found = self.member.alarms if self.member is not None else ()
        return tuple(a for a in ("NOSPACE", "CORRUPT") if a in found)


@guard("control plane Nodes could not be listed")
def member_nodes_unlisted(f: MemberFacts) -> bool:
    return not f.nodes_listed


@guard("Machine has nodeRef, member list known and no member for its Node")
def member_absent(f: MemberFacts) -> bool:
    return f.machine.has_node and f.etcd.members is not None and f.member is None


@guard("Machine deletionTimestamp set")
def member_deleting(f: MemberFacts) -> bool:
    return f.machine.deleting


@guard("Machine has no nodeRef")
def member_no_node(f: MemberFacts) -> bool:
    return not f.machine.has_node


@guard("Machine has providerID")
def member_provider_id(f: MemberFacts) -> bool:
    return bool(f.machine.provider_id)


@guard("no etcd client")
def etcd_unconnected(f: MemberFacts) -> bool:
    return f.etcd.connect_error is not None


@guard("endpoint status carries errors")
def etcd_status_errors(f: MemberFacts) -> bool:
    return bool(f.etcd.status_errors)


@guard("member list failed")
def etcd_members_failed(f: MemberFacts) -> bool:
    return f.etcd.members_error is not None


@guard("alarm list failed")
def etcd_alarms_failed(f: MemberFacts) -> bool:
    return f.etcd.alarms_error is not None


@guard("no Node could be asked")
def etcd_not_asked(f: MemberFacts) -> bool:
    return not f.etcd.asked


@guard("learner")
def member_learner(f: MemberFacts) -> bool:
    return f.member is not None and f.member.is_learner


@guard("alarms for the member")
def member_alarms(f: MemberFacts) -> bool:
    return bool(f.alarms)


@guard("the member does not answer itself")
def member_silent(f: MemberFacts) -> bool:
    return f.machine.node in f.etcd.silent


@message("Waiting for a Node with spec.providerID <id> to exist")
def member_waiting_for_node(f: MemberFacts) -> str:
    return f"Waiting for a Node with spec.providerID {f.machine.provider_id} to exist"


@message("Waiting for <Kind> to report spec.providerID")
def member_waiting_for_infra(f: MemberFacts) -> str:
    return f"Waiting for {f.machine.infrastructure_kind} to report spec.providerID"


@message("Etcd doesn't have an etcd member for Node <node>")
def no_member(f: MemberFacts) -> str:
    return f"Etcd doesn't have an etcd member for Node {f.machine.node}"


@message("Failed to connect to etcd: <error>")
def connect_error(f: MemberFacts) -> str:
    return f"Failed to connect to etcd: {f.etcd.connect_error}"


@message("Failed to connect to etcd: <error>")
def silence(f: MemberFacts) -> str:
    return f"Failed to connect to etcd: {f.etcd.silent[f.machine.node]}"


@message("Etcd endpoint <endpoint> reports errors: <errors>")
def status_errors(f: MemberFacts) -> str:
    return f"Etcd endpoint {f.etcd.endpoint} reports errors: {', '.join(f.etcd.status_errors)}"


@message("Failed to get etcd members: <error>")
def members_error(f: MemberFacts) -> str:
    return f"Failed to get etcd members: {f.etcd.members_error}"


@message("Failed to get etcd alarms: <error>")
def alarms_error(f: MemberFacts) -> str:
    return f"Failed to get etcd alarms: {f.etcd.alarms_error}"


@message("Etcd reports the cluster is composed by <members>, but the etcd member hosted on Machine <machine> (<node>) is not included")
def not_included(f: MemberFacts) -> str:
    return (
        f"Etcd reports the cluster is composed by {_go_list(f)}, but the etcd member hosted on Machine {f.machine.name} "
        f"({f.machine.node}) is not included"
    )


def _go_list(f: MemberFacts) -> str:
    shown = [m.name or f"name not set yet for member with id {m.id}" for m in f.etcd.members or ()]
    return f"[{' '.join(shown)}]"


@message("Etcd reports alarms: <alarms>")
def alarm_text(f: MemberFacts) -> str:
    return f"Etcd reports alarms: {', '.join(f.alarms)}"


# fmt: off
MEMBER_HEALTHY: Table[MemberFacts] = Table(
    names.ETCD_MEMBER,
    Row("nodes-unlisted",    member_nodes_unlisted,                  unknown("InspectionFailed", "Failed to get the Node hosting the etcd member")),
    Row("member-absent",     member_absent,                          false("NotHealthy", no_member)),
    Row("deleting",          member_deleting,                        false("Deleting", "Machine is deleting")),
    Row("waiting-for-node",  member_no_node & member_provider_id,    unknown("InspectionFailed", member_waiting_for_node)),
    Row("waiting-for-infra", member_no_node,                         unknown("InspectionFailed", member_waiting_for_infra)),
    Row("not-included",      etcd_not_asked,                         false("NotHealthy", not_included)),
    Row("unconnected",       etcd_unconnected,                       unknown("InspectionFailed", connect_error)),
    Row("endpoint-errors",   etcd_status_errors,                     false("NotHealthy", status_errors)),
    Row("members-unlisted",  etcd_members_failed,                    unknown("InspectionFailed", members_error)),
    Row("alarms-unlisted",   etcd_alarms_failed,                     unknown("InspectionFailed", alarms_error)),
    Row("learner",           member_learner,                         false("NotHealthy", "Waiting for learner etcd member to be promoted")),
    Row("alarms",            member_alarms,                          false("NotHealthy", alarm_text)),
    Row("silent",            member_silent,                          unknown("InspectionFailed", silence)),
    Row("healthy",           OTHERWISE,                              true("Healthy")),
    about="the health of the etcd member on a Machine, as etcd itself reports it",
    at_most_one=[(etcd_not_asked, etcd_unconnected, etcd_status_errors, etcd_members_failed, etcd_alarms_failed, member_absent),
                 (etcd_not_asked, etcd_unconnected, etcd_status_errors, etcd_members_failed, etcd_alarms_failed, member_learner),
                 (etcd_not_asked, etcd_unconnected, etcd_status_errors, etcd_members_failed, etcd_alarms_failed, member_alarms)],
    assuming=[~(member_no_node & (member_absent | member_learner | member_alarms | member_silent)), ~(member_absent & (member_learner | member_alarms))],
)
# fmt: on


def legacy_member_condition(row: str, text: str, facts: MemberFacts) -> Legacy | None:
    """The deprecated form of what MEMBER_HEALTHY decided."""
    unhealthy = ("False", "Error", "EtcdMemberUnhealthy")
    forms: Mapping[str, Legacy | None] = {
        "nodes-unlisted": ("Unknown", "", "MemberInspectionFailed", "Failed to get the Node which is hosting the etcd member"),
        "member-absent": (*unhealthy, "Missing etcd member"),
        "deleting": ("False", "Info", "Deleting", ""),
        "waiting-for-node": None,
        "waiting-for-infra": None,
        "unconnected": (
            "Unknown",
            "",
            "MemberInspectionFailed",
            f"Failed to connect to the etcd Pod on the {facts.machine.node} Node: {facts.etcd.connect_error}",
        ),
        "silent": ("Unknown", "", "MemberInspectionFailed", text),
        "members-unlisted": (*unhealthy, "Failed to get etcd members"),
        "alarms-unlisted": (*unhealthy, "Failed to get etcd alarms"),
        "not-included": (
            *unhealthy,
            f"Etcd member reports the cluster is composed by members {_go_list(facts)}, but the member hosted on this Machine is not included",
        ),
        "alarms": (*unhealthy, f"Etcd member reports alarms: {', '.join(facts.alarms)}"),
        "healthy": ("True", "", "", ""),
    }
    return forms.get(row, (*unhealthy, text))


# ------------------------------------------------------------------------------------------- matching

MEMBER_GRACE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Whether etcd members and Machines are the same set, and the members that belong to nobody."""

    holds: bool
    strays: tuple[EtcdMember, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """One line for each member of no Machine."""
        return tuple(
            f"Etcd member {m.name or f'{m.id} (Name not yet assigned)'} does not have a corresponding Machine" for m in self.strays
        )


def match_members(
    members: Sequence[EtcdMember] | None,
    machines: Sequence[ControlPlaneMachine],
    nodes: Mapping[str, Unstructured],
    now: datetime,
) -> Matching:
    """Compare members with Machines. `nodes` are those that were found; a Node gets two minutes for its member to appear."""
    if members is None:
        return Matching(holds=not any(m.has_node for m in machines))
    holds = True
    member_names = {m.name for m in members if m.name}
    for machine in machines:
        if not machine.has_node or machine.node in member_names or machine.deleting:
            continue
        node = nodes.get(machine.node)
        created = node.metadata.creation_timestamp if node is not None else None
        if node is not None and (created is None or now - created > MEMBER_GRACE):
            holds = False
    owned = {m.node for m in machines if m.has_node}
    strays = tuple(m for m in members if not m.name or m.name not in owned)
    if strays and all(m.has_node for m in machines):
        holds = False
    return Matching(holds=holds, strays=strays)
