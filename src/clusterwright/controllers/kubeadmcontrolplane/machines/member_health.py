# ruff: noqa: E501 - tables are laid out to be read as such
"""Derive a Machine's etcd condition from the state of its member. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.tables import KEEP, OTHERWISE, Message, Row, Table, Transition, false, guard, message, true, unknown
from clusterwright.workload.access import EtcdMember

_LEARNER = "Waiting for learner etcd member to be promoted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdFacts:
    """The answers of etcd, in the order of the requests; the first failure ends them.

    `members` is None if the list is unknown, or if none of its members leads: such a list is not trusted. `asked` is False if there was no
    Node to ask.
    """

    asked: bool = False
    connect_error: str | None = None
    members_error: str | None = None
    leaderless: bool = False
    alarms_error: str | None = None
    members: tuple[EtcdMember, ...] | None = None
    silent: Mapping[str, str] = field(default_factory=dict)
    """The reason why a listed member does not answer, by Node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """A Machine and the answers of etcd."""

    machine: ControlPlaneMachine
    nodes_listed: bool
    etcd: EtcdFacts

    @property
    def member(self) -> EtcdMember | None:
        """The member on the Machine's Node."""
        return next((m for m in self.etcd.members or () if m.name and m.name == self.machine.node), None)

    @property
    def alarms(self) -> tuple[str, ...]:
        """The member's alarms, in order of severity."""
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


@guard("member list failed")
def etcd_members_failed(f: MemberFacts) -> bool:
    return f.etcd.members_error is not None


@guard("no member of the list leads")
def etcd_leaderless(f: MemberFacts) -> bool:
    return f.etcd.leaderless


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


@message("Failed to connect to the etcd Pod on the <node> Node: <error>")
def pod_connect_error(f: MemberFacts) -> str:
    return f"Failed to connect to the etcd Pod on the {f.machine.node} Node: {f.etcd.connect_error}"


@message("Etcd member reports the cluster is composed by members <members>, but the member hosted on this Machine is not included")
def member_not_included(f: MemberFacts) -> str:
    return f"Etcd member reports the cluster is composed by members {_go_list(f)}, but the member hosted on this Machine is not included"


@message("Etcd member reports alarms: <alarms>")
def member_alarm_text(f: MemberFacts) -> str:
    return f"Etcd member reports alarms: {', '.join(f.alarms)}"


@message("Etcd reports alarms: <alarms>")
def alarm_text(f: MemberFacts) -> str:
    return f"Etcd reports alarms: {', '.join(f.alarms)}"


def _unhealthy(text: str | Message[MemberFacts]) -> Transition[MemberFacts]:
    """Return the deprecated condition of an unhealthy member."""
    return false("EtcdMemberUnhealthy", text, "Error")


# fmt: off
MEMBER_HEALTHY: Table[MemberFacts] = Table(
    names.ETCD_MEMBER,
    Row("nodes-unlisted",    member_nodes_unlisted,               unknown("InspectionFailed", "Failed to get the Node hosting the etcd member"),
        v1beta1=unknown("MemberInspectionFailed", "Failed to get the Node which is hosting the etcd member")),
    Row("member-absent",     member_absent,                       false("NotHealthy", no_member), v1beta1=_unhealthy("Missing etcd member")),
    Row("deleting",          member_deleting,                     false("Deleting", "Machine is deleting"), v1beta1=false("Deleting", "", "Info")),
    Row("waiting-for-node",  member_no_node & member_provider_id, unknown("InspectionFailed", member_waiting_for_node)),
    Row("waiting-for-infra", member_no_node,                      unknown("InspectionFailed", member_waiting_for_infra)),
    Row("not-included",      etcd_not_asked,                      false("NotHealthy", not_included), v1beta1=_unhealthy(member_not_included)),
    Row("unconnected",       etcd_unconnected,                    unknown("InspectionFailed", connect_error), v1beta1=unknown("MemberInspectionFailed", pod_connect_error)),
    Row("members-unlisted",  etcd_members_failed,                 unknown("InspectionFailed", members_error), v1beta1=_unhealthy("Failed to get etcd members")),
    Row("leaderless",        etcd_leaderless,                     KEEP),
    Row("alarms-unlisted",   etcd_alarms_failed,                  unknown("InspectionFailed", alarms_error), v1beta1=_unhealthy("Failed to get etcd alarms")),
    Row("learner",           member_learner,                      false("NotHealthy", _LEARNER), v1beta1=_unhealthy(_LEARNER)),
    Row("alarms",            member_alarms,                       false("NotHealthy", alarm_text), v1beta1=_unhealthy(member_alarm_text)),
    Row("silent",            member_silent,                       unknown("InspectionFailed", silence), v1beta1=unknown("MemberInspectionFailed", silence)),
    Row("healthy",           OTHERWISE,                           true("Healthy"), v1beta1=true("")),
    about="the health of the etcd member on a Machine, as etcd itself reports it",
    at_most_one=[(etcd_not_asked, etcd_unconnected, etcd_members_failed, etcd_leaderless, etcd_alarms_failed, member_absent),
                 (etcd_not_asked, etcd_unconnected, etcd_members_failed, etcd_leaderless, etcd_alarms_failed, member_learner),
                 (etcd_not_asked, etcd_unconnected, etcd_members_failed, etcd_leaderless, etcd_alarms_failed, member_alarms)],
    assuming=[~(member_no_node & (member_absent | member_learner | member_alarms | member_silent)), ~(member_absent & (member_learner | member_alarms))],
)
# fmt: on
