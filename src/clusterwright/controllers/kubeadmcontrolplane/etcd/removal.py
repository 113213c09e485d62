"""Remove etcd members in good order: those without a Machine, and those of Machines under deletion."""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node
from clusterwright.api.wellknown import KCP_PRE_TERMINATE_HOOK
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import MembershipError, NotSafe
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import project_etcd
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import leadership_candidates
from clusterwright.controllers.kubeadmcontrolplane.names import LEADER_UNKNOWN, NO_CANDIDATE
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.workload.access import EtcdMember


async def remove_stray(writer: MachineWriter, run: Run, stray: EtcdMember) -> None:
    """Remove an etcd member that belongs to no Machine. Raises PassFailed."""
    try:
        await writer.membership(run).remove(stray)
    except MembershipError as error:
        shown = stray.name or "(Name not yet assigned)"
        raise PassFailed(f"failed to remove etcd member {shown}. Please check the etcd status: {error}") from error


async def release_machine(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> None:
    """Remove the Machine's member from etcd, then let the Machine controller continue. Raises PassFailed."""
    if len(run.done.owned) <= 1 or not run.done.managed_etcd or await _leave_etcd(writer, run, machine):
        await remove_hook(writer, run, machine.name)


async def _leave_etcd(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> bool:
    """Remove the Machine's member if that is safe; return whether it has none any more. Raises PassFailed if the removal fails."""
    members, owned = run.done.inspection.members, run.done.owned
    if run.done.inspection.nodes_error is not None:
        raise PassFailed(f"unable to remove pre-terminate hook: {run.done.inspection.nodes_error}")
    if not members:
        raise PassFailed("unable to remove pre-terminate hook, etcd member list is empty")
    name = await member_name(writer, run, machine)
    if name is None:
        return True
    if not project_etcd(members, owned, remove=name).safe:
        return False
    try:
        await forward_leadership(writer, run, machine)
    except MembershipError as error:
        raise PassFailed(str(error)) from error
    member = next((m for m in members if m.name == name), None)
    if member is None:
        return True
    try:
        await writer.membership(run).remove(member)
    except NotSafe as error:
        text = f"Waiting to remove the etcd member of deleting Machine {machine.name}: {error}"
        run.record("Warning", "ControlPlaneUnhealthy", text)
        return False
    except MembershipError as error:
        raise PassFailed(f"failed to remove etcd member for deleting Machine {machine.name}: {error}") from error
    return True


async def forward_leadership(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> None:
    """Move the etcd leadership away from the Machine's member. Raises MembershipError.

    Do nothing before kubeadm init has succeeded: there is no leader, and a failed first Machine must be replaceable. Do nothing if all
    Machines are being deleted: the last one could otherwise never go, and etcd elects a new leader anyway.
    """
    if not run.done.initialized:
        return
    leader = run.done.inspection.leader
    if leader is None:
        raise MembershipError(LEADER_UNKNOWN)
    if not machine.has_node or machine.node != leader.name:
        return
    candidates = leadership_candidates(run.done.owned, machine)
    if not candidates and all(m.deleting for m in run.done.owned):
        return
    if not candidates:
        raise MembershipError(NO_CANDIDATE)
    await writer.membership(run).forward_leadership(machine.node, [m.node for m in candidates])


async def remove_hook(writer: MachineWriter, run: Run, name: str) -> None:
    """Let the Machine controller continue with a Machine; raises PassFailed."""
    body = {"metadata": {"annotations": {KCP_PRE_TERMINATE_HOOK: None}}}
    try:
        answer = await writer.deps.client.patch(Machine, run.done.machine(name).key, body)
    except NotFound:
        return
    except ApiError as error:
        raise PassFailed(f"failed to remove pre-terminate hook from control plane Machine {name}: {error}") from error
    writer.replace_machine(run, name, answer)


async def member_name(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> str | None:
    """Return the name of the Machine's etcd member, which is its Node's; None if the Node is unknown."""
    if machine.has_node:
        return machine.node
    provider_id = machine.provider_id
    if not provider_id and machine.infrastructure is not None:
        found = machine.infrastructure.at("spec", "providerID")
        provider_id = found if isinstance(found, str) else ""
    if not provider_id:
        return None
    try:
        client = await workload_client(writer.deps, run.seen.cluster.key)
        nodes = [n for n in await client.list(Node) if n.spec.provider_id == provider_id]
    except (ApiError, WorkloadUnavailable):
        return None
    return nodes[0].metadata.name if len(nodes) == 1 else None
