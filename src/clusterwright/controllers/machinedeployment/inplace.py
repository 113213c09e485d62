"""In-place updates: which MachineSets may give away their Machines instead of replacing them, and the effect on the rollout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.core import ContractVersionedObjectReference, Machine
from clusterwright.api.meta import Json
from clusterwright.controllers import field_ownership
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.machine_templates import failed
from clusterwright.controllers.machinedeployment.rollout import Rollout
from clusterwright.controllers.owned_machines import is_updating
from clusterwright.controllers.update_advice import Hook
from clusterwright.controllers.update_patches import reduced
from clusterwright.controllers.wiring import Dependencies
from clusterwright.golang.jsonpatch import PatchFailed
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.topology.extensions import ExtensionError

HOOK: Final = Hook(name="CanUpdateMachineSet", path=("spec", "template", "spec"), machine="machineSet")
_ANSWER_LASTS: Final = 600.0


# -------------------------------------------------------------------------------------------------------- pure


def acknowledge(rollout: Rollout, awaiting: Collection[str], acknowledged: Collection[str]) -> None:
    """Acknowledge Machines that were moved to the new MachineSet, so that they count from now on."""
    fresh = [name for name in awaiting if name not in acknowledged]
    if fresh:
        rollout.new = replace(rollout.new, wanted=rollout.new.wanted + len(fresh))
        rollout.intents[rollout.new.name] = rollout.new.wanted


def is_going_on(rollout: Rollout, machines: Collection[Machine]) -> bool:
    """Return whether the rollout is progressing, so that no further Machine is needed to start it."""
    new = rollout.new
    return (
        len({new.wanted, new.actual, new.up_to_date, new.available}) > 1
        or any(s.wanted < s.actual or rollout.intent(s) < s.wanted for s in rollout.old)
        or any(map(is_updating, machines))
    )


def limit_growth(rollout: Rollout, *, going_on: bool) -> None:
    """Let the new MachineSet grow only by missing Machines, or by one to start the rollout: moved Machines need no surge.

    Missing are the Machines that `spec.replicas` asks for beyond those that exist or are being created.
    """
    new = rollout.new
    if rollout.intent(new) <= new.wanted:
        return
    here = max(new.wanted, new.actual)
    missing = rollout.replicas - here - sum(max(rollout.intent(s), s.actual) for s in rollout.old)
    least = new.wanted if going_on else new.wanted + 1
    rollout.intents[new.name] = min(rollout.intent(new), here + missing if missing > 0 else least)


# ----------------------------------------------------------------------------------------------------- asking


@dataclass(slots=True)
class _Answer:
    yes: bool
    until: float


class UpdateAdvisor:
    """Asks the runtime extension whether Machines of one MachineSet can be updated to those of another."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._answers: dict[str, _Answer] = {}
        self._without_template: set[tuple[str, str]] = set()

    async def can_update(self, old: Json, new: Json) -> bool:
        """Return whether the extension can update them; False if there is none. Raises PassFailed.

        A missing template may only be late: the first pass without it fails. If it is still missing in the next pass, Machines are
        replaced; waiting for a deleted template would block the rollout forever.
        """
        name, identity = old["metadata"]["name"], (str(old["metadata"].get("uid", "")), str(new["metadata"]["name"]))
        try:
            current, wanted = await self._parts(old), await self._parts(new)
        except NotFound as error:
            if identity in self._without_template:
                return False
            self._without_template.add(identity)
            raise failed(f"failed to determine if MachineSet {name} can be updated in-place: {error}", error) from error
        except (ApiError, ContractUnknown) as error:
            raise failed(f"failed to determine if MachineSet {name} can be updated in-place: {error}", error) from error
        self._without_template.discard(identity)
        if current.keys() != wanted.keys():
            return False
        try:
            return await self._ask(old, current, wanted)
        except (ExtensionError, PatchFailed) as error:
            raise failed(f"failed to determine if MachineSet {name} can be updated in-place: {error}", error) from error

    async def _parts(self, machine_set: Json) -> dict[str, Json]:
        spec = machine_set["spec"]["template"]["spec"]
        parts = {"machineSet": reduced(machine_set)}
        references = {
            "infrastructureMachineTemplate": spec.get("infrastructureRef"),
            "bootstrapConfigTemplate": (spec.get("bootstrap") or {}).get("configRef"),
        }
        for part, reference in references.items():
            if not reference or not reference.get("name"):
                continue
            typed = ContractVersionedObjectReference(
                api_group=reference.get("apiGroup", ""), kind=reference.get("kind", ""), name=reference["name"]
            )
            found = await get_external(self._deps.client, typed, machine_set["metadata"]["namespace"])
            parts[part] = reduced(found.object.json)
        return parts

    async def _ask(self, subject: Json, current: dict[str, Json], wanted: dict[str, Json]) -> bool:
        extensions = self._deps.extensions
        handler = await HOOK.handler(extensions, subject)
        if not handler:
            return False
        key, now = f"{handler}/{field_ownership.digest({'current': current, 'desired': wanted})}", self._deps.clock.monotonic()
        self._answers = {k: a for k, a in self._answers.items() if a.until > now}
        if key not in self._answers:
            yes = await HOOK.can_update(extensions, handler, subject, current, wanted)
            self._answers[key] = _Answer(yes, now + _ANSWER_LASTS)
        return self._answers[key].yes
