"""Find the MachineSet that a MachineDeployment wants, and decide which template changes need a new one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.api.core import MachineDeployment, MachineSet
from clusterwright.api.core.machine import MachineSpec
from clusterwright.api.wellknown import MACHINE_TEMPLATE_HASH_LABEL
from clusterwright.controllers import field_ownership

IN_PLACE: Final = ("minReadySeconds", "readinessGates", "deletion", "taints")
"""The template fields that change without a rollout, besides labels and annotations; by JSON name."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


def rollout_fields(spec: MachineSpec) -> object:
    """Return the fields that cannot be changed in a Machine: a difference needs a new MachineSet."""
    return (spec.version, spec.bootstrap, spec.infrastructure_ref, spec.failure_domain)


def is_up_to_date(machine_set: MachineSet, deployment: MachineDeployment) -> bool:
    """Return whether the MachineSet makes the Machines that the MachineDeployment wants."""
    return rollout_fields(machine_set.spec.template.spec) == rollout_fields(deployment.spec.template.spec)


def created(machine_set: MachineSet) -> datetime:
    """Return when it was created; the earliest time if unknown."""
    return machine_set.metadata.creation_timestamp or _BEGINNING


def biggest_first(machine_sets: Iterable[MachineSet]) -> list[MachineSet]:
    """Sort by wanted replicas, then by age."""
    return sorted(machine_sets, key=lambda s: (-(s.spec.replicas or 0), created(s), s.metadata.name))


def oldest_first(machine_sets: Iterable[MachineSet]) -> list[MachineSet]:
    """Sort by age, then by name."""
    return sorted(machine_sets, key=lambda s: (created(s), s.metadata.name))


@dataclass(frozen=True, slots=True)
class Division:
    """The MachineSet to roll out, or None; the others, oldest first; and those too old to match.

    `ineligible` names old MachineSets whose Machines must be replaced, not updated in place.
    """

    new: MachineSet | None
    old: tuple[MachineSet, ...]
    ineligible: frozenset[str] = frozenset()


def divide(deployment: MachineDeployment, machine_sets: Sequence[MachineSet], now: datetime) -> Division:
    """Separate the matching MachineSet from all others. The largest match wins, then the oldest.

    After `rollout.after` has passed, only one that was created since then matches.
    """
    matching = [s for s in biggest_first(machine_sets) if is_up_to_date(s, deployment)]
    after = due(deployment, now)
    new = next((s for s in matching if after is None or created(s) >= after), None)
    old = oldest_first(s for s in machine_sets if s is not new)
    names = {s.metadata.name for s in matching}
    ineligible = {s.metadata.name for s in old if s.metadata.name in names or (after is not None and created(s) < after)}
    return Division(new, tuple(old), frozenset(ineligible))


def due(deployment: MachineDeployment, now: datetime) -> datetime | None:
    """Return the time since which MachineSets must have been created; None if there is none, or it is in the future."""
    after = deployment.spec.rollout.after if deployment.spec.rollout else None
    return after if after is not None and after <= now else None


# ------------------------------------------------------------------------------------------------------- names


def template_hash(template: Mapping[str, Any]) -> int:
    """Return a hash of the template, which only makes names of MachineSets unique."""
    return int(field_ownership.digest(template)[:8], 16)


def has_hash(machine_set: MachineSet) -> bool:
    """Return whether it has the label that distinguishes it from its siblings."""
    return bool(machine_set.metadata.labels.get(MACHINE_TEMPLATE_HASH_LABEL))
