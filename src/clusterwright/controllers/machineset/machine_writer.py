"""What is done to single Machines, and what a pass knows of them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.machineset.remediation import OWNER_REMEDIATED
from clusterwright.controllers.machineset.snapshot import MachineSetDone, MachineSetSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.patch import Patcher

Run = Pass[MachineSet, MachineSetSnapshot, MachineSetDone]


class MachineWriter:
    """Deletes and changes Machines of a MachineSet under way."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    def replace_machine(self, run: Run, machine: Machine) -> None:
        """A Machine is now as the API server answered."""
        machines = tuple(machine if m.metadata.name == machine.metadata.name else m for m in run.done.machines or ())
        run.done = replace(run.done, machines=machines)

    def changed(self, run: Run, machine: Machine) -> None:
        """A Machine is now as the API server answered, and no longer what the template made it."""
        self.replace_machine(run, machine)
        run.done = replace(run.done, kept=run.done.kept - {machine.metadata.name})

    async def delete(self, run: Run, machines: Iterable[Machine]) -> None:
        """Delete Machines; go on with the others if one cannot be deleted."""
        leaving = list(machines)
        run.done = replace(run.done, kept=run.done.kept - {m.metadata.name for m in leaving})
        for machine in leaving:
            await run.delete(self._deps.client, machine)

    async def patch(self, run: Run, key: ObjectKey, change: Callable[[Machine], Machine]) -> None:
        """Write what `change` makes of the Machine; nothing if it is gone. Raises ApiError.

        This pass reports what the Machine should say even where that cannot be written.
        """
        original: Original[Machine] | None = await self._deps.client.read(Machine, key)
        if original is None:
            return
        owned = (OWNER_REMEDIATED,)
        after = change(original.object)
        self.replace_machine(run, after)
        answer = await self._patcher.patch(original, after, owned_conditions=owned, owned_v1beta1_conditions=owned)
        if answer is not None:
            self.replace_machine(run, convert(answer.json, Machine))
