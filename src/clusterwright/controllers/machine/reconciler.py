"""One pass over a Machine: read, advance through the phases, delete or update, conclude, write one patch.

A straight script, because what the workload cluster answers decides the next step; every choice in it is a table or a pure
function of this package. All phases run whatever befalls the others; errors are raised together at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace as replace_struct

from clusterwright.api.core import Cluster, Machine, MachineDeletionStatus, MachineDeployment, MachineNodeReference, MachineSet
from clusterwright.api.kubernetes import Pod, VolumeAttachment
from clusterwright.api.meta import ObjectKey, OwnerReference, Unstructured
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MACHINE_FINALIZER,
    UPDATE_IN_PROGRESS_ANNOTATION,
)
from clusterwright.conditions import v1beta1
from clusterwright.controllers.external import AlreadyControlled, ContractUnknown, Reference, WrongType, contract_of, get_external, text_at
from clusterwright.controllers.machine import deletion, drain, inplace, plan, release, remote, removal, volumes
from clusterwright.controllers.machine.conditions import OWNED, OWNED_V1BETA1, conclude
from clusterwright.controllers.machine.node import is_unreachable
from clusterwright.controllers.machine.ownership import owned_metadata
from clusterwright.controllers.machine.snapshot import (
    GRACE_PERIOD,
    Found,
    Lookup,
    MachineSnapshot,
    Missing,
    NodeFound,
    NotReferenced,
    Stage,
    Unreadable,
)
from clusterwright.controllers.machine.status import (
    BadExpiry,
    v1beta1_conditions,
    with_certificates_expiry,
    with_status,
    with_v1beta1_condition,
    with_v1beta1_ready,
)
from clusterwright.controllers.machine.wakes import Awaited, Wakes
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result
from clusterwright.tables import Decision, Table
from clusterwright.workload.access import NotConnected

CONSIDER_ATTACHMENTS = "MachineWaitForVolumeDetachConsiderVolumeAttachments"


CONNECTION_RETRY = 20.0
"""Seconds after which a pass that failed only for want of a connection is run again: the connection itself wakes us sooner."""


class MachineError(ApiError):
    """A pass could not do all that it should."""


@dataclass(slots=True)
class Pass:
    """A pass under way: what it knows and has decided so far."""

    seen: MachineSnapshot
    original: Original[Machine]
    votes: list[timedelta] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def machine(self) -> Machine:
        """The Machine as it is to become."""
        return self.seen.machine

    def become(self, machine: Machine) -> None:
        """The Machine is to become this."""
        self.seen = replace(self.seen, machine=machine)

    def mark(self, condition: Any) -> None:
        """Set a v1beta1 condition."""
        self.become(with_v1beta1_condition(self.machine, condition, self.seen.now))

    def advance(self, table: Table[MachineSnapshot], cause: Exception | None = None) -> None:
        """Let a phase's table decide."""
        self.seen, decision = plan.advance(self.seen, table)
        self.rows[decision.table] = decision.row
        if decision.requeue is not None:
            self.votes.append(decision.requeue)
        if decision.error:
            self.fail(decision.error, cause)

    def fail(self, text: str, cause: Exception | None = None) -> None:
        """The pass will end in an error."""
        error = MachineError(text)
        error.__cause__ = cause
        self.errors.append(error)


