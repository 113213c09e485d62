"""Changing the membership of an etcd cluster: removing a member, moving the leadership."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import quorum
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.runtime.errors import ApiError
from clusterwright.workload.access import EtcdClient, EtcdError, EtcdMember, WorkloadClusters

_UNREACHABLE = "failed to create etcd client"
_NO_LEADER = f"{_UNREACHABLE}: could not establish a connection to the etcd leader"


class MembershipError(Exception):
    """The change was not made."""


class NotSafe(MembershipError):
    """The change was not made because too few of the other members answer."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The etcd cluster of a Cluster, reached through the Nodes of control plane Machines."""

    workload: WorkloadClusters
    cluster: ObjectKey
    nodes: Sequence[str]

    async def remove(self, member: EtcdMember) -> None:
        """Remove a member through another one; a member that is gone already is success. Raises MembershipError.

        The last member is never removed, nor one without whom those that answer right now would be no quorum: what Machines
        report of their members may be older, and does not show whether a member is alive.
        """
        etcd = await self._connect([n for n in self.nodes if n != member.name], _UNREACHABLE)
        try:
            members = await etcd.members()
            if all(m.id != member.id for m in members):
                return
            if len(members) == 1:
                raise MembershipError("cannot remove the last etcd member in the cluster")
            await self._require_quorum([m for m in members if m.id != member.id and not m.is_learner])
            await etcd.remove_member(member.id)
        except (EtcdError, ApiError) as error:
            raise MembershipError(f"failed to remove member from etcd: {error}") from error
        finally:
            await etcd.close()

    async def _require_quorum(self, voters: Sequence[EtcdMember]) -> None:
        """Ask every member that would stay; raises NotSafe."""
        needed, answering = quorum(len(voters)), 0
        for voter in voters:
            if answering >= needed:
                return
            try:
                etcd = await self.workload.etcd(self.cluster, [voter.name])
            except (EtcdError, ApiError):
                continue
            await etcd.close()
            answering += 1
        if answering < needed:
            raise NotSafe(f"{answering} of {len(voters)} remaining etcd members answer, at least {needed} required for etcd quorum")

    async def forward_leadership(self, machine: ControlPlaneMachine | None, candidate: ControlPlaneMachine | None) -> None:
        """If the Machine's member leads, let the candidate's lead. Raises MembershipError."""
        if machine is None or not machine.has_node:
            return
        if candidate is None:
            raise MembershipError("leader candidate cannot be nil")
        if not candidate.has_node:
            raise MembershipError("leader candidate has no node reference")
        etcd = await self._connect([await self._leader()], _NO_LEADER)
        try:
            members = await etcd.members()
            leader = etcd.status.leader_id
            if not any(m.name == machine.node and m.id == leader for m in members):
                return
            target = next((m for m in members if m.name == candidate.node), None)
            if target is None:
                raise MembershipError(f'failed to get etcd member from node "{candidate.node}"')
            await etcd.move_leader(target.id)
        except (EtcdError, ApiError) as error:
            raise MembershipError(f"failed to move leader: {error}") from error
        finally:
            await etcd.close()

    async def _leader(self) -> str:
        """Return the name of the member that leads: whoever answers first says who that is."""
        etcd = await self._connect(self.nodes, _NO_LEADER)
        try:
            members = await etcd.members()
        except (EtcdError, ApiError) as error:
            raise MembershipError(f"failed to list etcd members: {error}") from error
        finally:
            await etcd.close()
        leader = next((m for m in members if m.id == etcd.status.leader_id), None)
        if leader is None:
            shown = _hex(etcd.status.leader_id)
            raise MembershipError(f"{_UNREACHABLE}: etcd leader is reported as {shown}, but we couldn't find any matching member")
        if leader.name not in self.nodes:
            raise MembershipError(
                f'{_UNREACHABLE}: etcd leader is reported as {_hex(leader.id)} with name "{leader.name}", '
                "but we couldn't find a corresponding Node in the cluster"
            )
        return leader.name

    async def _connect(self, nodes: Sequence[str], failure: str) -> EtcdClient:
        try:
            return await self.workload.etcd(self.cluster, nodes)
        except (EtcdError, ApiError) as error:
            raise MembershipError(f"{failure}: {error}") from error


def _hex(member_id: str) -> str:
    return f"{int(member_id):x}" if re.fullmatch("[0-9]{1,20}", member_id) else member_id
