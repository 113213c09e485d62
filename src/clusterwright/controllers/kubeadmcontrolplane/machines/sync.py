"""Keep existing Machines, and their dependent objects, in sync with the template."""

from __future__ import annotations

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.core.shared import MachineDeletionSpec
from clusterwright.api.meta import Unstructured
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run
from clusterwright.controllers.kubeadmcontrolplane.machines import desired
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.names import FIELD_MANAGER, METADATA_MANAGER, SOON
from clusterwright.runtime.errors import ApiError, NotFound

_NODE_DELETION_DEFAULT = 10


async def sync_machines(writer: MachineWriter, run: Run) -> bool:
    """Sync metadata, timeouts and gates of every Machine, and metadata of its dependent objects, with the template.

    Return False to end the pass, after managedFields were repaired (retry soon) or a Machine was gone. Raises PassFailed.
    """
    repaired, uids = False, set[str]()
    try:
        for machine in run.done.owned:
            uids |= {machine.uid, *(o.metadata.uid for o in (machine.infrastructure, machine.config) if o is not None)}
            if machine.deleting:
                await _follow_timeouts(writer, run, machine)
            else:
                repaired |= await _sync_machine(writer, run, machine)
    except NotFound:
        return False
    except ApiError as error:
        raise PassFailed(f"failed to sync Machines: {error}") from error
    writer.applier.keep_only(run.done.key, uids)
    if repaired:
        run.vote(SOON)
    return not repaired


async def _sync_machine(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> bool:
    """Sync one Machine; return whether managedFields had to be repaired."""
    key, owner = run.done.key, run.done.owner
    applied = await writer.applier.ensure(key, machine.stored, desired.updated_machine(owner, machine.stored), FIELD_MANAGER)
    repaired = applied.repaired
    if applied.object is not None:
        writer.replace_machine(run, machine.name, applied.object)
    changes: dict[str, Unstructured] = {}
    for part, obj in (("infrastructure", machine.infrastructure), ("config", machine.config)):
        if obj is None:
            continue
        applied = await writer.applier.ensure(
            key, obj, desired.metadata_intent(owner, obj), METADATA_MANAGER, previous_manager=FIELD_MANAGER
        )
        repaired |= applied.repaired
        if applied.object is not None:
            changes[part] = applied.object
    if changes:
        known = run.done.machine(machine.name)
        infrastructure, config = changes.get("infrastructure", known.infrastructure), changes.get("config", known.config)
        run.done = run.done.with_machine(replace(known, infrastructure=infrastructure, config=config))
    return repaired


async def _follow_timeouts(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> None:
    """Sync only timeouts and taints of a Machine that is being deleted."""
    original = machine.original
    assert original is not None
    template = run.object.spec.machine_template.spec
    wanted = template.deletion or MachineDeletionSpec()
    seconds = wanted.node_deletion_timeout_seconds
    deletion = replace(
        original.object.spec.deletion or MachineDeletionSpec(),
        node_drain_timeout_seconds=wanted.node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds=wanted.node_volume_detach_timeout_seconds,
        node_deletion_timeout_seconds=_NODE_DELETION_DEFAULT if seconds is None else seconds,
    )
    after: Machine = replace(original.object, spec=replace(original.object.spec, deletion=deletion, taints=template.taints))
    answer = await writer.patcher.patch(original, after)
    if answer is not None:
        writer.replace_machine(run, machine.name, answer)
