"""The size of each MachineSet: the steps of a rollout within its limits. Pure.

For a MachineSet, `wanted` is `spec.replicas`, `actual` is `status.replicas`, `available` is `status.availableReplicas`. Steps write
intents, which are carried out together afterwards; a later step sees what earlier ones intend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterwright.api.core import MachineDeployment, MachineSet
from clusterwright.api.wellknown import DESIRED_REPLICAS_ANNOTATION, MAX_REPLICAS_ANNOTATION
from clusterwright.controllers.intstr import capped, count, scaled


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a rollout: how many Machines beyond the wanted number, and how many unavailable ones."""

    surge: int = 0
    unavailable: int = 0


def limits(deployment: MachineDeployment) -> Limits:
    """Return the limits of a rolling update; without one, no surge and no unavailable Machine is allowed. Raises ValueError."""
    strategy = deployment.spec.rollout.strategy if deployment.spec.rollout else None
    replicas = deployment.spec.replicas or 0
    if strategy is None or strategy.type != "RollingUpdate":
        return Limits()
    update = strategy.rolling_update
    surge = scaled((update.max_surge if update else None) or 0, replicas, round_up=True)
    unavailable = scaled((update.max_unavailable if update else None) or 0, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1  # something has to move
    return Limits(surge, min(unavailable, replicas))


@dataclass(frozen=True, slots=True)
class Sized:
    """A MachineSet, reduced to its numbers."""

    name: str
    wanted: int = 0
    actual: int = 0
    available: int = 0
    up_to_date: int = 0
    annotated_desired: str = ""
    annotated_max: str = ""

    @staticmethod
    def of(machine_set: MachineSet) -> Sized:
        """Return its numbers; an unreported number is 0."""
        status, annotations = machine_set.status, machine_set.metadata.annotations
        return Sized(
            machine_set.metadata.name,
            wanted=machine_set.spec.replicas or 0,
            actual=status.replicas or 0,
            available=status.available_replicas or 0,
            up_to_date=status.up_to_date_replicas or 0,
            annotated_desired=annotations.get(DESIRED_REPLICAS_ANNOTATION, ""),
            annotated_max=annotations.get(MAX_REPLICAS_ANNOTATION, ""),
        )


@dataclass(slots=True)
class Rollout:
    """A running rollout: the MachineSets as they are, `old` ones oldest first, and their intended sizes."""

    replicas: int
    limits: Limits
    new: Sized
    old: tuple[Sized, ...] = ()
    intents: dict[str, int] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Sized, ...]:
        """Every MachineSet."""
        return (*self.old, self.new)

    def intent(self, sized: Sized) -> int:
        """Return the intended size of a MachineSet, as far as known."""
        return self.intents.get(sized.name, sized.wanted)


# ---------------------------------------------------------------------------------------------- RollingUpdate


def grow_new(rollout: Rollout) -> None:
    """Grow the new MachineSet to the wanted size, as far as the surge allows; a Machine counts until it is gone."""
    new, wanted = rollout.new, rollout.intent(rollout.new)
    if wanted == rollout.replicas:
        return
    if wanted > rollout.replicas:
        rollout.intents[new.name] = rollout.replicas
        return
    total = sum(max(rollout.intent(s), s.actual) for s in rollout.all)
    room = rollout.replicas + rollout.limits.surge - total
    if room > 0:
        rollout.intents[new.name] = wanted + min(room, rollout.replicas - wanted)


def shrink_old(rollout: Rollout) -> bool:
    """Shrink old MachineSets: unavailable Machines first, across all of them, then the rest, the oldest first.

    Return whether anything may be removed.
    """
    if sum(s.wanted for s in rollout.old) == 0:
        return False
    least = max(rollout.replicas - rollout.limits.unavailable, 0)
    pending = sum(max(s.actual - min(s.wanted, rollout.intent(s)), 0) for s in rollout.all)
    unavailable = max(rollout.new.wanted - rollout.new.available, 0)
    state = _Shrinking(
        budget=max(sum(s.wanted for s in rollout.all) - pending - least - unavailable, 0),
        available=sum(s.available for s in rollout.all),
        least=least,
    )
    may_go = state.budget > 0
    _shrink(rollout, state, all_of_them=False)
    _shrink(rollout, state, all_of_them=True)
    return may_go


@dataclass(slots=True)
class _Shrinking:
    budget: int
    available: int
    least: int


