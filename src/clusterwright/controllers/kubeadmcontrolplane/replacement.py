"""Remediation: one Machine that a health check found wanting is deleted, so that scaling up replaces it."""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.scheme import gvk_of
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import membership, names, remediation
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, newest
from clusterwright.controllers.kubeadmcontrolplane.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.remediation import GarbledHistory, RemediationData, RemediationFacts, Verdict
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, Scope
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.workload.access import NotConnected

MACHINE = gvk_of(Machine)


async def reconcile_remediation(scope: Scope) -> None:
    """Replace one Machine that a health check found wanting, if that is safe; the pass ends with its deletion."""
    await _forget_recovered(scope)
    try:
        lock = scope.annotations.get(names.REMEDIATION_IN_PROGRESS)
        if lock is not None and remediation.lock_is_stale(RemediationData.parse(lock), scope.all_machines):
            del scope.annotations[names.REMEDIATION_IN_PROGRESS]
        machine = remediation.choose(scope.all_machines, managed_etcd=scope.managed_etcd)
        if machine is None or machine.deleting or names.REMEDIATION_IN_PROGRESS in scope.annotations:
            return
        await _remediate(scope, machine)
    except GarbledHistory as error:
        raise PassFailed(str(error)) from error


async def _forget_recovered(scope: Scope) -> None:
    touched: list[str] = []
    for machine in scope.all_machines:
        conditions, legacy = machine.conditions, machine.v1beta1_conditions
        if remediation.recovered(machine):
            conditions = tuple(c for c in conditions if c.type != names.OWNER_REMEDIATED)
        if remediation.recovered_v1beta1(machine):
            legacy = v1beta1.delete_condition(legacy, names.OWNER_REMEDIATED)
        if (conditions, legacy) != (machine.conditions, machine.v1beta1_conditions):
            scope.machines[machine.name] = machine.with_(conditions=conditions, v1beta1_conditions=legacy)
            touched.append(machine.name)
    await scope.patch_machines(touched, (names.OWNER_REMEDIATED,))


def _facts(scope: Scope) -> RemediationFacts:
    spec = scope.owner.spec.get("remediation") or {}
    max_retry, retry_period, min_healthy_period = remediation.settings(spec)
    wanted = scope.topology_version
    return RemediationFacts(
        machines=scope.all_machines,
        managed_etcd=scope.managed_etcd,
        members=scope.inspection.members,
        nodes_listed=scope.inspection.nodes_error is None,
        initialized=scope.initialized,
        pending_topology_version=wanted if wanted and wanted != scope.control_plane.spec.version else "",
        max_retry=max_retry,
        retry_period=retry_period,
        min_healthy_period=min_healthy_period,
        now=scope.now,
    )


async def _remediate(scope: Scope, machine: ControlPlaneMachine) -> None:
    """Judge, move the leadership away, delete; the verdict is written on the Machine whatever it is."""
    facts = _facts(scope)
    member = await membership.member_name(scope, machine) if scope.initialized and scope.managed_etcd else None
    verdict = remediation.judge(machine, member, facts)
    failure: PassFailed | None = None
    if verdict.allowed:
        verdict, failure = await _delete_unhealthy(scope, machine, verdict)
    scope.set_on_machine(machine.name, names.OWNER_REMEDIATED, "False", verdict.reason, verdict.message)
    severity, reason, message = verdict.legacy
    scope.set_v1beta1_on_machine(machine.name, names.OWNER_REMEDIATED, ("False", severity, reason, message or str(failure or "")))
    deleted = verdict is remediation.DELETING
    try:
        await scope.patch_machines([machine.name], (names.OWNER_REMEDIATED,))
    except PassFailed:
        if not deleted:
            raise
    if failure is not None:
        raise failure
    if deleted:
        raise EndOfPass(names.AT_ONCE)


async def _delete_unhealthy(scope: Scope, machine: ControlPlaneMachine, allowed: Verdict) -> tuple[Verdict, PassFailed | None]:
    if scope.initialized and scope.managed_etcd:
        try:
            await workload_client(scope)
        except (NotConnected, WorkloadUnavailable) as error:
            raise PassFailed(f"failed to create client to workload cluster: {error}") from error
        candidate = newest(m for m in scope.all_machines if not m.unhealthy and m.name != machine.name)
        if candidate is None:
            return remediation.NO_HEALTHY_MACHINE, None
        try:
            await membership.forward_leadership(scope, machine, candidate)
        except MembershipError as error:
            return remediation.FAILED, PassFailed(f"failed to move leadership to candidate Machine {candidate.name}: {error}")
    try:
        await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
    except NotFound:
        pass
    except ApiError as error:
        return remediation.FAILED, PassFailed(f"failed to delete unhealthy machine {machine.name}: {error}")
    data = RemediationData(machine=machine.name, time=scope.now, retry_count=allowed.retry_count)
    scope.annotations[names.REMEDIATION_IN_PROGRESS] = data.dump()
    return remediation.DELETING, None
