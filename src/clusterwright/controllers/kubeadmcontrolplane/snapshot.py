"""What a pass knows of a control plane when it concludes: one frozen value that every condition table reads. Pure.

Reading the world is `observe` and `inspection`; this module only counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from clusterwright.api.meta import Condition, Unstructured
from clusterwright.conditions import get
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, stale_text
from clusterwright.controllers.kubeadmcontrolplane.quorum import quorum
from clusterwright.controllers.kubeadmcontrolplane.scale import Blockers
from clusterwright.workload.access import EtcdMember


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a look into the workload cluster found. The default: nobody looked.

    `nodes` are those of owned Machines; `nodes_error` says why Nodes could not be listed. `members` is None where etcd did not
    tell them; `members_match` says whether members and Machines are the same set. The errors are about nobody's Machine.
    """

    done: bool = False
    nodes: Mapping[str, Unstructured] = field(default_factory=dict)
    all_nodes: tuple[Unstructured, ...] = ()
    nodes_error: str | None = None
    members: tuple[EtcdMember, ...] | None = None
    members_match: bool = False
    component_errors: tuple[str, ...] = ()
    etcd_errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """How many are healthy, unhealthy for long enough to be said, and unhealthy only just now (`pending`)."""

    healthy: int = 0
    surfaced: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class EtcdTally:
    """The same for etcd members; `total` counts every member, `voting` and `learners` split it."""

    total: int = 0
    voting: int = 0
    learners: int = 0
    tally: Tally = Tally()

    @property
    def quorum(self) -> int:
        """How many healthy members the cluster needs."""
        return quorum(self.voting)


@dataclass(frozen=True, kw_only=True)
class ControlPlaneSnapshot:
    """A control plane at the end of a pass. `conditions` are its own, as set so far; `desired` is None where replicas are not set."""

    now: datetime
    deleting: bool
    deleting_reason: str = ""
    deleting_message: str = ""
    initialized: bool
    managed_etcd: bool
    desired: int | None
    machines: tuple[ControlPlaneMachine, ...]
    inspection: Inspection = field(default_factory=Inspection)
    blockers: Blockers = field(default_factory=Blockers)
    pending_version: str = ""
    template_kind: str = ""
    template_missing: bool = False
    conditions: tuple[Condition, ...] = ()

    def condition(self, type: str) -> Condition | None:
        """The control plane's own condition of this type."""
        return get(self.conditions, type)

    @property
    def wanted(self) -> int:
        """How many Machines there should be; none while deleting."""
        return 0 if self.deleting else self.desired or 0

    @cached_property
    def etcd(self) -> EtcdTally:
        """The members' health, as the Machines' conditions have it."""
        return tally_members(self.inspection.members or (), self.machines, self.now)

    @cached_property
    def components(self) -> Tally:
        """The health of the Kubernetes components over Machines that have a providerID."""
        return tally_machines(
            [m for m in self.machines if m.provider_id], names.health_conditions(managed_etcd=self.managed_etcd), self.now
        )

    @cached_property
    def stale(self) -> str:
        """Which Machines are in deletion for too long."""
        return stale_text(self.machines, self.now)


def _tally(machine: ControlPlaneMachine, types: Sequence[str], now: datetime) -> Tally:
    if not machine.lacks_any(types):
        return Tally(healthy=1)
    since = machine.failing_since(types)
    return Tally(surfaced=1) if since is not None and now - since > names.SURFACE_AFTER else Tally(pending=1)


def _sum(tallies: Sequence[Tally]) -> Tally:
    return Tally(sum(t.healthy for t in tallies), sum(t.surfaced for t in tallies), sum(t.pending for t in tallies))


def tally_machines(machines: Sequence[ControlPlaneMachine], types: Sequence[str], now: datetime) -> Tally:
    """Count Machines by whether all these conditions are True."""
    return _sum([_tally(m, types, now) for m in machines])


def tally_members(members: Sequence[EtcdMember], machines: Sequence[ControlPlaneMachine], now: datetime) -> EtcdTally:
    """Count members by the health of their Machines.

    One without a name is starting: a healthy learner. A named one of no Machine belongs to the Machine that is provisioning, if
    that is exactly one and not taken yet; else nobody answers for it, and that is said at once.
    """
    by_node = {m.node: m for m in machines if m.has_node}
    provisioning = [m for m in machines if not m.has_node]
    spare = provisioning[0] if len(provisioning) == 1 else None
    voting = learners = 0
    tallies: list[Tally] = []
    for member in members:
        if not member.name:
            learners += 1
            tallies.append(Tally(healthy=1))
            continue
        if member.is_learner:
            learners += 1
        else:
            voting += 1
        machine = by_node.get(member.name)
        if machine is None:
            machine, spare = spare, None
        tallies.append(Tally(surfaced=1) if machine is None else _tally(machine, (names.ETCD_MEMBER,), now))
    return EtcdTally(len(members), voting, learners, _sum(tallies))
