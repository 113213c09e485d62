"""One pass over a control plane: a straight line of steps, each a pure choice and then an act; status is written whatever happened."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from clusterwright.api.controlplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneInitializationStatus,
    LastRemediationStatus,
)
from clusterwright.api.core import Machine
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.conditions import v1beta1
from clusterwright.controllers.external import ContractUnknown, get_external, with_owner
from clusterwright.controllers.kubeadmcontrolplane import addons, kubeadm_config_map, membership, names, objects, remediation, status
from clusterwright.controllers.kubeadmcontrolplane.certificates import reconcile_certificates, reconcile_kubeconfig
from clusterwright.controllers.kubeadmcontrolplane.conditions import CONCLUSIONS
from clusterwright.controllers.kubeadmcontrolplane.inspection import drop_stale_etcd_condition, reconcile_conditions, set_all
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, newest, stale_text
from clusterwright.controllers.kubeadmcontrolplane.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.observe import observe_machines, owner_cluster, patch_owners
from clusterwright.controllers.kubeadmcontrolplane.quorum import control_plane_survives, project_etcd
from clusterwright.controllers.kubeadmcontrolplane.remediation import GarbledHistory, RemediationData, RemediationFacts, Verdict
from clusterwright.controllers.kubeadmcontrolplane.rollout import Step, max_surge, needing_rollout, rollout_step, scale_step
from clusterwright.controllers.kubeadmcontrolplane.scale import Preflight, preflight, select_to_remove
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, ReconcileFailed, Scope, with_control_plane_status
from clusterwright.controllers.kubeadmcontrolplane.wakes import WorkloadWatches
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.resources import gvk_of
from clusterwright.workload.access import NotConnected

MACHINE = gvk_of(Machine)
MACHINE_POOL = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachinePool")
_PERMISSIONS_UNTIL = (1, 38, 0)
_OTHER_HOOKS_FROM = (1, 31, 0)


class KubeadmControlPlaneReconciler:
    """Brings one control plane nearer to its spec."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._applied: dict[ObjectKey, dict[tuple[str, str], str]] = {}
        self._wakes = WorkloadWatches(dependencies)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        dependencies = self._dependencies
        original = await dependencies.client.read(KubeadmControlPlane, key)
        if original is None:
            self._applied.pop(key, None)
            return Result.await_change()
        cluster = await owner_cluster(dependencies.client, original.object)
        if cluster is None:
            return Result.await_change()
        if await ensure_finalizer(self._patcher, original, names.FINALIZER) is Finalization.ADDED:
            return Result.await_change()
        paused = cluster.spec.paused is True
        check = await ensure_paused_condition(self._patcher, dependencies.clock, original, cluster_paused=paused)
        if check.ends_pass:
            return Result.await_change()
        scope = Scope.begin(dependencies, self._patcher, original, check.object, cluster, self._applied.setdefault(key, {}))
        if not await observe_machines(scope):
            return Result.await_change()
        await self._wakes.ensure(scope)
        result = await self._act_and_conclude(scope)
        self._forget_others(scope)
        return result

    def _forget_others(self, scope: Scope) -> None:
        """Keep what was applied only for objects that are still there."""
        uids = {m.uid for m in scope.machines.values()}
        for machine in scope.machines.values():
            uids |= {o.metadata.uid for o in (machine.infrastructure, machine.config) if o is not None}
        for identity in [i for i in scope.applied if i[0] not in uids]:
            del scope.applied[identity]

    async def _act_and_conclude(self, scope: Scope) -> Result:
        vote: timedelta | None = None
        errors: list[Exception] = []
        try:
            await (reconcile_deletion(scope) if scope.deleting else reconcile_normal(scope))
        except EndOfPass as end:
            vote = end.vote
        except (ReconcileFailed, ApiError) as error:
            errors.append(error)
        available_vote, status_errors = await self._conclude(scope, complete=not errors)
        errors += status_errors
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("reconcile failed", errors)
        votes = [vote, available_vote]
        components = scope.condition(names.COMPONENTS_HEALTHY)
        if not any(votes) and not scope.deleting and components is not None and components.status == "False":
            votes.append(names.POLL)
        return Result.soonest(*votes)

    async def _conclude(self, scope: Scope, *, complete: bool) -> tuple[timedelta | None, list[Exception]]:
        errors: list[Exception] = []
        try:
            await detect_initialization(scope)
        except WorkloadUnavailable as error:
            errors.append(error)
        vote: timedelta | None = None
        for table in CONCLUSIONS:
            decision = table.decide(scope.snapshot)
            scope.set_outcome(table.name, decision.outcome)
            scope.rows[table.name] = decision.row
            vote = decision.requeue or vote
        try:
            after = concluded(scope)
        except GarbledHistory as error:
            errors.append(error)
            after = concluded(scope, history=False)
        scope.dependencies.trace(scope.key, scope.rows)
        try:
            await scope.patcher.patch(
                scope.original,
                after,
                owned_conditions=names.OWNED_CONDITIONS,
                owned_v1beta1_conditions=status.V1BETA1_OWNED,
                observed_generation=complete and not errors,
            )
        except NotFound as error:
            if not scope.deleting or after.metadata.finalizers:
                errors.append(error)
        except Exception as error:
            errors.append(error)
        return vote, errors


