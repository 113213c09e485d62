"""Whether etcd members and Machines are the same set. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterwright.api.kubernetes import Node
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.workload.access import EtcdMember

MEMBER_GRACE = timedelta(minutes=2)
LEARNER_GRACE = timedelta(seconds=20)
"""How long after a Node registered a member without a name may be its learner, whose etcd Pod has yet to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The result of comparing etcd members with Machines, and the members without a Machine."""

    holds: bool
    strays: tuple[EtcdMember, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """Return one line for each member without a Machine."""
        return tuple(
            f"Etcd member {m.name or f'{m.id} (Name not yet assigned)'} does not have a corresponding Machine" for m in self.strays
        )


def match_members(
    members: Sequence[EtcdMember] | None,
    machines: Sequence[ControlPlaneMachine],
    nodes: Mapping[str, Node],
    now: datetime,
) -> Matching:
    """Compare members with Machines. `nodes` are the existing Nodes; the member of a new Node has two minutes to appear."""
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