class MachineReconciler:
    """Brings Machines nearer to their spec."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._clock = deps.clock
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._wakes = Wakes(deps.enqueue)
        self._sync = remote.NodeSync(
            _patterns(deps.options.get("additional-sync-machine-labels") or ()),
            _patterns(deps.options.get("additional-sync-machine-annotations") or ()),
        )
        self._grace_period: timedelta = deps.options.get("remote-conditions-grace-period") or GRACE_PERIOD
        self._update_extensions: Sequence[inplace.UpdateExtension] = deps.options.get("update-machine-extensions") or ()

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._client.read(Machine, key)
        if original is None:
            self._wakes.forget(key)
            return Result.await_change()
        machine = original.object
        cluster = await self._client.get(Cluster, ObjectKey(key.namespace, machine.spec.cluster_name))
        if await ensure_finalizer(self._patcher, original, MACHINE_FINALIZER) is Finalization.ADDED:
            return Result.await_change()
        pause = await ensure_paused_condition(self._patcher, self._clock, original, cluster_paused=bool(cluster.spec.paused))
        if pause.ends_pass:
            return Result.await_change()
        machine_set, deployment = await self._owners(machine)
        run = Pass(
            MachineSnapshot(
                now=self._clock.now(),
                machine=pause.object,
                cluster=cluster,
                machine_set=machine_set,
                deployment=deployment,
                health=self._deps.workload.health(cluster.key),
                grace_period=self._grace_period,
                features=self._deps.features,
            ),
            original,
        )
        await self._phases(run)
        if run.seen.deleting:
            await self._delete(run)
        else:
            await self._update_in_place(run)
        await self._conclude(run)
        if run.errors:
            raise failure(run.errors)
        return Result.soonest(*run.votes)

    async def _owners(self, machine: Machine) -> tuple[MachineSet | None, MachineDeployment | None]:
        """The MachineSet and MachineDeployment that the Machine comes from; one that is named must be there."""
        namespace = machine.metadata.namespace
        ref = next((o for o in machine.metadata.owner_references if o.kind == "MachineSet" and _is_core(o)), None)
        if ref is None:
            return None, None
        machine_set = await self._client.get(MachineSet, ObjectKey(namespace, ref.name))
        name = machine_set.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL)
        if not name:
            return machine_set, None
        return machine_set, await self._client.get(MachineDeployment, ObjectKey(namespace, name))

    # ------------------------------------------------------------------------------------------------------- phases

    async def _phases(self, run: Pass) -> None:
        spec = run.machine.spec
        run.become(plan.with_owner_and_label(run.seen))
        if spec.bootstrap.config_ref is not None:
            config = await self._adopt(run.seen, spec.bootstrap.config_ref)
            run.seen = replace(run.seen, bootstrap=config, machine=plan.with_failure(run.machine, config))
        run.advance(plan.BOOTSTRAP, _cause(run.seen.bootstrap))
        infra = await self._adopt(run.seen, spec.infrastructure_ref)
        run.seen = replace(run.seen, infrastructure=infra, machine=plan.with_failure(run.machine, infra))
        run.advance(plan.INFRASTRUCTURE, _cause(infra))
        had_node = run.machine.status.node_ref is not None
        self._wakes.learn(run.machine, run.seen.cluster.key)
        found = await remote.observe_node(self._deps.workload, self._wakes, run.seen, self._sync)
        run.seen = replace(run.seen, node=found)
        run.advance(plan.NODE, _cause(found))
        if run.machine.status.node_ref is not None and not had_node:
            self._wakes.learn(run.machine, run.seen.cluster.key)
            self._record(run, "Normal", "SuccessfulSetNodeRef", run.machine.status.node_ref.name)
        try:
            run.become(with_certificates_expiry(run.seen))
        except BadExpiry as error:
            run.errors.append(error)

    async def _adopt(self, s: MachineSnapshot, reference: Reference) -> Lookup:
        """Read a provider's object, after making sure that the Machine controls it and that its changes wake us."""
        key = ObjectKey(s.machine.metadata.namespace, reference.name)
        awaited = Awaited(reference.api_group, reference.kind, key)
        self._wakes.expect(s.machine.key, awaited)
        try:
            contract = await contract_of(self._client, reference.api_group, reference.kind)
            await self._deps.dynamic.ensure(contract.gvk, self._wakes.expecting)
            obj = await self._client.get(contract.gvk, key)
            patch = owned_metadata(obj, s.machine, s.cluster)
            if patch is not None:
                obj = await self._client.patch(obj.gvk, obj.key, patch)
        except NotFound:
            return Missing()
        except Conflict:
            raise  # what was read is out of date: the next pass knows better
        except (ApiError, ContractUnknown, AlreadyControlled) as error:
            return Unreadable(error)
        self._wakes.met(s.machine.key, awaited)
        return Found(obj, contract.contract)

    # ----------------------------------------------------------------------------------------------------- deletion

    async def _delete(self, run: Pass) -> None:
        """Work on the deletion until something must be waited for."""
        run.seen = replace(run.seen, deletion=deletion.STARTED)
        allowed = await self._node_handling(run)
        if allowed is None:
            run.seen = replace(run.seen, deletion=deletion.INTERNAL_ERROR)
        elif not allowed or await self._release_node(run):
            await self._remove(run, handles_node=allowed)

    async def _node_handling(self, run: Pass) -> bool | None:
        """Whether the Node may be touched; None if that could not be found out."""
        cluster, machine = run.seen.cluster, run.machine
        deleting = cluster.metadata.deletion_timestamp is not None
        if not deleting and machine.status.node_ref is None and (provider_id := _provider_id(run.seen)):
            name = await remote.find_node_name(self._deps.workload, cluster.key, provider_id)
            if name:
                run.become(with_status(machine, node_ref=MachineNodeReference(name=name)))
        handling = deletion.HandlingSnapshot(cluster_deleting=deleting, node_known=run.machine.status.node_ref is not None)
        if not deleting and handling.node_known:
            handling = replace(
                handling, control_plane=await self._control_plane(cluster), control_planes_left=await self._control_planes_left(cluster)
            )
        decision = deletion.NODE_HANDLING.decide(handling)
        run.rows[decision.table] = decision.row
        if decision.error:
            run.fail(decision.error, _cause(handling.control_plane))
            return None
        return decision.outcome is not None and decision.outcome.status == "Allowed"

    async def _control_plane(self, cluster: Cluster) -> Lookup:
        if cluster.spec.control_plane_ref is None:
            return NotReferenced()
        try:
            external = await get_external(self._client, cluster.spec.control_plane_ref, cluster.metadata.namespace)
        except NotFound:
            return Missing()
        except (ApiError, ContractUnknown) as error:
            return Unreadable(error)
        return Found(external.object, external.contract)

    async def _control_planes_left(self, cluster: Cluster) -> int | Exception:
        try:
            machines = await self._client.list(
                Machine, namespace=cluster.metadata.namespace, labels={CLUSTER_NAME_LABEL: cluster.metadata.name}
            )
        except ApiError as error:
            return error
        return sum(CONTROL_PLANE_LABEL in m.metadata.labels and m.metadata.deletion_timestamp is None for m in machines)

    async def _release_node(self, run: Pass) -> bool:
        """Take the Node out of service; False if something must be waited for."""
        machine, now = run.machine, run.seen.now
        rest = self._wakes.resting(machine.key, now, _sight(run))
        still = {"draining": deletion.drain_is_allowed, "volumes-attached": deletion.volume_wait_is_allowed}
        state = release.ReleaseSnapshot(machine=machine, now=now, resting=rest is not None and still[rest.stage](machine, now))
        while True:
            decision = release.RELEASE_NODE.decide(state)
            match decision.intents:
                case (release.Action.DRAIN,):
                    state = replace(state, drain=await self._drain(run), machine=run.machine)
                case (release.Action.LOOK_AT_VOLUMES,):
                    state = replace(state, volumes=await self._look_at_volumes(run), machine=run.machine)
                case _:
                    break
        run.rows[decision.table] = decision.row
        if decision.row == "pre-drain-hooks":
            run.mark(v1beta1.false("PreDrainDeleteHookSucceeded", "WaitingExternalHook", "Info"))
        else:
            run.mark(v1beta1.true("PreDrainDeleteHookSucceeded"))
        if decision.row == "draining":
            run.mark(v1beta1.false("DrainingSucceeded", "Draining", "Info", decision.outcome.message if decision.outcome else ""))
        if decision.requeue is not None:
            run.votes.append(self._wakes.rest(machine.key, decision.row, now, decision.requeue, _sight(run)))
        elif rest is not None and decision.row == "resting":
            run.votes.append(rest.until - now)
        if decision.row == "released":
            return True
        # where deletion rests, what was said of it stands
        run.seen = replace(run.seen, deletion=_stage(decision))
        return False

    async def _drain(self, run: Pass) -> deletion.Failed | drain.DrainProgress | deletion.Done:
        """Cordon the Node and evict what must go now."""
        cluster, node_name = run.seen.cluster, _node_name(run)
        await self._start_drain(run)
        self._wakes.learn(run.machine, cluster.key)
        self._wakes.begin_look(run.machine.key)
        try:
            client = await self._deps.workload.client(cluster.key)
            await self._deps.workload.watch(cluster.key, "machine-pods", Pod, self._wakes.pod_changed(cluster.key))
            progress = await remote.drain_node(self._client, client, self._clock, cluster, run.machine, node_name)
        except (ApiError, drain.DrainError) as error:
            run.mark(v1beta1.false("DrainingSucceeded", "DrainingFailed", "Warning", str(error)))
            self._record(run, "Warning", "FailedDrainNode", f'error draining Machine\'s node "{node_name}": {error}')
            run.errors.append(error)
            return deletion.Failed(error)
        if progress is not None and not progress.completed:
            return progress
        if not v1beta1.is_true(v1beta1_conditions(run.machine), "DrainingSucceeded"):
            self._record(run, "Normal", "SuccessfulDrainNode", f'success draining Machine\'s node "{node_name}"')
        run.mark(v1beta1.true("DrainingSucceeded"))
        return deletion.Done()

    async def _start_drain(self, run: Pass) -> None:
        """Note when the drain starts, before anything is done: no crash shall start the clock anew."""
        machine, status = run.machine, run.machine.status.deletion or MachineDeletionStatus()
        if status.node_drain_start_time is not None:
            return
        now = run.seen.now.replace(microsecond=0)
        run.become(with_status(machine, deletion=replace_struct(status, node_drain_start_time=now)))
        if v1beta1.get(v1beta1_conditions(machine), "DrainingSucceeded") is None:
            run.mark(v1beta1.false("DrainingSucceeded", "Draining", "Info", "Draining the node before deletion"))
        sent = with_v1beta1_ready(run.machine, run.seen.now)
        answer = await self._patch(run, sent)
        if answer is not None:
            # what is written at the end is a change of what was written now
            run.original = Original(sent, msgspec.json.encode(answer.json))

    async def _look_at_volumes(self, run: Pass) -> deletion.Failed | volumes.VolumeWait:
        """Find out which volumes are attached to the Node."""
        cluster, machine, node_name = run.seen.cluster, run.machine, _node_name(run)
        status = machine.status.deletion or MachineDeletionStatus()
        if status.wait_for_node_volume_detach_start_time is None:
            now = run.seen.now.replace(microsecond=0)
            run.become(with_status(machine, deletion=replace_struct(status, wait_for_node_volume_detach_start_time=now)))
        if v1beta1.get(v1beta1_conditions(machine), "VolumeDetachSucceeded") is None:
            text = "Waiting for node volumes to be detached"
            run.mark(v1beta1.false("VolumeDetachSucceeded", "WaitingForVolumeDetach", "Info", text))
        self._wakes.begin_look(machine.key)
        consider = self._deps.features.get(CONSIDER_ATTACHMENTS, True)
        try:
            client = await self._deps.workload.client(cluster.key)
            if consider:
                notify = self._wakes.attachment_changed(cluster.key)
                await self._deps.workload.watch(cluster.key, "machine-volumes", VolumeAttachment, notify)
            wait = await remote.observe_volumes(
                self._client, client, cluster, run.machine, node_name, consider_attachments=consider, now=run.seen.now
            )
        except (ApiError, drain.DrainError, volumes.VolumeError) as error:
            text = f'error waiting for node volumes detaching, Machine\'s node "{node_name}": {error}'
            self._record(run, "Warning", "FailedWaitForVolumeDetach", text)
            run.errors.append(error)
            return deletion.Failed(error)
        if wait.over:
            if not v1beta1.is_true(v1beta1_conditions(run.machine), "VolumeDetachSucceeded"):
                text = f'success waiting for node volumes detaching Machine\'s node "{node_name}"'
                self._record(run, "Normal", "NodeVolumesDetached", text)
            run.mark(v1beta1.true("VolumeDetachSucceeded"))
        return wait

    async def _remove(self, run: Pass, *, handles_node: bool) -> None:
        """Take the machine away, as far as it goes."""
        state = removal.RemovalSnapshot(
            machine=run.machine,
            now=self._clock.now(),
            handles_node=handles_node,
            infrastructure=removal.remains(run.seen.infrastructure),
            bootstrap=removal.remains(run.seen.bootstrap),
        )
        while True:
            decision = removal.REMOVE.decide(state)
            match decision.intents:
                case (removal.Action.DELETE_INFRASTRUCTURE,):
                    state = replace(state, infrastructure=await self._delete_object(run, run.seen.infrastructure))
                case (removal.Action.DELETE_BOOTSTRAP,):
                    state = replace(state, bootstrap=await self._delete_object(run, run.seen.bootstrap))
                case (removal.Action.DELETE_NODE,):
                    state = replace(state, node=await self._delete_node(run), now=self._clock.now())
                case _:
                    break
        run.rows[decision.table] = decision.row
        if decision.row == "pre-terminate-hooks":
            run.mark(v1beta1.false("PreTerminateDeleteHookSucceeded", "WaitingExternalHook", "Info"))
        else:
            run.mark(v1beta1.true("PreTerminateDeleteHookSucceeded"))
            if state.infrastructure is removal.Remains.GONE:
                run.mark(v1beta1.false("InfrastructureReady", "Deleted", "Info"))
                if state.bootstrap is removal.Remains.GONE:
                    run.mark(v1beta1.false("BootstrapReady", "Deleted", "Info"))
        if isinstance(state.node, deletion.Failed):
            run.mark(v1beta1.false("NodeHealthy", "DeletionFailed", "Warning"))
            self._record(run, "Warning", "FailedDeleteNode", f"error deleting Machine's node: {state.node.error}")
            if decision.row == "node-undeletable":
                run.errors.append(state.node.error)
        run.seen = replace(run.seen, deletion=_stage(decision))
        if decision.row == "completed":
            run.become(without_finalizer(run.machine, MACHINE_FINALIZER))

    async def _delete_object(self, run: Pass, lookup: Lookup) -> removal.Remains:
        """Ask for the deletion of a provider's object."""
        if isinstance(lookup, Found):
            obj = lookup.object
            try:
                await self._client.delete(obj.gvk, obj.key, uid=obj.metadata.uid)
            except NotFound:
                pass
            except ApiError as error:
                run.errors.append(error)
                return removal.Remains.REFUSED
        return removal.Remains.GOING

    async def _delete_node(self, run: Pass) -> deletion.Failed | deletion.Done:
        """Delete the Node."""
        error = await remote.delete_node(self._deps.workload, self._clock, run.seen.cluster.key, _node_name(run))
        return deletion.Done() if error is None else deletion.Failed(error)

    # ------------------------------------------------------------------------------------------------------ updates

    async def _update_in_place(self, run: Pass) -> None:
        decision = inplace.IN_PLACE_UPDATE.decide(run.seen)
        run.rows[decision.table] = decision.row
        match decision.outcome and decision.outcome.status:
            case "CleanUp":
                await self._end_update(run)
            case "Fail":
                run.seen = replace(run.seen, updating=inplace.INFRA_GONE)
                run.fail(f"in-place update of Machine {run.machine.key}: its infrastructure machine does not exist")
            case "Call":
                await self._call_extension(run)

    async def _call_extension(self, run: Pass) -> None:
        infra, config = run.seen.infrastructure, run.seen.bootstrap
        if len(self._update_extensions) != 1 or not isinstance(infra, Found):
            run.seen = replace(run.seen, updating=inplace.HOOK_FAILED)
            run.fail(f"in-place update: exactly one extension must handle UpdateMachine, not {len(self._update_extensions)}")
            return
        try:
            answer = await self._update_extensions[0](run.machine, infra.object, config.object if isinstance(config, Found) else None)
        except Exception as error:
            run.seen = replace(run.seen, updating=inplace.HOOK_FAILED)
            run.fail("in-place update: the extension failed", error)
            return
        if answer.retry_after:
            run.votes.append(answer.retry_after)
            run.seen = replace(run.seen, updating=inplace.in_progress(answer))
            return
        await self._end_update(run)

    async def _end_update(self, run: Pass) -> None:
        """Take the marks away, the Machine's last: it is what a later pass would go by."""
        try:
            for lookup in (run.seen.infrastructure, run.seen.bootstrap):
                if isinstance(lookup, Found) and UPDATE_IN_PROGRESS_ANNOTATION in lookup.object.metadata.annotations:
                    patch = {"metadata": {"annotations": {UPDATE_IN_PROGRESS_ANNOTATION: None}}}
                    await self._client.patch(lookup.object.gvk, lookup.object.key, patch)
        except ApiError as error:
            run.errors.append(error)
            return
        run.become(inplace.without_mark(run.machine))

    # -------------------------------------------------------------------------------------------------------- status

    async def _conclude(self, run: Pass) -> None:
        if run.seen.deleting and not run.machine.metadata.finalizers:
            # nobody will read a status of what is gone with this write
            self._wakes.forget(run.machine.key)
            await self._patch(run, without_finalizer(run.original.object, MACHINE_FINALIZER))
            return
        run.seen, decisions, vote = conclude(run.seen)
        run.rows.update({d.table: d.row for d in decisions})
        if vote is not None:
            run.votes.append(vote)
        machine = with_v1beta1_ready(run.machine, run.seen.now)
        if not run.errors and machine.status.observed_generation != machine.metadata.generation:
            machine = with_status(machine, observed_generation=machine.metadata.generation)
        self._deps.trace(machine.key, run.rows)
        await self._patch(run, machine)

    async def _patch(self, run: Pass, machine: Machine) -> Unstructured | None:
        return await self._patcher.patch(run.original, machine, owned_conditions=OWNED, owned_v1beta1_conditions=OWNED_V1BETA1)

    def _record(self, run: Pass, type: str, reason: str, message: str) -> None:
        self._deps.events.record(run.original.object, type, reason, message)


