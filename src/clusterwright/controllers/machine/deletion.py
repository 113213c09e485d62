"""Delete a Machine's host: carry out what the tables of `node_access`, `node_shutdown` and `host_deletion` decide.

Nothing is decided here; the outcome of an action goes back to the table that decided it.
"""

from __future__ import annotations

from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineDeletionStatus, MachineNodeReference
from clusterwright.api.kubernetes import Pod, VolumeAttachment
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_FINALIZER
from clusterwright.conditions import v1beta1
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.kit.conditions import v1beta1_conditions
from clusterwright.controllers.kit.contract import read_or_none
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced, Unreadable
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.machine import drain, host_deletion, node_access, node_shutdown, remote, volumes
from clusterwright.controllers.machine.host_deletion import Removal
from clusterwright.controllers.machine.infrastructure import reported_provider_id
from clusterwright.controllers.machine.node import is_unreachable
from clusterwright.controllers.machine.node_access import Access
from clusterwright.controllers.machine.node_shutdown import Shutdown
from clusterwright.controllers.machine.node_watches import NodeWatches
from clusterwright.controllers.machine.snapshot import ClusterFacts, MachineDone, MachineSnapshot, NodeFound, Stage
from clusterwright.controllers.machine.status import with_status, with_v1beta1_ready
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.tables import Decision

CONSIDER_ATTACHMENTS = "MachineWaitForVolumeDetachConsiderVolumeAttachments"

MachinePass = Pass[Machine, MachineSnapshot, MachineDone]


