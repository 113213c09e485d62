"""One pass over a control plane: a straight line of steps, each a pure choice and then an act; status is written whatever happened."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from clusterwright.api.controlplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneInitializationStatus,
    LastRemediationStatus,
)
from clusterwright.api.meta import ObjectKey, OwnerReference, Unstructured
from clusterwright.conditions import ConditionConflict, v1beta1
from clusterwright.controllers.external import with_owner
from clusterwright.controllers.kit.passing import PassFailed, failure
from clusterwright.controllers.kubeadmcontrolplane import addons, kubeadm_config_map, names, objects, remediation, status
from clusterwright.controllers.kubeadmcontrolplane.certificates import reconcile_certificates, reconcile_kubeconfig
from clusterwright.controllers.kubeadmcontrolplane.conditions import CONCLUSIONS
from clusterwright.controllers.kubeadmcontrolplane.deletion import reconcile_deletion
from clusterwright.controllers.kubeadmcontrolplane.departure import reconcile_hook, reconcile_members
from clusterwright.controllers.kubeadmcontrolplane.due import next_moment
from clusterwright.controllers.kubeadmcontrolplane.inspection import (
    drop_stale_etcd_condition,
    reconcile_conditions,
    set_all,
    set_legacy_machines_ready,
)
from clusterwright.controllers.kubeadmcontrolplane.observe import find_external, observe_machines, owner_cluster, patch_owners
from clusterwright.controllers.kubeadmcontrolplane.remediation import GarbledHistory
from clusterwright.controllers.kubeadmcontrolplane.replacement import reconcile_remediation
from clusterwright.controllers.kubeadmcontrolplane.rollout import Step, needing_rollout, scale_step
from clusterwright.controllers.kubeadmcontrolplane.scaling import reconcile_rollout, take
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, Scope, with_control_plane_status
from clusterwright.controllers.kubeadmcontrolplane.wakes import Alarms, WorkloadWatches
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result
from clusterwright.workload.access import NotConnected


class KubeadmControlPlaneReconciler:
    """Brings one control plane nearer to its spec."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._applied: dict[ObjectKey, dict[tuple[str, str], str]] = {}
        self._wakes = WorkloadWatches(dependencies)
        self._alarms = Alarms(dependencies)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        dependencies = self._dependencies
        original = await dependencies.client.read(KubeadmControlPlane, key)
        if original is None:
            self._applied.pop(key, None)
            self._wakes.forget(key)
            self._alarms.set(key, None)
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
        self._alarms.set(key, None if scope.deleting else _soonest(next_moment(scope.snapshot, scope.owner), scope.renewal))
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
        except ApiError as error:
            errors.append(error)
        available_vote, status_errors = await self._conclude(scope, complete=not errors)
        errors += status_errors
        if errors:
            raise failure(errors)
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
        except (ApiError, ConditionConflict, ExceptionGroup) as error:
            errors.append(error)
        return vote, errors


def _soonest(*moments: datetime | None) -> datetime | None:
    return min((m for m in moments if m is not None), default=None)


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
    set_legacy_machines_ready(scope)
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
        await take(scope, step, ())
        return
    await reconcile_workload(scope)


async def reconcile_template(scope: Scope) -> None:
    """Let the infrastructure template belong to the Cluster; raises PassFailed, also where there is none."""
    reference = scope.control_plane.spec.machine_template.spec.infrastructure_ref
    if not reference.kind.endswith("Template"):
        return
    client = scope.dependencies.client
    scope.template = scope.template or await find_external(scope.dependencies, reference, scope.key.namespace)
    if scope.template is None:
        scope.template_missing = True
        raise PassFailed(f"{reference.kind} {scope.key.namespace}/{reference.name} does not exist")
    owner = _cluster_reference(scope)
    references = scope.template.metadata.owner_references
    if owner not in references:
        try:
            scope.template = await patch_owners(client, scope.template, list(with_owner(references, owner)))
        except ApiError as error:
            raise PassFailed(f"failed to patch {reference.kind} {reference.name}: {error}") from error


def _cluster_reference(scope: Scope) -> OwnerReference:
    metadata = scope.cluster.metadata
    return OwnerReference(api_version=scope.cluster.api_version, kind="Cluster", name=metadata.name, uid=metadata.uid)


async def _complete_in_place_updates(scope: Scope) -> None:
    """Finish what an interrupted pass began."""
    begun = [m.name for m in scope.all_machines if m.update_in_progress and not m.update_pending]
    for name in begun:
        await objects.trigger_in_place_update(scope, name)
    if begun:
        raise EndOfPass


# --------------------------------------------------------------------------------------- workload cluster


async def reconcile_workload(scope: Scope) -> None:
    """At the wanted size and up to date: kube-proxy, CoreDNS, and when certificates expire."""
    try:
        client = await workload_client(scope)
    except NotConnected:
        raise EndOfPass from None
    except WorkloadUnavailable as error:
        raise PassFailed(f"failed to create client to workload cluster: {error}") from error
    await _settled(scope, client)


async def _settled(scope: Scope, client: Client) -> None:
    try:
        await objects.sweep(scope)
    except ApiError as error:
        raise PassFailed(f"failed to delete leftovers: {error}") from error
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
            port = api_server_port(config)
            expiry = await scope.dependencies.workload.serving_certificate_expiry(scope.cluster_key, machine.node, port)
            stamp = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
            await scope.dependencies.client.patch(config.gvk, config.key, {"metadata": {"annotations": {names.CERTIFICATES_EXPIRY: stamp}}})
        except (ApiError, OSError, ValueError) as error:
            raise PassFailed(f"failed to get certificate expiry for Machine {machine.name}: {error}") from error


def api_server_port(config: Unstructured) -> int:
    """Where the API server of a Machine listens, as its KubeadmConfig has it."""
    for path in (("initConfiguration", "localAPIEndpoint"), ("joinConfiguration", "controlPlane", "localAPIEndpoint")):
        port = config.at("spec", *path, "bindPort")
        if isinstance(port, int) and port:
            return port
    return 6443