def _shrink(rollout: Rollout, state: _Shrinking, *, all_of_them: bool) -> None:
    for old in rollout.old:
        current = min(old.wanted, rollout.intent(old))
        most = current if all_of_them else max(current - old.available, 0)
        down = min(most, state.budget)
        if down <= 0:
            continue
        target = current - down
        deleted = max(old.actual - target, 0)
        if old.available > 0 and deleted > 0:
            # whichever Machine goes may be an available one
            spare = max(state.available - state.least, 0)
            if spare < deleted:
                target = min(old.actual - spare, current)
                deleted = max(old.actual - target, 0)
            state.available -= min(old.available, deleted)
        if target < current:
            rollout.intents[old.name] = target
            state.budget -= current - target


def break_deadlock(rollout: Rollout) -> None:
    """Remove one unavailable Machine of an old MachineSet, despite the limits, if nothing else can progress.

    The new MachineSet is complete then; old Machines that never become available would otherwise block the rollout forever.
    """
    if rollout.intents or sum(s.actual for s in rollout.old) == 0:
        return
    if all(s.available == s.actual for s in rollout.old) or any(s.wanted != s.actual for s in rollout.all):
        return
    if rollout.new.available != rollout.new.actual:
        return
    for old in rollout.old:
        if old.available != old.actual and old.wanted > 0:
            rollout.intents[old.name] = old.wanted - 1
            return


# --------------------------------------------------------------------------------------------------- OnDelete


def on_delete(rollout: Rollout) -> None:
    """Grow the new MachineSet only for Machines that somebody deleted."""
    new, wanted = rollout.new, rollout.new.wanted
    if wanted > rollout.replicas:
        rollout.intents[new.name] = rollout.replicas
    elif wanted < rollout.replicas:
        missing = rollout.replicas - sum(max(s.wanted, s.actual) for s in rollout.all)
        if missing > 0:
            rollout.intents[new.name] = wanted + missing
    for old in rollout.old:
        if old.wanted > old.actual:
            rollout.intents[old.name] = old.actual
    surplus = sum(rollout.intent(s) for s in rollout.all) - rollout.replicas
    for old in rollout.old:
        if surplus <= 0:
            return
        down = min(rollout.intent(old), surplus)
        if down > 0:
            rollout.intents[old.name] = rollout.intent(old) - down
            surplus -= down


# ----------------------------------------------------------------------------------------------------- paused


def proportional(*, replicas: int, surge: int, is_rolling: bool, new: str, sets: Sequence[Sized]) -> dict[str, int]:
    """Scale while the rollout is paused: existing MachineSets grow and shrink in proportion.

    `sets` are all, the oldest first; `new` is the name of the wanted one, empty if there is none.
    """
    active = [s for s in sets if s.wanted > 0]
    wanted = next((s for s in sets if s.name == new), None)
    if len(active) <= 1:
        only = active[0] if active else wanted or (sets[-1] if sets else None)
        return {only.name: replicas} if only is not None and only.wanted != replicas else {}
    if wanted is not None and _is_saturated(wanted, replicas):
        return {s.name: 0 for s in active if s is not wanted}
    if not is_rolling:
        return {}
    allowed = capped(replicas + surge) if replicas > 0 else 0
    left = allowed - sum(s.wanted for s in active)
    ages = {s.name: n for n, s in enumerate(sets)}
    by_size = sorted(active, key=lambda s: (-s.wanted, -ages[s.name] if left > 0 else ages[s.name]))
    intents: dict[str, int] = {}
    for sized in by_size:
        share = _share(sized, replicas, surge, left) if left else 0
        intents[sized.name] = sized.wanted + share
        left -= share
    # what rounding leaves goes to the first, or is taken from as many as have it
    for sized in by_size:
        part = max(left, -intents[sized.name])
        intents[sized.name] += part
        left -= part
    return {s.name: intents[s.name] for s in by_size if intents[s.name] != s.wanted}


def _is_saturated(new: Sized, replicas: int) -> bool:
    return new.wanted == replicas and new.annotated_desired == str(replicas) and new.available == replicas


def _share(sized: Sized, replicas: int, surge: int, left: int) -> int:
    """Return a MachineSet's share of the rest to distribute, by its size when the replicas changed."""
    before = count(sized.annotated_max) or 0
    if replicas == 0:
        share = -sized.wanted
    elif before <= 0:
        return 0
    else:
        share = int(sized.wanted * (replicas + surge) / before + 0.5) - sized.wanted
    return min(share, left) if left > 0 else max(share, left)
