"""Keep existing Machines, and their dependent objects, in sync with the template."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from enum import Enum
from typing import Final

import msgspec

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.core.shared import MachineDeletionSpec
from clusterwright.api.meta import Unstructured
from clusterwright.controllers.applying import Applied, Applier
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.machineset import desired
from clusterwright.controllers.machineset.desired import FIELD_MANAGER, METADATA_MANAGER, Maker
from clusterwright.controllers.machineset.machine_writer import MachineWriter, Run
from clusterwright.controllers.owned_machines import is_deleting
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import ApiError

_SOON: Final = timedelta(seconds=1)


class Sync(Enum):
    """The progress of syncing Machines with the template."""

    DONE = "all are in sync"
    REPAIRED = "managedFields had to be repaired first"
    FAILED = "one could not be synced"


class Syncer:
    """Syncs the Machines of MachineSets."""

    def __init__(self, deps: Dependencies, writer: MachineWriter, applier: Applier) -> None:
        self._client = deps.client
        self._dynamic = deps.dynamic
        self._writer = writer
        self._applier = applier

    async def sync(self, run: Run, maker: Maker) -> Sync:
        """Apply the template to every Machine and its dependent objects. Unless that succeeds, no Machine is added or deleted."""
        key, repaired, uids, kept = run.object.key, False, set[str](), set[str]()
        basis = maker.digest()
        try:
            for machine in run.done.machines or ():
                await asyncio.sleep(0)  # there may be thousands of them, and none may need a request
                uids.add(machine.metadata.uid)
                if is_deleting(machine):
                    await self._sync_deleting(run, machine)
                    continue
                applied = await self._sync_machine(run, maker, machine, basis)
                if applied is None:
                    continue
                repaired |= applied.repaired
                kept.add(machine.metadata.name)
                async for neighbour in self._neighbours(machine):
                    uids.add(neighbour.metadata.uid)
                    made_of = f"{neighbour.gvk} {basis}"
                    if self._applier.is_settled(key, neighbour.metadata, made_of, METADATA_MANAGER):
                        continue
                    intent = desired.metadata_intent(maker, neighbour)
                    applied = await self._applier.ensure(
                        key, neighbour, intent, METADATA_MANAGER, previous_manager=FIELD_MANAGER, basis=made_of
                    )
                    repaired |= applied.repaired
        except (ApiError, ContractUnknown) as error:
            run.fail(f"failed to keep Machines in step: {error}", error)
            return Sync.FAILED
        finally:
            run.done = replace(run.done, kept=frozenset(kept))
        self._applier.keep_only(key, uids)
        if repaired:
            run.vote(_SOON)
            return Sync.REPAIRED
        return Sync.DONE

    async def _sync_machine(self, run: Run, maker: Maker, machine: Machine, basis: str) -> Applied | None:
        """Sync one Machine; return None if it is gone."""
        original = await self._client.read(Machine, machine.key)
        if original is None or original.object.metadata.uid != machine.metadata.uid:
            return None
        if original.object.metadata.resource_version != machine.metadata.resource_version:
            self._writer.replace_machine(run, original.object)  # it may just have been deleted, to be replaced
        applied = Applied()
        if not self._applier.is_settled(run.object.key, original.object.metadata, basis, FIELD_MANAGER):
            known = Unstructured(msgspec.json.decode(original.raw))
            intent = desired.updated_machine(maker, known.json)
            applied = await self._applier.ensure(run.object.key, known, intent, FIELD_MANAGER, basis=basis)
            if applied.object is not None:
                self._writer.replace_machine(run, convert(applied.object.json, Machine))
        if any(r.kind == "Cluster" and not r.controller for r in machine.metadata.owner_references):
            await self._writer.patch(run, machine.key, _without_cluster)
        return applied

    async def _neighbours(self, machine: Machine) -> AsyncIterator[Unstructured]:
        """Yield the InfraMachine and the BootstrapConfig of a Machine. Raises NotFound if one is missing."""
        for reference in (machine.spec.infrastructure_ref, machine.spec.bootstrap.config_ref):
            if reference is not None and reference.name:
                obj = (await get_external(self._client, reference, machine.metadata.namespace)).object
                await self._dynamic.ensure(obj.gvk)
                yield obj

    async def _sync_deleting(self, run: Run, machine: Machine) -> None:
        """Sync only the fields that matter to a Machine under deletion."""
        template = run.object.spec.template.spec
        wanted = template.deletion or MachineDeletionSpec()
        seconds = wanted.node_deletion_timeout_seconds
        deletion = replace(wanted, node_deletion_timeout_seconds=desired.NODE_DELETION_TIMEOUT if seconds is None else seconds)
        await self._writer.patch(
            run,
            machine.key,
            lambda m: replace(
                m,
                spec=replace(
                    m.spec,
                    deletion=deletion,
                    readiness_gates=template.readiness_gates,
                    min_ready_seconds=template.min_ready_seconds,
                    taints=template.taints,
                ),
            ),
        )


def _without_cluster(machine: Machine) -> Machine:
    """Return a Machine without the Cluster's owner reference, because it has a MachineSet."""
    kept = tuple(r for r in machine.metadata.owner_references if r.kind != "Cluster" or r.controller)
    return replace(machine, metadata=replace(machine.metadata, owner_references=kept))
