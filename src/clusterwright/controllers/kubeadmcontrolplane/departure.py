"""Leaving etcd in good order: members that belong to nobody, and Machines that are on their way out."""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import membership, names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, newest
from clusterwright.controllers.kubeadmcontrolplane.membership import MembershipError, NotSafe
from clusterwright.controllers.kubeadmcontrolplane.quorum import control_plane_survives, project_etcd
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, Scope
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.errors import ApiError, NotFound

MACHINE = gvk_of(Machine)
_OTHER_HOOKS_FROM = (1, 31, 0)


async def reconcile_members(scope: Scope) -> None:
    """Remove one etcd member that belongs to no Machine, if that is safe; the pass ends there."""
    members, machines = scope.inspection.members, scope.all_machines
    if not scope.managed_etcd or not machines or not members:
        return
    healthy = scope.condition(names.ETCD_CLUSTER_HEALTHY)
    expected = {m.node for m in machines if m.has_node}
    strays = sorted((m for m in members if not m.name or m.name not in expected), key=lambda m: (m.name, m.id))
    if (healthy is not None and healthy.status == "True") or not strays or any(not m.has_node for m in machines):
        return
    stray = strays[0]
    if stray.name and not project_etcd(members, machines, remove=stray.name).safe:
        raise PassFailed(
            f"etcd member {stray.name} does not have a corresponding Machine, it must be removed from the cluster but this operation "
            "can lead to quorum loss. Please check the etcd status"
        )
    try:
        await membership.remove_member(scope, stray)
    except MembershipError as error:
        shown = stray.name or "(Name not yet assigned)"
        raise PassFailed(f"failed to remove etcd member {shown}. Please check the etcd status: {error}") from error
    raise EndOfPass(names.SOON)


async def reconcile_hook(scope: Scope) -> None:
    """Let one deleting Machine go: its etcd member leaves first. While any Machine is deleting, the pass ends here."""
    deleting = [m for m in scope.all_machines if m.deleting]
    if not deleting:
        return
    if any(names.PRE_TERMINATE_HOOK not in m.annotations for m in deleting):
        raise EndOfPass(names.DELETE_WAIT)
    machine = min(deleting, key=lambda m: (m.deletion_timestamp, m.name))
    try:
        version = parse_version(scope.control_plane.spec.version)
    except ValueError as error:
        raise PassFailed(f"failed to parse Kubernetes version: {error}") from error
    if may_leave(scope, machine, waits_for_others=version.release >= _OTHER_HOOKS_FROM):
        await _leave_etcd(scope, machine)
        await remove_hook(scope, machine.name)
    raise EndOfPass(names.DELETE_WAIT)


def may_leave(scope: Scope, machine: ControlPlaneMachine, *, waits_for_others: bool) -> bool:
    """Whether the Machine is ready to go and the rest can do without its control plane components."""
    others = [a for a in machine.annotations if a.startswith(names.PRE_TERMINATE_PREFIX) and a != names.PRE_TERMINATE_HOOK]
    if waits_for_others and others:
        return False
    condition = machine.condition(names.DELETING)
    if condition is None or condition.status != "True" or condition.reason != "WaitingForPreTerminateHook":
        return False
    return len(scope.machines) <= 1 or control_plane_survives(scope.all_machines, managed_etcd=scope.managed_etcd, remove=machine.name)


async def _leave_etcd(scope: Scope, machine: ControlPlaneMachine) -> None:
    """Take the Machine's member out of etcd; raises EndOfPass while that is not safe, PassFailed if it fails."""
    if len(scope.machines) <= 1 or not scope.managed_etcd:
        return
    members = scope.inspection.members
    if scope.inspection.nodes_error is not None:
        raise PassFailed(f"unable to remove pre-terminate hook: {scope.inspection.nodes_error}")
    if not members:
        raise PassFailed("unable to remove pre-terminate hook, etcd member list is empty")
    name = await membership.member_name(scope, machine)
    if name is None:
        return
    if not project_etcd(members, scope.all_machines, remove=name).safe:
        raise EndOfPass(names.DELETE_WAIT)
    candidate = newest(m for m in scope.all_machines if not m.deleting)
    try:
        if candidate is not None:
            await membership.forward_leadership(scope, machine, candidate)
    except MembershipError as error:
        assert candidate is not None
        raise PassFailed(f"failed to move leadership to candidate Machine {candidate.name}: {error}") from error
    member = next((m for m in members if m.name == name), None)
    if member is None:
        return
    try:
        await membership.remove_member(scope, member)
    except NotSafe as error:
        text = f"Waiting to remove the etcd member of deleting Machine {machine.name}: {error}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "ControlPlaneUnhealthy", text)
        raise EndOfPass(names.DELETE_WAIT) from None
    except MembershipError as error:
        raise PassFailed(f"failed to remove etcd member for deleting Machine {machine.name}: {error}") from error


async def remove_hook(scope: Scope, name: str) -> None:
    """Let the Machine controller go on with a Machine; raises PassFailed."""
    try:
        answer = await scope.dependencies.client.patch(
            MACHINE, scope.machines[name].key, {"metadata": {"annotations": {names.PRE_TERMINATE_HOOK: None}}}
        )
    except NotFound:
        return
    except ApiError as error:
        raise PassFailed(f"failed to remove pre-terminate hook from control plane Machine {name}: {error}") from error
    scope.refresh(name, answer)