# ------------------------------------------------------------------------------------------ conclusion


async def detect_initialization(scope: Scope) -> None:
    """Latch `controlPlaneInitialized` once kubeadm's ConfigMap is there; raises WorkloadUnavailable.

    A single Machine that is about to be replaced is not asked: its cluster will not live.
    """
    legacy_unknown = not scope.deleting and not v1beta1.is_true(scope.v1beta1_conditions, "Available")
    doomed = len(scope.machines) == 1 and any(m.needs_remediation or m.deleting for m in scope.machines.values())
    may_latch = not scope.initialized and not doomed
    if not may_latch and not legacy_unknown:
        return
    try:
        client = await workload_client(scope)
        found = await kubeadm_config_map.exists(client)
    except (NotConnected, ApiError):
        return
    if found and may_latch:
        latch = KubeadmControlPlaneInitializationStatus(control_plane_initialized=True)
        scope.control_plane = replace(scope.control_plane, status=replace(scope.control_plane.status, initialization=latch))
    if found and legacy_unknown:
        scope.set_v1beta1("Available", "True")


def concluded(scope: Scope, *, history: bool = True) -> KubeadmControlPlane:
    """The control plane with its status; raises GarbledHistory where `history` is wanted and cannot be read."""
    machines = scope.all_machines
    _legacy_resized(scope)
    ready = status.legacy_ready(scope.key.name, scope.v1beta1_conditions)
    if ready is not None:
        scope.v1beta1_conditions = v1beta1.set_condition(scope.v1beta1_conditions, ready, now=scope.now)
    changes: dict[str, Any] = {**status.counters(machines), "selector": status.selector(scope.cluster.metadata.name)}
    if version := status.lowest_version(machines):
        changes["version"] = version
    last = remediation.last_remediation(scope.annotations.get(names.REMEDIATION_IN_PROGRESS), machines) if history else None
    if last is not None:
        changes["last_remediation"] = LastRemediationStatus(machine=last.machine, time=last.time, retry_count=last.retry_count)
    counters = status.legacy_counters(machines, scope.inspection, deleting=scope.deleting)
    return with_control_plane_status(scope, replace(scope.control_plane.status, **changes), counters=counters)


def _legacy_resized(scope: Scope) -> None:
    """The deprecated Resized and MachinesCreated; while deleting, the deletion has said what there is to say."""
    if scope.deleting:
        return
    current, wanted = len(scope.machines), scope.desired
    if current < wanted:
        text = f"Scaling up control plane to {wanted} replicas (actual {current})"
        scope.set_v1beta1("Resized", "False", "Warning", "ScalingUp", text)
        return
    if current > wanted:
        text = f"Scaling down control plane to {wanted} replicas (actual {current})"
        scope.set_v1beta1("Resized", "False", "Warning", "ScalingDown", text)
    elif all(m.is_true("Ready") for m in scope.machines.values()):
        scope.set_v1beta1("Resized", "True")
    scope.set_v1beta1("MachinesCreated", "True")


# ----------------------------------------------------------------------------------------- the normal way


