"""Change the membership of an etcd cluster: remove a member, move the leadership."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import quorum
from clusterwright.runtime.errors import ApiError
from clusterwright.workload.access import EtcdClient, EtcdError, EtcdMember, WorkloadClusters

_UNREACHABLE = "failed to create etcd client"
_NOT_MOVED = "failed to move etcd leadership"


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

        Try every other member in turn, because one that answers may still be cut off from the rest. Never remove the last member, or one
        without which the members that answer now would not be a quorum: the Machines' conditions may be older, and do not show whether a
        member is alive.
        """
        failure = MembershipError(f"{_UNREACHABLE}: no Node to connect to")
        for node in [n for n in self.nodes if n != member.name]:
            try:
                etcd = await self._connect(node)
            except MembershipError as error:
                failure = error
                continue
            try:
                await self._remove_through(etcd, member)
                return
            except (EtcdError, ApiError) as error:
                failure = MembershipError(f"failed to remove member from etcd: {error}")
                failure.__cause__ = error
            finally:
                await etcd.close()
        raise failure

    async def _remove_through(self, etcd: EtcdClient, member: EtcdMember) -> None:
        members = await etcd.members()
        if all(m.id != member.id for m in members):
            return
        if len(members) == 1:
            raise MembershipError("cannot remove the last etcd member in the cluster")
        await self._require_quorum([m for m in members if m.id != member.id and not m.is_learner])
        await etcd.remove_member(member.id)

    async def _require_quorum(self, voters: Sequence[EtcdMember]) -> None:
        """Check that enough of the remaining members answer; raises NotSafe."""
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

    async def forward_leadership(self, leader: str, candidates: Sequence[str]) -> None:
        """If the member on the Node `leader` leads, move the leadership to the first candidate that can lead. Raises MembershipError.

        Only a leader itself can hand over. One that cannot be reached, while another member answers, keeps the leadership until it is
        removed through the others, which then elect the next leader: otherwise its machine could never be replaced.
        """
        failure: Exception | None = None
        for candidate in candidates:
            try:
                etcd = await self.workload.etcd(self.cluster, [leader])
            except (EtcdError, ApiError) as error:
                await self._require_another(leader, error)
                return
            try:
                if await _handed_over(etcd, leader, candidate):
                    return
            except (EtcdError, ApiError) as error:
                failure = error
            finally:
                await etcd.close()
        raise MembershipError(_NOT_MOVED) from failure

    async def _require_another(self, leader: str, error: Exception) -> None:
        """Ask the other members for the member list; raises MembershipError if none of them answers."""
        for node in [n for n in self.nodes if n != leader]:
            try:
                etcd = await self.workload.etcd(self.cluster, [node])
            except (EtcdError, ApiError):
                continue
            try:
                await etcd.members()
            except (EtcdError, ApiError):
                continue
            finally:
                await etcd.close()
            return
        raise MembershipError(_NOT_MOVED) from error

    async def _connect(self, node: str) -> EtcdClient:
        try:
            return await self.workload.etcd(self.cluster, [node])
        except (EtcdError, ApiError) as error:
            raise MembershipError(f"{_UNREACHABLE}: {error}") from error


async def _handed_over(etcd: EtcdClient, leader: str, candidate: str) -> bool:
    """Return whether the member on the Node `leader` no longer leads; False if the candidate is not a member."""
    members = await etcd.members()
    if not any(m.name == leader and m.id == etcd.status.leader_id for m in members):
        return True
    target = next((m for m in members if m.name == candidate), None)
    if target is None:
        return False
    await etcd.move_leader(target.id)
    return True
