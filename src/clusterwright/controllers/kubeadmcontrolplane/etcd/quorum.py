"""Quorum arithmetic: which members count, and the state after a change of membership. Pure.

Two counts are in use. The Available condition judges the present: members without a name are starting and count as healthy learners. A
projection judges the state after a change of ours: there, doubt counts against the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.workload.access import EtcdMember


def quorum(voting: int) -> int:
    """Return how many of the voting members must be healthy for the cluster to serve writes."""
    return voting // 2 + 1


@dataclass(frozen=True, slots=True)
class Projection:
    """An etcd cluster as it would be: voting members, learners, and the voting members that would not be healthy."""

    voting: int
    learners: int
    unhealthy: int

    @property
    def safe(self) -> bool:
        """Whether the cluster would keep its quorum without a half-joined learner."""
        return self.learners == 0 and self.voting - self.unhealthy >= quorum(self.voting)


def project_etcd(
    members: Sequence[EtcdMember],
    machines: Sequence[ControlPlaneMachine],
    *,
    add: bool = False,
    remove: str | None = None,
) -> Projection:
    """Return the etcd cluster after one member joined (`add`) or the member called `remove` left.

    A member that joins is unhealthy until it has caught up, unless it is the first. Members without a Machine are judged by their alarms,
    members without a name count as unhealthy learners.
    """
    sick = {m.node for m in machines if m.has_node and not m.is_true(names.ETCD_MEMBER)}
    known = {m.node for m in machines if m.has_node}
    voting = learners = unhealthy = 0
    if add:
        voting = 1
        unhealthy = 1 if len(members) > 1 else 0
    for member in members:
        if not member.name:
            learners += 1
            unhealthy += 1
            continue
        if member.name == remove:
            continue
        if member.is_learner:
            learners += 1
        else:
            voting += 1
        doubtful = member.name in sick if member.name in known else any(a != "NONE" for a in member.alarms)
        unhealthy += 1 if doubtful else 0
    return Projection(voting, learners, unhealthy)


def control_plane_survives(
    machines: Sequence[ControlPlaneMachine],
    *,
    managed_etcd: bool,
    add: bool = False,
    remove: str | None = None,
) -> bool:
    """Return whether at least one Machine would have healthy control plane components after the change."""
    types = names.pod_conditions(managed_etcd=managed_etcd)
    healthy = sum(1 for m in machines if m.name != remove and not m.lacks_any(types))
    if add and not machines:
        healthy += 1
    return healthy >= 1
