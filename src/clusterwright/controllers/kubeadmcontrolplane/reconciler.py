"""The pass of the KubeadmControlPlane controller: tables decide one after the other, and this module acts."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final, assert_never

from clusterwright.api.controlplane import KubeadmControlPlane, KubeadmControlPlaneInitializationStatus
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import (
    KCP_PRE_TERMINATE_HOOK,
    KUBEADM_CONTROL_PLANE_FINALIZER,
    REMEDIATION_IN_PROGRESS_ANNOTATION,
)
from clusterwright.conditions import delete_condition, is_false, v1beta1
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.kit.adopt import Providers
from clusterwright.controllers.kit.conditions import with_condition, with_v1beta1, with_v1beta1_status
from clusterwright.controllers.kit.lookup import Unreadable
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kubeadmcontrolplane import conditions_v1beta1, names, plan
from clusterwright.controllers.kubeadmcontrolplane.addons import kubeadm_config
from clusterwright.controllers.kubeadmcontrolplane.certificates import look_after_certificates, look_after_kubeconfig
from clusterwright.controllers.kubeadmcontrolplane.conditions import CONCLUSIONS, OWNED
from clusterwright.controllers.kubeadmcontrolplane.conditions_v1beta1 import CONCLUSIONS_V1BETA1, OWNED_V1BETA1, mark
from clusterwright.controllers.kubeadmcontrolplane.deadlines import next_deadline
from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.guards import first_to_leave, stray_member
from clusterwright.controllers.kubeadmcontrolplane.inspection import inspect, say_unknown
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run, annotate, say_decided
from clusterwright.controllers.kubeadmcontrolplane.machines import remediation
from clusterwright.controllers.kubeadmcontrolplane.machines.in_place import begin_update
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import (
    REMEDIATE,
    GarbledHistory,
    RemediationData,
    RemediationFacts,
    Remedy,
)
from clusterwright.controllers.kubeadmcontrolplane.machines.sync import sync_machines
from clusterwright.controllers.kubeadmcontrolplane.observing import Observer, owner_cluster
from clusterwright.controllers.kubeadmcontrolplane.plan import Deletion, MemberRemoval, Preparation
from clusterwright.controllers.kubeadmcontrolplane.rollout import scale
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ClusterFacts, ControlPlaneDone, ControlPlaneSnapshot
from clusterwright.controllers.kubeadmcontrolplane.status import counted
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.controllers.kubeadmcontrolplane.workload_watches import WorkloadWatches
from clusterwright.controllers.unconfirmed import Unconfirmed
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.workload.access import NotConnected

SHAPE: Final = Shape(
    kind=KubeadmControlPlane,
    done=ControlPlaneDone,
    finalizer=KUBEADM_CONTROL_PLANE_FINALIZER,
    owned=OWNED,
    owned_v1beta1=OWNED_V1BETA1,
)
_TRIED_BY_THEN: Final = timedelta(seconds=5)
_LONGEST: Final = timedelta(days=1)
"""The longest timer; longer waits use several, because event loops do not keep timers of years exactly."""


class ControlPlanes(Kind[KubeadmControlPlane, ClusterFacts, ControlPlaneSnapshot, ControlPlaneDone]):
    """The control plane's own steps of a pass."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._writer = MachineWriter(deps, Patcher(deps.client, deps.clock, deps.random), Applier(deps.client), Unconfirmed())
        self._providers = Providers(deps)
        self._observer = Observer(deps, self._providers, self._writer.patcher)
        self._watches = WorkloadWatches(deps)

    async def owner(self, obj: KubeadmControlPlane) -> ClusterFacts | None:
        """Return the Cluster that owns it."""
        return await owner_cluster(self._deps, obj)

    async def observe(self, obj: KubeadmControlPlane, owner: ClusterFacts) -> ControlPlaneSnapshot | None:
        """Return the state in the management cluster; the workload cluster is inspected later.

        Skip an initialized control plane until a connection has been tried: otherwise it would seem to be down after every restart.
        """
        own = obj.status.initialization
        is_up = own is not None and own.control_plane_initialized is True and owner.infrastructure_provisioned
        if is_up and self._deps.workload.health(owner.key).untried:
            self._deps.enqueue_after(obj.key, _TRIED_BY_THEN, "the connection was tried")  # a connection that is made wakes us earlier
            return None
        seen = await self._observer.observe(obj, owner)
        if seen is not None:
            await self._watches.ensure(seen)
        return seen

    def forget(self, key: ObjectKey) -> None:
        """Forget a control plane that is gone."""
        self._providers.forget(key)
        self._writer.applier.forget(key)
        self._writer.unconfirmed.forget(key)
        self._watches.forget(key)

    async def act(self, run: Run) -> None:
        """Advance the control plane; then, after success or failure, detect initialization and set the next deadline."""
        try:
            await (self._delete(run) if run.seen.deleting else self._advance(run))
        except ApiError as error:
            run.fail(error)
        await self._detect_initialization(run)
        moment = None if run.seen.deleting else next_deadline(run.done)
        if moment is not None:
            self._deps.enqueue_after(run.object.key, min(moment - run.seen.now, _LONGEST), "time has come")

    async def _advance(self, run: Run) -> None:
        """Evaluate each step's table; stop at the first decision that ends the pass."""
        if await self._prepare(run) and await inspect(self._writer, run) and await self._leave(run) and await self._remediate(run):
            await scale(self._writer, run)

    def conclude(self, run: Run) -> None:
        """Set conditions in both forms and counters; requeue regularly while components are unhealthy."""
        run.conclude(*CONCLUSIONS)
        last: RemediationData | None = None
        try:
            last = remediation.last_remediation(run.done.remediation_in_progress, run.done.owned)
        except GarbledHistory as error:
            run.fail(str(error), error)
        run.become(counted(run.done, last))
        run.conclude(*CONCLUSIONS_V1BETA1)
        run.become(with_v1beta1(run.object, conditions_v1beta1.ready(run.done), run.seen.now))
        if not run.seen.deleting and not run.votes and is_false(run.done.conditions, names.COMPONENTS_HEALTHY):
            run.vote(names.POLL)

    # --------------------------------------------------------------------------------------------- preparation

    async def _prepare(self, run: Run) -> bool:
        decision = run.decide(plan.PREPARE, run.seen.template.cause if isinstance(run.seen.template, Unreadable) else None)
        if not run.done.managed_etcd and not decision.error:  # its health is not ours to report; what an older version wrote goes
            _forget_etcd_health(run)
        match decision.chosen(Preparation):
            case Preparation.NOTHING:
                say_unknown(run, decision.outcome)
                return False
            case Preparation.CERTIFICATES:
                if await look_after_certificates(self._deps, run):
                    say_unknown(run, decision.outcome)
                return False
            case Preparation.ALL:
                ready = (
                    await look_after_certificates(self._deps, run)
                    and await look_after_kubeconfig(self._deps, run)
                    and await sync_machines(self._writer, run)
                )
                if ready:
                    run.become(with_v1beta1(run.object, conditions_v1beta1.machines_ready(run.done), run.seen.now))
                return ready
            case None:
                return False
            case never:
                assert_never(never)

    # ----------------------------------------------------------------------------------------------- who leaves

    async def _leave(self, run: Run) -> bool:
        decision = run.decide(plan.LEAVE)
        choice = decision.chosen(MemberRemoval)
        match choice:
            case MemberRemoval.REMOVE_MEMBER:
                stray = stray_member(run.done)
                assert stray is not None
                await removal.remove_stray(self._writer, run, stray)
            case MemberRemoval.RELEASE_MACHINE:
                machine = first_to_leave(run.done)
                assert machine is not None
                await removal.release_machine(self._writer, run, machine)
            case MemberRemoval.FINISH_UPDATES:
                for machine in run.done.owned:
                    if machine.is_marked_for_update and not machine.is_update_pending:
                        await begin_update(self._writer, run, machine.name)
            case MemberRemoval.WAIT | None:
                pass
            case never:
                assert_never(never)
        return choice is None and not decision.error

    # ---------------------------------------------------------------------------------------------- remediation

    async def _remediate(self, run: Run) -> bool:
        """Delete one Machine that a health check found unhealthy, if that is safe, so that scaling up replaces it."""
        await self._forget_recovered(run)
        lock = run.done.remediation_in_progress
        try:
            if lock is not None and remediation.lock_is_stale(RemediationData.parse(lock), run.done.owned):
                annotate(run, {REMEDIATION_IN_PROGRESS_ANNOTATION: None})
        except GarbledHistory as error:
            raise PassFailed(str(error)) from error
        facts, cause = await self._remediation_facts(run)
        decision = run.decide_on(REMEDIATE, facts, cause)
        remedy = decision.chosen(Remedy)
        if facts.machine is None:
            return True
        if remedy is not None:
            return await self._delete_unhealthy(run, facts, facts.machine, remedy)
        say_decided(run, facts.machine.name, names.OWNER_REMEDIATED, decision)
        await self._writer.patch(run, [facts.machine.name], (names.OWNER_REMEDIATED,))
        return not decision.error

    async def _forget_recovered(self, run: Run) -> None:
        touched: list[str] = []
        for machine in run.done.owned:
            obj = machine.object
            if remediation.recovered(machine):
                kept = delete_condition(obj.status.conditions, names.OWNER_REMEDIATED)
                obj = replace(obj, status=replace(obj.status, conditions=kept))
            if remediation.recovered_v1beta1(machine):
                old = v1beta1.delete_condition(machine.v1beta1_conditions, names.OWNER_REMEDIATED)
                obj = with_v1beta1_status(obj, conditions=old)
            if obj is not machine.object:
                run.done = run.done.with_machine(replace(machine, object=obj))
                touched.append(machine.name)
        await self._writer.patch(run, touched, (names.OWNER_REMEDIATED,))

    async def _remediation_facts(self, run: Run) -> tuple[RemediationFacts, Exception | None]:
        seen = run.done
        max_retry, retry_period, min_healthy_period = remediation.settings(seen.spec.get("remediation") or {})
        facts = RemediationFacts(
            machine=remediation.choose(seen.owned, managed_etcd=seen.managed_etcd),
            machines=seen.owned,
            in_progress=seen.remediation_in_progress is not None,
            managed_etcd=seen.managed_etcd,
            members=seen.inspection.members,
            leader=seen.inspection.leader,
            nodes_listed=seen.inspection.nodes_error is None,
            initialized=seen.initialized,
            pending_topology_version=seen.awaited_version,
            max_retry=max_retry,
            retry_period=retry_period,
            min_healthy_period=min_healthy_period,
            now=seen.now,
        )
        if facts.machine is None or facts.in_progress or not seen.initialized:
            return facts, None
        if seen.managed_etcd:
            facts = replace(facts, member=await removal.member_name(self._writer, run, facts.machine))
        try:
            await workload_client(self._deps, seen.cluster.key)
        except (NotConnected, WorkloadUnavailable) as error:
            return replace(facts, unreachable=str(error)), error
        return facts, None

    async def _delete_unhealthy(self, run: Run, facts: RemediationFacts, machine: ControlPlaneMachine, remedy: Remedy) -> bool:
        """Delete the Machine, set the lock, and record the outcome on the Machine. Return False to end the pass."""
        failure: PassFailed | None = None
        said = remediation.deleted()
        if remedy is Remedy.FORWARD_AND_DELETE:
            try:
                await removal.forward_leadership(self._writer, run, machine)
            except MembershipError as error:
                failure = PassFailed(str(error))
                said = remediation.leads_on(str(error))
        if failure is None:
            try:
                await self._deps.client.delete(Machine, machine.key, uid=machine.uid)
            except NotFound:
                pass
            except ApiError as error:
                failure = PassFailed(f"failed to delete unhealthy machine {machine.name}: {error}")
                said = remediation.failed(str(failure))
        condition, old = said
        known, now = run.done.machine(machine.name), run.seen.now
        run.done = run.done.with_machine(replace(known, object=with_v1beta1(with_condition(known.object, condition, now), old, now)))
        if failure is not None:
            await self._writer.patch(run, [machine.name], (names.OWNER_REMEDIATED,))
            raise failure
        data = RemediationData(machine=machine.name, time=now, retry_count=facts.retry_count)
        annotate(run, {REMEDIATION_IN_PROGRESS_ANNOTATION: data.dump()})
        with suppress(PassFailed):  # it is deleted, whatever stands on it
            await self._writer.patch(run, [machine.name], (names.OWNER_REMEDIATED,))
        run.vote(names.AT_ONCE)
        return False

    # ---------------------------------------------------------------------------------------------------- deletion

    async def _delete(self, run: Run) -> None:
        if run.done.owned:
            run.become(with_v1beta1(run.object, conditions_v1beta1.machines_ready(run.done), run.seen.now))
            if not run.done.managed_etcd:
                _forget_etcd_health(run)
            with suppress(PassFailed):
                await inspect(self._writer, run)
            run.errors.clear()  # what cannot be looked at keeps nobody from being deleted
        found = run.seen.descendants
        match run.decide(plan.DELETE, found.cause if isinstance(found, Unreadable) else None).chosen(Deletion):
            case Deletion.RELEASE:
                run.become(without_finalizer(run.object, KUBEADM_CONTROL_PLANE_FINALIZER))
            case Deletion.DELETE:
                await self._delete_machines(run)
            case Deletion.WAIT | None:
                pass
            case never:
                assert_never(never)

    async def _delete_machines(self, run: Run) -> None:
        failures: list[str] = []
        for machine in run.done.owned:
            try:
                if KCP_PRE_TERMINATE_HOOK in machine.annotations:
                    await removal.remove_hook(self._writer, run, machine.name)
                if not machine.deleting:
                    await self._deps.client.delete(Machine, machine.key, uid=machine.uid)
            except NotFound:
                continue
            except PassFailed as error:
                failures.append(str(error))
            except ApiError as error:
                failures.append(f"failed to delete Machine {machine.name}: {error}")
        if failures:
            text = f"Failed to delete control plane Machines for cluster {run.seen.cluster.key} control plane: {'; '.join(failures)}"
            run.record("Warning", "FailedDelete", text)
            run.fail(text)
            run.done = replace(run.done, deletion_failed=True)

    # ----------------------------------------------------------------------------------------------- initialization

    async def _detect_initialization(self, run: Run) -> None:
        """Set `controlPlaneInitialized` for good once kubeadm's ConfigMap exists.

        A single Machine that is about to be replaced is skipped: its cluster will not survive.
        """
        seen = run.done
        is_untold = not seen.deleting and not v1beta1.is_true(seen.v1beta1_conditions, "Available")
        is_doomed = len(seen.owned) == 1 and any(m.needs_remediation or m.deleting for m in seen.owned)
        may_latch = not seen.initialized and not is_doomed
        if not may_latch and not is_untold:
            return
        try:
            client: Client = await workload_client(self._deps, seen.cluster.key)
            found = await kubeadm_config.exists(client)
        except ApiError:
            return
        except WorkloadUnavailable as error:
            run.fail(str(error), error)
            return
        if found and may_latch:
            latch = KubeadmControlPlaneInitializationStatus(control_plane_initialized=True)
            run.become(replace(run.object, status=replace(run.object.status, initialization=latch)))
        if found and is_untold:
            run.mark(mark("Available", "True"))


def _forget_etcd_health(run: Run) -> None:
    kept = delete_condition(run.object.status.conditions, names.ETCD_CLUSTER_HEALTHY)
    if kept != run.object.status.conditions:
        run.become(replace(run.object, status=replace(run.object.status, conditions=kept)))


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler."""
    return KindReconciler(deps, SHAPE, ControlPlanes(deps))