class Deletion:
    """Deletes Machines."""

    def __init__(self, deps: Dependencies, watches: NodeWatches) -> None:
        self._deps = deps
        self._client = deps.client
        self._clock = deps.clock
        self._watches = watches

    async def advance(self, run: MachinePass) -> None:
        """Continue the deletion until something must be waited for."""
        run.done = replace(run.done, deletion=node_access.STARTED)
        match await self._node_access(run):
            case None:
                run.done = replace(run.done, deletion=node_access.INTERNAL_ERROR)
            case Access.DENIED:
                await self._delete_host(run, handles_node=False)
            case Access.ALLOWED:
                if await self._shut_node_down(run):
                    await self._delete_host(run, handles_node=True)
            case never:
                assert_never(never)

    async def _node_access(self, run: MachinePass) -> Access | None:
        """Return whether the Node may be touched; None if that is unknown."""
        cluster, machine = run.seen.cluster, run.object
        deleting = cluster.deleting
        if not deleting and machine.status.node_ref is None and (provider_id := _provider_id(run.done)):
            name = await remote.find_node_name(self._deps.workload, cluster.key, provider_id)
            if name:
                run.become(with_status(machine, node_ref=MachineNodeReference(name=name)))
        handling = node_access.HandlingSnapshot(cluster_deleting=deleting, node_known=run.object.status.node_ref is not None)
        if not deleting and handling.node_known:
            handling = replace(
                handling, control_plane=await self._control_plane(cluster), control_planes_left=await self._control_planes_left(cluster)
            )
        cause = handling.control_plane.cause if isinstance(handling.control_plane, Unreadable) else None
        return run.decide_on(node_access.NODE_HANDLING, handling, cause).chosen(Access)

    async def _control_plane(self, cluster: ClusterFacts) -> Lookup:
        if cluster.control_plane_ref is None:
            return NotReferenced()
        try:
            external = await get_external(self._client, cluster.control_plane_ref, cluster.namespace)
        except NotFound:
            return Missing()
        except (ApiError, ContractUnknown) as error:
            return Unreadable(str(error), error)
        return Found(external.object, external.contract)

    async def _control_planes_left(self, cluster: ClusterFacts) -> int | Exception:
        try:
            machines = await self._client.list(Machine, namespace=cluster.namespace, labels={CLUSTER_NAME_LABEL: cluster.name})
        except ApiError as error:
            return error
        return sum(CONTROL_PLANE_LABEL in m.metadata.labels and m.metadata.deletion_timestamp is None for m in machines)

    async def _shut_node_down(self, run: MachinePass) -> bool:
        """Take the Node out of service; return False if something must be waited for."""
        key, now = run.object.key, run.seen.now
        rest = self._watches.resting(key, now, _sight(run))
        resting = rest is not None and _may_rest(rest.stage, run)
        state = node_shutdown.ShutdownSnapshot(machine=run.object, host=run.seen.infrastructure, now=now, resting=resting)
        while True:
            decision = node_shutdown.NODE_SHUTDOWN.decide(state)
            run.rows[decision.table] = decision.row
            act = decision.chosen(Shutdown)
            match act:
                case Shutdown.DRAIN:
                    state = replace(state, drain=await self._drain(run), machine=run.object)
                    continue
                case Shutdown.LOOK_AT_VOLUMES:
                    state = replace(state, volumes=await self._look_at_volumes(run), machine=run.object)
                    continue
                case Shutdown.AWAIT_PODS:
                    run.mark(v1beta1.false("DrainingSucceeded", "Draining", "Info", decision.outcome.message if decision.outcome else ""))
                case Shutdown.REST:
                    run.vote(rest.until - now if rest is not None else None)
                case Shutdown.AWAIT_HOOKS:
                    _note_start(run, "wait_for_pre_drain_hook_start_time")
                case Shutdown.AWAIT_VOLUMES | Shutdown.TRY_AGAIN | Shutdown.DONE | None:
                    pass
                case never:
                    assert_never(never)
            hook = "PreDrainDeleteHookSucceeded"
            waits = act is Shutdown.AWAIT_HOOKS
            run.mark(v1beta1.false(hook, "WaitingExternalHook", "Info") if waits else v1beta1.true(hook))
            if act is Shutdown.DONE:
                return True
            if decision.requeue is not None and act is not None:
                run.vote(self._watches.rest(key, act, now, decision.requeue, _sight(run)))
            # where deletion rests, what was said of it stands
            run.done = replace(run.done, deletion=_stage(decision))
            return False

    async def _drain(self, run: MachinePass) -> node_access.Failed | drain.DrainProgress | node_access.Done:
        """Cordon the Node and evict the Pods whose turn it is."""
        cluster, node_name = run.seen.cluster, _node_name(run)
        await self._start_drain(run)
        self._watches.learn(run.object, cluster.key)
        self._watches.begin_look(run.object.key)
        try:
            client = await self._deps.workload.client(cluster.key)
            self._watches.needs_watch(run.object.key, cluster.key, "machine-pods", Pod)
            await self._deps.workload.watch(cluster.key, "machine-pods", Pod, self._watches.pod_changed(cluster.key))
            progress = await remote.drain_node(self._client, client, self._clock, cluster, run.object, node_name)
        except (ApiError, drain.DrainError) as error:
            run.mark(v1beta1.false("DrainingSucceeded", "DrainingFailed", "Warning", str(error)))
            run.record("Warning", "FailedDrainNode", f'error draining Machine\'s node "{node_name}": {error}')
            run.fail(error)
            return node_access.Failed(error)
        if progress is not None and not progress.completed:
            return progress
        if not v1beta1.is_true(v1beta1_conditions(run.object), "DrainingSucceeded"):
            run.record("Normal", "SuccessfulDrainNode", f'success draining Machine\'s node "{node_name}"')
        run.mark(v1beta1.true("DrainingSucceeded"))
        return node_access.Done()

    async def _start_drain(self, run: MachinePass) -> None:
        """Record the start of the drain before it begins, so that a crash does not restart its clock."""
        if not _note_start(run, "node_drain_start_time"):
            return
        if v1beta1.get(v1beta1_conditions(run.object), "DrainingSucceeded") is None:
            run.mark(v1beta1.false("DrainingSucceeded", "Draining", "Info", "Draining the node before deletion"))
        await run.save(with_v1beta1_ready(run.object, run.seen.now))

    async def _look_at_volumes(self, run: MachinePass) -> node_access.Failed | volumes.VolumeWait:
        """Read which volumes are attached to the Node."""
        cluster, machine, node_name = run.seen.cluster, run.object, _node_name(run)
        _note_start(run, "wait_for_node_volume_detach_start_time")
        if v1beta1.get(v1beta1_conditions(machine), "VolumeDetachSucceeded") is None:
            text = "Waiting for node volumes to be detached"
            run.mark(v1beta1.false("VolumeDetachSucceeded", "WaitingForVolumeDetach", "Info", text))
        self._watches.begin_look(machine.key)
        consider = self._deps.features.get(CONSIDER_ATTACHMENTS, True)
        try:
            client = await self._deps.workload.client(cluster.key)
            if consider:
                self._watches.needs_watch(machine.key, cluster.key, "machine-volumes", VolumeAttachment)
                notify = self._watches.attachment_changed(cluster.key)
                await self._deps.workload.watch(cluster.key, "machine-volumes", VolumeAttachment, notify)
            wait = await remote.observe_volumes(
                self._client, client, cluster, run.object, node_name, consider_attachments=consider, now=run.seen.now
            )
        except (ApiError, drain.DrainError, volumes.VolumeError) as error:
            text = f'error waiting for node volumes detaching, Machine\'s node "{node_name}": {error}'
            run.record("Warning", "FailedWaitForVolumeDetach", text)
            run.fail(error)
            return node_access.Failed(error)
        if wait.over:
            if not v1beta1.is_true(v1beta1_conditions(run.object), "VolumeDetachSucceeded"):
                text = f'success waiting for node volumes detaching Machine\'s node "{node_name}"'
                run.record("Normal", "NodeVolumesDetached", text)
            run.mark(v1beta1.true("VolumeDetachSucceeded"))
        return wait

    async def _delete_host(self, run: MachinePass, *, handles_node: bool) -> None:
        """Delete the host, as far as possible now."""
        self._watches.end_watches(run.object.key)
        state = host_deletion.HostSnapshot(
            machine=run.object,
            now=self._clock.now(),
            handles_node=handles_node,
            infrastructure=host_deletion.remains(run.seen.infrastructure),
            bootstrap=host_deletion.remains(run.seen.bootstrap),
        )
        while True:
            failed = state.node.error if isinstance(state.node, node_access.Failed) else None
            decision = run.decide_on(host_deletion.HOST_DELETION, state, failed)
            match decision.chosen(Removal):
                case Removal.DELETE_INFRASTRUCTURE:
                    state = replace(state, infrastructure=await self._delete_object(run, run.seen.infrastructure))
                    continue
                case Removal.DELETE_BOOTSTRAP:
                    state = replace(state, bootstrap=await self._delete_object(run, run.seen.bootstrap))
                    continue
                case Removal.DELETE_NODE:
                    state = replace(state, node=await self._delete_node(run), now=self._clock.now())
                    continue
                case Removal.AWAIT_HOOKS:
                    _note_start(run, "wait_for_pre_terminate_hook_start_time")
                    run.mark(v1beta1.false("PreTerminateDeleteHookSucceeded", "WaitingExternalHook", "Info"))
                case Removal.AWAIT_OBJECT | Removal.TRY_AGAIN | None:
                    _mark_what_is_gone(run, state)
                case Removal.REMOVE_FINALIZER:
                    _mark_what_is_gone(run, state)
                    run.become(without_finalizer(run.object, MACHINE_FINALIZER))
                case never:
                    assert_never(never)
            if failed is not None:
                run.mark(v1beta1.false("NodeHealthy", "DeletionFailed", "Warning"))
                run.record("Warning", "FailedDeleteNode", f"error deleting Machine's node: {failed}")
            run.done = replace(run.done, deletion=_stage(decision))
            return

    async def _delete_object(self, run: MachinePass, lookup: Lookup) -> host_deletion.Remains:
        """Request the deletion of a provider's object."""
        if isinstance(lookup, Found):
            obj = lookup.object
            try:
                await self._client.delete(obj.gvk, obj.key, uid=obj.metadata.uid)
            except NotFound:
                pass
            except ApiError as error:
                run.fail(error)
                return host_deletion.Remains.REFUSED
        return host_deletion.Remains.GOING

    async def _delete_node(self, run: MachinePass) -> node_access.Failed | node_access.Done:
        """Delete the Node."""
        error = await remote.delete_node(self._deps.workload, self._clock, run.seen.cluster.key, run.object, _node_name(run))
        return node_access.Done() if error is None else node_access.Failed(error)


