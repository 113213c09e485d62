"""Write single Machines, and keep the pass's view of them current."""

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
    """Deletes and changes Machines of a MachineSet during a pass."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    def replace_machine(self, run: Run, machine: Machine) -> None:
        """Replace a Machine by the API server's answer."""
        machines = tuple(machine if m.metadata.name == machine.metadata.name else m for m in run.done.machines or ())
        run.done = replace(run.done, machines=machines)

    def changed(self, run: Run, machine: Machine) -> None:
        """Replace a Machine by the API server's answer, which no longer matches the template."""
        self.replace_machine(run, machine)
        run.done = replace(run.done, kept=run.done.kept - {machine.metadata.name})

    async def delete(self, run: Run, machines: Iterable[Machine]) -> None:
        """Delete Machines; continue after failures."""
        leaving = list(machines)
        run.done = replace(run.done, kept=run.done.kept - {m.metadata.name for m in leaving})
        for machine in leaving:
            await run.delete(self._deps.client, machine)

    async def patch(self, run: Run, key: ObjectKey, change: Callable[[Machine], Machine]) -> None:
        """Write what `change` makes of the Machine; nothing if it is gone. Raises ApiError.

        This pass uses the changed Machine even if the write fails.
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
