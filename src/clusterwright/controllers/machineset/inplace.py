"""In-place updates: give Machines to the MachineSet that updates them, and start the update of received ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from clusterwright.api.codec import convert
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import MACHINE_TEMPLATE_HASH_LABEL
from clusterwright.controllers.applying import take_over
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.machineset import desired, moves
from clusterwright.controllers.machineset.desired import FIELD_MANAGER, METADATA_MANAGER, Maker
from clusterwright.controllers.machineset.machine_writer import MachineWriter, Run
from clusterwright.controllers.machineset.moves import Fate
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError


class InPlace:
    """The MachineSet's part in in-place updates."""

    def __init__(self, deps: Dependencies, writer: MachineWriter) -> None:
        self._deps = deps
        self._writer = writer

    async def move(self, run: Run, ordered: Sequence[Machine]) -> None:
        """Give the surplus to the MachineSet that updates it in place. A failure does not stop the others."""
        seen, client = run.done, self._deps.client
        key = ObjectKey(run.object.metadata.namespace, seen.moves_to)
        try:
            target = await client.get(MachineSet, key)
        except ApiError as error:
            run.fail(f"failed to get MachineSet {key}, which is the target for the move operation: {error}", error)
            return
        name = run.object.metadata.name
        if not moves.accepts_from(target, name):
            run.fail(f"MachineSet {name} is set to move replicas to {key.name}, but {key.name} does not accept Machines from it")
            return
        for machine, fate in moves.fates(ordered, seen.surplus):
            match fate:
                case Fate.DELETED:
                    await self._writer.delete(run, [machine])
                case Fate.MOVED:
                    if MACHINE_TEMPLATE_HASH_LABEL not in target.metadata.labels:
                        run.fail(f"MachineSet {key.name} does not have the {MACHINE_TEMPLATE_HASH_LABEL} label")
                        return
                    try:
                        answer = await client.patch(Machine, machine.key, moves.move_patch(machine, run.object, target))
                        self._writer.changed(run, convert(answer.json, Machine))
                    except ApiError as error:
                        run.fail(f"failed to move Machine {machine.key} to MachineSet {key.name}: {error}", error)
                case Fate.GONE | Fate.STAYS:
                    pass
                case never:
                    assert_never(never)

    async def trigger(self, run: Run, maker: Maker) -> None:
        """Start the in-place update of received Machines; a failure does not stop the others."""
        for machine in run.done.machines or ():
            if not moves.is_to_be_triggered(machine, run.object):
                continue
            try:
                await self._trigger_update(run, maker, machine)
            except (ApiError, ContractUnknown) as error:
                run.fail(f"failed to complete triggering in-place update for Machine {machine.key}: {error}", error)

    async def give_up(self, run: Run) -> None:
        """Replace a Machine that waits for an in-place update while the feature gate is off."""
        if run.seen.features.get("InPlaceUpdates"):
            return
        machine, later = moves.abandoned(run.done.machines or (), run.seen.now)
        run.vote(later)
        if machine is not None:
            await self._writer.delete(run, [machine])

    async def _trigger_update(self, run: Run, maker: Maker, machine: Machine) -> None:
        """Start the update: every step may be repeated; the hook is set last, so that the Machine controller sees the complete update."""
        client, namespace = self._deps.client, machine.metadata.namespace
        parts = [(machine.spec.infrastructure_ref, maker.infrastructure_ref)]
        if machine.spec.bootstrap.config_ref is not None and machine.spec.bootstrap.config_ref.name and maker.config_ref is not None:
            parts.append((machine.spec.bootstrap.config_ref, maker.config_ref))
        pairs = [
            (
                (await get_external(client, reference, namespace)).object,
                (await get_external(client, desired.typed_reference(template), namespace)).object,
                template,
            )
            for reference, template in parts
        ]
        original = await client.read(Machine, machine.key)
        if original is None:
            return
        for obj, template, reference in pairs:
            await take_over(client, await client.live.get(obj.gvk, obj.key), FIELD_MANAGER, METADATA_MANAGER)
            await client.apply(desired.in_place_intent(obj, template, reference), field_manager=FIELD_MANAGER)
        intent = desired.updated_machine(maker, msgspec.json.decode(original.raw), in_place=True)
        await client.apply(intent, field_manager=FIELD_MANAGER)
        answer = await client.patch(Machine, machine.key, moves.trigger_patch(machine))
        self._writer.changed(run, convert(answer.json, Machine))
        run.record("Normal", "SuccessfulStartInPlaceUpdate", f"Machine {machine.metadata.name} starting in-place update")