async def reconcile_normal(scope: Scope) -> None:
    """The steps in order; the first that has something to do ends the pass."""
    await reconcile_template(scope)
    drop_stale_etcd_condition(scope)
    if not scope.infrastructure_provisioned:
        set_all(scope, "InspectionFailed", "Waiting for Cluster status.infrastructureReady to be true")
        raise EndOfPass
    await reconcile_certificates(scope)
    if not scope.endpoint_valid:
        set_all(scope, "InspectionFailed", "Waiting for Cluster spec.controlPlaneEndpoint to be set")
        raise EndOfPass
    await reconcile_kubeconfig(scope)
    await objects.sync_machines(scope)
    _set_legacy_machines_ready(scope)
    await reconcile_conditions(scope)
    await reconcile_members(scope)
    await reconcile_hook(scope)
    await _complete_in_place_updates(scope)
    await reconcile_remediation(scope)
    if any(m.update_in_progress or m.update_pending for m in scope.machines.values()):
        raise EndOfPass
    outdated = needing_rollout(scope.all_machines)
    if outdated:
        await reconcile_rollout(scope, outdated)
        return
    if v1beta1.get(scope.v1beta1_conditions, "MachinesSpecUpToDate") is not None:
        scope.set_v1beta1("MachinesSpecUpToDate", "True")
    if scope.control_plane.spec.replicas is None:
        raise EndOfPass
    step = scale_step(current=len(scope.machines), desired=scope.desired)
    if step is not Step.NONE:
        await _take(scope, step, ())
        return
    await reconcile_workload(scope)


def _set_legacy_machines_ready(scope: Scope) -> None:
    condition = status.legacy_machines_ready(scope.all_machines, deleting=scope.deleting)
    if condition is not None:
        scope.v1beta1_conditions = v1beta1.set_condition(scope.v1beta1_conditions, condition, now=scope.now)


async def reconcile_template(scope: Scope) -> None:
    """Let the infrastructure template belong to the Cluster; raises ReconcileFailed, also where there is none."""
    reference = scope.control_plane.spec.machine_template.spec.infrastructure_ref
    if not reference.kind.endswith("Template"):
        return
    client = scope.dependencies.client
    try:
        scope.template = (await get_external(client, reference, scope.key.namespace)).object
    except NotFound as error:
        scope.template_missing = True
        raise ReconcileFailed(f"failed to get {reference.kind} {reference.name}: {error}") from error
    except (ApiError, ContractUnknown) as error:
        raise ReconcileFailed(f"failed to get {reference.kind} {reference.name}: {error}") from error
    owner = _cluster_reference(scope)
    references = scope.template.metadata.owner_references
    if owner not in references:
        try:
            scope.template = await patch_owners(client, scope.template, list(with_owner(references, owner)))
        except ApiError as error:
            raise ReconcileFailed(f"failed to patch {reference.kind} {reference.name}: {error}") from error


def _cluster_reference(scope: Scope) -> Any:
    from clusterwright.api.meta import OwnerReference

    metadata = scope.cluster.metadata
    return OwnerReference(api_version=scope.cluster.api_version, kind="Cluster", name=metadata.name, uid=metadata.uid)


# ------------------------------------------------------------------------------------------ etcd members


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
        raise ReconcileFailed(
            f"etcd member {stray.name} does not have a corresponding Machine, it must be removed from the cluster but this operation "
            "can lead to quorum loss. Please check the etcd status"
        )
    try:
        await membership.remove_member(scope, stray)
    except MembershipError as error:
        shown = stray.name or "(Name not yet assigned)"
        raise ReconcileFailed(f"failed to remove etcd member {shown}. Please check the etcd status: {error}") from error
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
        raise ReconcileFailed(f"failed to parse Kubernetes version: {error}") from error
    if may_leave(scope, machine, waits_for_others=version.release >= _OTHER_HOOKS_FROM):
        await _leave_etcd(scope, machine)
        await _remove_hook(scope, machine.name)
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
    """Take the Machine's member out of etcd; raises EndOfPass while that is not safe, ReconcileFailed if it fails."""
    if len(scope.machines) <= 1 or not scope.managed_etcd:
        return
    members = scope.inspection.members
    if scope.inspection.nodes_error is not None:
        raise ReconcileFailed(f"unable to remove pre-terminate hook: {scope.inspection.nodes_error}")
    if not members:
        raise ReconcileFailed("unable to remove pre-terminate hook, etcd member list is empty")
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
        raise ReconcileFailed(f"failed to move leadership to candidate Machine {candidate.name}: {error}") from error
    member = next((m for m in members if m.name == name), None)
    if member is None:
        return
    try:
        await membership.remove_member(scope, member)
    except MembershipError as error:
        raise ReconcileFailed(f"failed to remove etcd member for deleting Machine {machine.name}: {error}") from error


