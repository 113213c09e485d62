"""What is done to single Machines, and what a pass knows of them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.machineset.remediation import OWNER_REMEDIATED
from clusterwright.controllers.machineset.snapshot import MachineSetSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.patch import Patcher

Run = Pass[MachineSet, MachineSetSnapshot]


class Hands:
    """Deletes and changes Machines of a MachineSet under way."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    def took_over(self, run: Run, machine: Machine) -> None:
        """A Machine is now as the API server answered."""
        machines = tuple(machine if m.metadata.name == machine.metadata.name else m for m in run.seen.machines or ())
        run.seen = replace(run.seen, machines=machines)

    def changed(self, run: Run, machine: Machine) -> None:
        """A Machine is now as the API server answered, and no longer what the template made it."""
        self.took_over(run, machine)
        run.seen = replace(run.seen, kept=run.seen.kept - {machine.metadata.name})

    async def delete(self, run: Run, machines: Iterable[Machine]) -> None:
        """Delete Machines; go on with the others if one cannot be deleted."""
        leaving = list(machines)
        run.seen = replace(run.seen, kept=run.seen.kept - {m.metadata.name for m in leaving})
        for machine in leaving:
            name = machine.metadata.name
            try:
                await self._deps.client.delete(Machine, machine.key, uid=machine.metadata.uid)
            except NotFound:
                continue
            except ApiError as error:
                run.record("Warning", "FailedDelete", f"Failed to delete Machine {name}: {error}")
                run.fail(f"failed to delete Machine {machine.key}: {error}", error)
                continue
            run.record("Normal", "SuccessfulDelete", f"Deleted Machine {name}")

    async def patch(self, run: Run, key: ObjectKey, change: Callable[[Machine], Machine]) -> None:
        """Write what `change` makes of the Machine; nothing if it is gone. Raises ApiError.

        This pass reports what the Machine should say even where that cannot be written.
        """
        original: Original[Machine] | None = await self._deps.client.read(Machine, key)
        if original is None:
            return
        owned = (OWNER_REMEDIATED,)
        after = change(original.object)
        self.took_over(run, after)
        answer = await self._patcher.patch(original, after, owned_conditions=owned, owned_v1beta1_conditions=owned)
        if answer is not None:
            self.took_over(run, convert(answer.json, Machine))
