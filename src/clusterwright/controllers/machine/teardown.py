"""Takes a Machine down: what the tables of `deletion`, `release` and `removal` want done, done.

Nothing is decided here; what an action brought is given back to the table that asked for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
from msgspec.structs import replace as replace_struct

from clusterwright.api.core import Cluster, Machine, MachineDeletionStatus, MachineNodeReference
from clusterwright.api.kubernetes import Pod, VolumeAttachment
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_FINALIZER
from clusterwright.conditions import v1beta1
from clusterwright.controllers.external import ContractUnknown, WrongType, get_external, text_at
from clusterwright.controllers.machine import deletion, drain, release, remote, removal, volumes
from clusterwright.controllers.machine.node import is_unreachable
from clusterwright.controllers.machine.snapshot import Found, Lookup, MachineSnapshot, Missing, NodeFound, NotReferenced, Stage, Unreadable
from clusterwright.controllers.machine.status import v1beta1_conditions, with_status, with_v1beta1_ready
from clusterwright.controllers.machine.wakes import Wakes
from clusterwright.controllers.machine.work import Pass, cause_of
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.tables import Decision

CONSIDER_ATTACHMENTS = "MachineWaitForVolumeDetachConsiderVolumeAttachments"


class Teardown:
    """Works on the deletion of Machines. `patch` writes a Machine in the middle of a pass."""

    def __init__(self, deps: Dependencies, wakes: Wakes, patch: Callable[[Pass, Machine], Awaitable[Unstructured | None]]) -> None:
        self._deps = deps
        self._client = deps.client
        self._clock = deps.clock
        self._wakes = wakes
        self._patch = patch

    async def advance(self, run: Pass) -> None:
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
            run.fail(decision.error, cause_of(handling.control_plane))
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
            self._wakes.needs_watch(run.machine.key, cluster.key, "machine-pods", Pod)
            await self._deps.workload.watch(cluster.key, "machine-pods", Pod, self._wakes.pod_changed(cluster.key))
            progress = await remote.drain_node(self._client, client, self._clock, cluster, run.machine, node_name)
        except (ApiError, drain.DrainError) as error:
            run.mark(v1beta1.false("DrainingSucceeded", "DrainingFailed", "Warning", str(error)))
            run.record(self._deps.events, "Warning", "FailedDrainNode", f'error draining Machine\'s node "{node_name}": {error}')
            run.errors.append(error)
            return deletion.Failed(error)
        if progress is not None and not progress.completed:
            return progress
        if not v1beta1.is_true(v1beta1_conditions(run.machine), "DrainingSucceeded"):
            run.record(self._deps.events, "Normal", "SuccessfulDrainNode", f'success draining Machine\'s node "{node_name}"')
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
                self._wakes.needs_watch(machine.key, cluster.key, "machine-volumes", VolumeAttachment)
                notify = self._wakes.attachment_changed(cluster.key)
                await self._deps.workload.watch(cluster.key, "machine-volumes", VolumeAttachment, notify)
            wait = await remote.observe_volumes(
                self._client, client, cluster, run.machine, node_name, consider_attachments=consider, now=run.seen.now
            )
        except (ApiError, drain.DrainError, volumes.VolumeError) as error:
            text = f'error waiting for node volumes detaching, Machine\'s node "{node_name}": {error}'
            run.record(self._deps.events, "Warning", "FailedWaitForVolumeDetach", text)
            run.errors.append(error)
            return deletion.Failed(error)
        if wait.over:
            if not v1beta1.is_true(v1beta1_conditions(run.machine), "VolumeDetachSucceeded"):
                text = f'success waiting for node volumes detaching Machine\'s node "{node_name}"'
                run.record(self._deps.events, "Normal", "NodeVolumesDetached", text)
            run.mark(v1beta1.true("VolumeDetachSucceeded"))
        return wait

    async def _remove(self, run: Pass, *, handles_node: bool) -> None:
        """Take the machine away, as far as it goes."""
        self._wakes.end_watches(run.machine.key)
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
            run.record(self._deps.events, "Warning", "FailedDeleteNode", f"error deleting Machine's node: {state.node.error}")
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
        error = await remote.delete_node(self._deps.workload, self._clock, run.seen.cluster.key, run.machine, _node_name(run))
        return deletion.Done() if error is None else deletion.Failed(error)


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