async def _remove_hook(scope: Scope, name: str) -> None:
    try:
        answer = await scope.dependencies.client.patch(
            MACHINE, scope.machines[name].key, {"metadata": {"annotations": {names.PRE_TERMINATE_HOOK: None}}}
        )
    except NotFound:
        return
    except ApiError as error:
        raise ReconcileFailed(f"failed to remove pre-terminate hook from control plane Machine {name}: {error}") from error
    scope.refresh(name, answer)


async def _complete_in_place_updates(scope: Scope) -> None:
    """Finish what an interrupted pass began."""
    begun = [m.name for m in scope.all_machines if m.update_in_progress and not m.update_pending]
    for name in begun:
        await objects.trigger_in_place_update(scope, name)
    if begun:
        raise EndOfPass


# ------------------------------------------------------------------------------------------ remediation


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
        raise ReconcileFailed(str(error)) from error


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
    failure: ReconcileFailed | None = None
    if verdict.allowed:
        verdict, failure = await _delete_unhealthy(scope, machine, verdict)
    scope.set_on_machine(machine.name, names.OWNER_REMEDIATED, "False", verdict.reason, verdict.message)
    severity, reason, message = verdict.legacy
    scope.set_v1beta1_on_machine(machine.name, names.OWNER_REMEDIATED, ("False", severity, reason, message or str(failure or "")))
    deleted = verdict is remediation.DELETING
    try:
        await scope.patch_machines([machine.name], (names.OWNER_REMEDIATED,))
    except ReconcileFailed:
        if not deleted:
            raise
    if failure is not None:
        raise failure
    if deleted:
        raise EndOfPass(names.AT_ONCE)


async def _delete_unhealthy(scope: Scope, machine: ControlPlaneMachine, allowed: Verdict) -> tuple[Verdict, ReconcileFailed | None]:
    if scope.initialized and scope.managed_etcd:
        try:
            await workload_client(scope)
        except (NotConnected, WorkloadUnavailable) as error:
            raise ReconcileFailed(f"failed to create client to workload cluster: {error}") from error
        candidate = newest(m for m in scope.all_machines if not m.unhealthy and m.name != machine.name)
        if candidate is None:
            return remediation.NO_HEALTHY_MACHINE, None
        try:
            await membership.forward_leadership(scope, machine, candidate)
        except MembershipError as error:
            return remediation.FAILED, ReconcileFailed(f"failed to move leadership to candidate Machine {candidate.name}: {error}")
    try:
        await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
    except NotFound:
        pass
    except ApiError as error:
        return remediation.FAILED, ReconcileFailed(f"failed to delete unhealthy machine {machine.name}: {error}")
    data = RemediationData(machine=machine.name, time=scope.now, retry_count=allowed.retry_count)
    scope.annotations[names.REMEDIATION_IN_PROGRESS] = data.dump()
    return remediation.DELETING, None


# -------------------------------------------------------------------------------------- rollout and scale


async def reconcile_rollout(scope: Scope, outdated: tuple[ControlPlaneMachine, ...]) -> None:
    """Prepare the workload cluster for the new version, then replace Machines one at a time."""
    current = sum(m.up_to_date.holds for m in scope.all_machines)
    scope.set_v1beta1(
        "MachinesSpecUpToDate",
        "False",
        "Warning",
        "RollingUpdateInProgress",
        f"Rolling {len(outdated)} replicas with outdated spec ({current} replicas up to date)",
    )
    try:
        client = await workload_client(scope)
        version = parse_version(scope.control_plane.spec.version)
        if version.release < _PERMISSIONS_UNTIL:
            await addons.ensure_permissions(client)
        await kubeadm_config_map.update(client, scope.owner.version, kubeadm_config_map.mutator(scope.owner))
    except NotConnected:
        raise EndOfPass from None
    except (WorkloadUnavailable, ApiError, ValueError) as error:
        raise ReconcileFailed(f"failed to update control plane: {error}") from error
    rollout = scope.control_plane.spec.rollout
    strategy = rollout.strategy if rollout is not None else None
    if strategy is None or strategy.type != "RollingUpdate":
        raise EndOfPass
    surge = max_surge(strategy.rolling_update.max_surge if strategy.rolling_update is not None else None)
    await _take(scope, rollout_step(current=len(scope.machines), desired=scope.desired, surge=surge), outdated)