def _note_start(run: MachinePass, field: str) -> bool:
    """Record when a part of the deletion began, unless recorded; return whether it begins now."""
    status = run.object.status.deletion or MachineDeletionStatus()
    if getattr(status, field) is not None:
        return False
    now = run.seen.now.replace(microsecond=0)
    run.become(with_status(run.object, deletion=replace(status, **{field: now})))
    return True


def _may_rest(stage: Shutdown, run: MachinePass) -> bool:
    """Return whether the deletion may keep waiting; a time limit may be over."""
    machine, now = run.object, run.seen.now
    if stage is Shutdown.AWAIT_PODS:
        return node_access.drain_is_allowed(machine, run.seen.infrastructure, now)
    return node_access.volume_wait_is_allowed(machine, run.seen.infrastructure, now)


def _mark_what_is_gone(run: MachinePass, state: host_deletion.HostSnapshot) -> None:
    run.mark(v1beta1.true("PreTerminateDeleteHookSucceeded"))
    if state.infrastructure is host_deletion.Remains.GONE:
        run.mark(v1beta1.false("InfrastructureReady", "Deleted", "Info"))
        if state.bootstrap is host_deletion.Remains.GONE:
            run.mark(v1beta1.false("BootstrapReady", "Deleted", "Info"))


def _stage(decision: Decision) -> Stage | None:
    """Return the stage of the deletion that a table decided."""
    return None if decision.outcome is None else Stage(decision.outcome.reason, decision.outcome.message)


def _node_name(run: MachinePass) -> str:
    return run.object.status.node_ref.name if run.object.status.node_ref else ""


def _sight(run: MachinePass) -> tuple[str, bool, frozenset[str]]:
    """Return the facts of the Node that drain and volume wait depend on, from caches only."""
    found = run.done.node
    if not isinstance(found, NodeFound):
        return _node_name(run), False, frozenset()
    return _node_name(run), is_unreachable(found.node), frozenset(v.name for v in found.node.status.volumes_attached)


def _provider_id(s: MachineSnapshot) -> str:
    """Return the Machine's providerID, else the one that its infrastructure machine reports."""
    return s.machine.spec.provider_id or read_or_none(s.infrastructure, reported_provider_id) or ""