def failure(errors: Sequence[Exception]) -> MachineError:
    """All that failed in a pass, as one error; it is not in a hurry if only the connection to the workload cluster is missing."""
    unconnected = all(isinstance(e.__cause__ or e, NotConnected) for e in errors)
    text = "; ".join(str(e) or type(e).__name__ for e in errors)
    error = MachineError(text, retry_after=CONNECTION_RETRY if unconnected else None)
    error.is_expected = unconnected
    error.__cause__ = errors[0] if len(errors) == 1 else ExceptionGroup("several things failed", list(errors))
    return error


def _stage(decision: Decision) -> Stage | None:
    """How far deletion is, as a table has it."""
    return None if decision.outcome is None else Stage(decision.outcome.reason, decision.outcome.message)


def _node_name(run: Pass) -> str:
    return run.machine.status.node_ref.name if run.machine.status.node_ref else ""


def _sight(run: Pass) -> tuple[str, bool, frozenset[str]]:
    """What of a Node a drain and a wait for volumes go by, as far as it is known without asking the workload cluster again."""
    found = run.seen.node
    if not isinstance(found, NodeFound):
        return _node_name(run), False, frozenset()
    return _node_name(run), is_unreachable(found.node), frozenset(v.name for v in found.node.status.volumes_attached)


def _provider_id(s: MachineSnapshot) -> str:
    """The providerID that the Machine knows, else the one that its infrastructure machine reports."""
    if s.machine.spec.provider_id or not isinstance(s.infrastructure, Found):
        return s.machine.spec.provider_id
    try:
        return text_at(s.infrastructure.object, "spec", "providerID")
    except WrongType:
        return ""


def _cause(lookup: object) -> Exception | None:
    error = getattr(lookup, "error", None) or getattr(lookup, "sync_error", None)
    return error if isinstance(error, Exception) else None


def _is_core(owner: OwnerReference) -> bool:
    return owner.api_version.partition("/")[0] == "cluster.x-k8s.io"


def _patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(t) for t in texts)