async def _take(scope: Scope, step: Step, outdated: tuple[ControlPlaneMachine, ...]) -> None:
    if step is Step.INITIALIZE:
        scope.set_v1beta1("Available", "False", "Info", "WaitingForKubeadmInit")
        await objects.create_machine(scope, join=False)
    elif step is Step.SCALE_UP:
        await _pass_or_end(scope, preflight(scope.preflight_facts, scale_up=True))
        await objects.create_machine(scope, join=True)
    else:
        machine = select_to_remove(scope.all_machines, outdated, scope.failure_domains, managed_etcd=scope.managed_etcd)
        if machine is None:
            raise ReconcileFailed("failed to pick control plane Machine to delete")
        if outdated and await _wants_in_place_update(scope, machine):
            await objects.trigger_in_place_update(scope, machine.name)
            raise EndOfPass
        await _scale_down(scope, machine)


async def _pass_or_end(scope: Scope, verdict: Preflight) -> None:
    scope.blockers = verdict.blockers
    if verdict.passed:
        return
    if verdict.errors:
        text = f"Waiting for control plane to pass preflight checks to continue reconciliation: {'; '.join(verdict.errors)}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "ControlPlaneUnhealthy", text)
    raise EndOfPass(verdict.wait)


async def _wants_in_place_update(scope: Scope, machine: ControlPlaneMachine) -> bool:
    """Whether the Machine can be updated where it is instead of being replaced.

    A Machine that alone keeps the preflight checks from passing is better replaced. An extension has to say that it can do the
    update; none is registered with this process, so that the answer is no once the checks have passed.
    """
    up_to_date = sum(m.up_to_date.holds for m in scope.all_machines)
    if not scope.feature("InPlaceUpdates") or not machine.up_to_date.in_place or up_to_date >= scope.desired:
        return False
    verdict = preflight(scope.preflight_facts)
    if not verdict.passed and not preflight(scope.preflight_facts, excluding=machine.name).passed:
        await _pass_or_end(scope, verdict)
    return False


async def _scale_down(scope: Scope, machine: ControlPlaneMachine) -> None:
    await _pass_or_end(scope, preflight(scope.preflight_facts, excluding=machine.name))
    try:
        await workload_client(scope)
        if scope.managed_etcd:
            if scope.inspection.nodes_error is not None:
                raise ReconcileFailed(f"unable to forward etcd leadership: {scope.inspection.nodes_error}")
            await membership.forward_leadership(scope, machine, newest(scope.all_machines))
        await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
        scope.machines[machine.name] = scope.machines[machine.name].with_(deletion_timestamp=scope.now)
    except NotFound:
        return
    except NotConnected:
        raise EndOfPass from None
    except WorkloadUnavailable as error:
        raise ReconcileFailed(f"failed to create client to workload cluster: {error}") from error
    except MembershipError as error:
        raise ReconcileFailed(f"failed to move leadership to another Machine: {error}") from error
    except ApiError as error:
        text = f"Failed to delete control plane Machine {machine.name} for cluster {scope.cluster_key} control plane: {error}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "FailedScaleDown", text)
        raise ReconcileFailed(text) from error


# --------------------------------------------------------------------------------------- workload cluster


async def reconcile_workload(scope: Scope) -> None:
    """At the wanted size and up to date: kube-proxy, CoreDNS, and when certificates expire."""
    try:
        client = await workload_client(scope)
    except NotConnected:
        raise EndOfPass from None
    except WorkloadUnavailable as error:
        raise ReconcileFailed(f"failed to create client to workload cluster: {error}") from error
    await _settled(scope, client)


async def _settled(scope: Scope, client: Client) -> None:
    await addons.update_kube_proxy(scope, client)
    await addons.update_coredns(scope, client)
    await reconcile_certificate_expiries(scope)


