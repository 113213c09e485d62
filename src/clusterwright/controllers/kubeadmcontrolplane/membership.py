"""Changing the membership of the etcd cluster: removing a member, moving the leadership, finding a Machine's member."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.quorum import quorum
from clusterwright.controllers.kubeadmcontrolplane.scope import NODE, Scope
from clusterwright.controllers.kubeadmcontrolplane.workload import workload_client
from clusterwright.runtime.errors import ApiError
from clusterwright.workload.access import EtcdClient, EtcdError, EtcdMember


class MembershipError(Exception):
    """The change was not made."""


class NotSafe(MembershipError):
    """The change was not made because too few of the other members answer."""


async def remove_member(scope: Scope, member: EtcdMember) -> None:
    """Remove a member through another one; a member that is gone already is success. Raises MembershipError.

    The last member is never removed, nor one without whom those that answer right now would be no quorum: what Machines
    report of their members may be older, and does not show whether a member is alive.
    """
    nodes = [n for n in sorted(scope.inspection.nodes) if n != member.name]
    try:
        etcd = await scope.dependencies.workload.etcd(scope.cluster_key, nodes)
    except (EtcdError, ApiError) as error:
        raise MembershipError(f"failed to create etcd client: {error}") from error
    try:
        members = await etcd.members()
        if all(m.id != member.id for m in members):
            return
        if len(members) == 1:
            raise MembershipError("cannot remove the last etcd member in the cluster")
        await _require_quorum(scope, [m for m in members if m.id != member.id and not m.is_learner])
        await etcd.remove_member(member.id)
    except (EtcdError, ApiError) as error:
        raise MembershipError(f"failed to remove member from etcd: {error}") from error
    finally:
        await etcd.close()


async def _require_quorum(scope: Scope, voters: Sequence[EtcdMember]) -> None:
    """Ask every member that would stay; raises NotSafe."""
    needed, answering = quorum(len(voters)), 0
    for voter in voters:
        if answering >= needed:
            return
        try:
            etcd = await scope.dependencies.workload.etcd(scope.cluster_key, [voter.name])
        except (EtcdError, ApiError):
            continue
        await etcd.close()
        answering += 1
    if answering < needed:
        raise NotSafe(f"{answering} of {len(voters)} remaining etcd members answer, at least {needed} required for etcd quorum")


async def forward_leadership(scope: Scope, machine: ControlPlaneMachine | None, candidate: ControlPlaneMachine | None) -> None:
    """If the Machine's member leads, let the candidate's lead. Raises MembershipError."""
    if machine is None or not machine.has_node:
        return
    if candidate is None:
        raise MembershipError("leader candidate cannot be nil")
    if not candidate.has_node:
        raise MembershipError("leader candidate has no node reference")
    etcd = await _leader_client(scope)
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


async def _leader_client(scope: Scope) -> EtcdClient:
    """A client of the member that leads: whoever answers first says who that is."""
    nodes = sorted(scope.inspection.nodes)
    try:
        etcd = await scope.dependencies.workload.etcd(scope.cluster_key, nodes)
    except (EtcdError, ApiError) as error:
        raise MembershipError(f"failed to create etcd client: could not establish a connection to the etcd leader: {error}") from error
    try:
        members = await etcd.members()
        leader = next((m for m in members if m.id == etcd.status.leader_id), None)
        if leader is None:
            shown = _hex(etcd.status.leader_id)
            raise MembershipError(
                f"failed to create etcd client: etcd leader is reported as {shown}, but we couldn't find any matching member"
            )
        if leader.name not in nodes:
            raise MembershipError(
                f'failed to create etcd client: etcd leader is reported as {_hex(leader.id)} with name "{leader.name}", '
                "but we couldn't find a corresponding Node in the cluster"
            )
    except (EtcdError, ApiError) as error:
        await etcd.close()
        raise MembershipError(f"failed to list etcd members: {error}") from error
    except MembershipError:
        await etcd.close()
        raise
    await etcd.close()
    try:
        return await scope.dependencies.workload.etcd(scope.cluster_key, [leader.name])
    except (EtcdError, ApiError) as error:
        raise MembershipError(f"failed to create etcd client: could not establish a connection to the etcd leader: {error}") from error


def _hex(member_id: str) -> str:
    return f"{int(member_id):x}" if member_id.isdigit() else member_id


async def member_name(scope: Scope, machine: ControlPlaneMachine) -> str | None:
    """The name of the Machine's etcd member, which is its Node's; None if the Node cannot be told."""
    if machine.has_node:
        return machine.node
    provider_id = machine.provider_id
    if not provider_id and machine.infrastructure is not None:
        found = machine.infrastructure.at("spec", "providerID")
        provider_id = found if isinstance(found, str) else ""
    if not provider_id:
        return None
    try:
        client = await workload_client(scope)
        nodes = [n for n in await client.list(NODE) if n.at("spec", "providerID") == provider_id]
    except Exception:
        return None
    return nodes[0].key.name if len(nodes) == 1 else None