async def reconcile_certificate_expiries(scope: Scope) -> None:
    """Write down when the API server certificate of each Machine expires; once, because a Machine never renews it."""
    if not scope.initialized:
        return
    for machine in scope.all_machines:
        config = machine.config
        if machine.deleting or not machine.has_node or config is None or names.CERTIFICATES_EXPIRY in config.metadata.annotations:
            continue
        try:
            expiry = await scope.dependencies.workload.serving_certificate_expiry(scope.cluster_key, machine.node)
            stamp = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
            await scope.dependencies.client.patch(config.gvk, config.key, {"metadata": {"annotations": {names.CERTIFICATES_EXPIRY: stamp}}})
        except (ApiError, OSError, ValueError) as error:
            raise ReconcileFailed(f"failed to get certificate expiry for Machine {machine.name}: {error}") from error


# ----------------------------------------------------------------------------------------------- deletion


async def reconcile_deletion(scope: Scope) -> None:
    """Wait for the workers, then delete all Machines at once; etcd goes down with them."""
    if not scope.machines:
        scope.finalizers = tuple(f for f in scope.finalizers if f != names.FINALIZER)
        scope.deleting_reason, scope.deleting_message = "DeletionCompleted", "Deletion completed"
        return
    _set_legacy_machines_ready(scope)
    with suppress(EndOfPass, ReconcileFailed):  # what cannot be looked at does not keep anyone from being deleted
        await reconcile_conditions(scope)
    try:
        blockers = await _blocking_deletion(scope)
    except ApiError as error:
        scope.deleting_reason, scope.deleting_message = names.INTERNAL_ERROR, names.CHECK_LOGS
        raise ReconcileFailed(f"failed to list descendants: {error}") from error
    if blockers is not None:
        scope.set_v1beta1("Resized", "False", "Info", "Deleting", "Waiting for worker nodes to be deleted first")
        scope.deleting_reason, scope.deleting_message = "WaitingForWorkersDeletion", blockers
        raise EndOfPass(names.DELETE_WAIT)
    failures = await _delete_machines(scope)
    if failures:
        text = f"Failed to delete control plane Machines for cluster {scope.cluster_key} control plane: {'; '.join(failures)}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "FailedDelete", text)
        scope.deleting_reason, scope.deleting_message = names.INTERNAL_ERROR, names.CHECK_LOGS
        raise ReconcileFailed(text)
    scope.set_v1beta1("Resized", "False", "Info", "Deleting")
    count = len(scope.machines)
    stale = stale_text(scope.all_machines, scope.now)
    scope.deleting_reason = "WaitingForMachineDeletion"
    scope.deleting_message = f"Deleting {count} Machine{'' if count == 1 else 's'}{f' and {stale}' if stale else ''}"
    raise EndOfPass(names.DELETE_WAIT)


async def _blocking_deletion(scope: Scope) -> str | None:
    """What must be gone before the control plane may go; None if nothing is left."""
    client, cluster = scope.dependencies.client, scope.cluster.metadata.name
    machines = await client.list(Machine, namespace=scope.key.namespace, labels={names.CLUSTER_NAME: cluster})
    pools: list[str] = []
    if scope.dependencies.features.get("MachinePool", True):
        found = await client.list(MACHINE_POOL, namespace=scope.key.namespace, labels={names.CLUSTER_NAME: cluster})
        pools = [p.key.name for p in found]
    workers = [m.metadata.name for m in machines if names.CONTROL_PLANE not in m.metadata.labels]
    if not pools and len(machines) == len(scope.machines):
        return None
    lines = ["KubeadmControlPlane deletion blocked because following objects still exist:"]
    lines += [f"* {kind}: {names.limited(who, 5)}" for kind, who in (("MachinePools", pools), ("Machines", workers)) if who]
    return "\n".join(lines)


async def _delete_machines(scope: Scope) -> list[str]:
    failures: list[str] = []
    for name in sorted(scope.machines):
        machine = scope.machines[name]
        if names.PRE_TERMINATE_HOOK in machine.annotations:
            try:
                await _remove_hook(scope, name)
            except ReconcileFailed as error:
                failures.append(str(error))
                continue
        if machine.deleting:
            continue
        try:
            await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
        except NotFound:
            continue
        except ApiError as error:
            failures.append(f"failed to delete Machine {name}: {error}")
    return failures
