"""Revisions: the rollout to which a MachineSet belongs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterwright.api.core import MachineSet
from clusterwright.api.wellknown import REVISION_ANNOTATION, REVISION_HISTORY_ANNOTATION


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision, and the earlier revisions of the MachineSet."""

    number: str
    history: str

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the MachineSet."""
        found = {REVISION_ANNOTATION: self.number} if self.number else {}
        return {**found, REVISION_HISTORY_ANNOTATION: self.history} if self.history else found


def present(annotations: Mapping[str, str]) -> Revision:
    """Return the revision in the annotations."""
    return Revision(annotations.get(REVISION_ANNOTATION, ""), annotations.get(REVISION_HISTORY_ANNOTATION, ""))


def highest(machine_sets: Iterable[MachineSet]) -> int:
    """Return the highest revision; texts that are not numbers do not count."""
    numbers = (_number(s.metadata.annotations.get(REVISION_ANNOTATION, "")) for s in machine_sets)
    return max((n for n in numbers if n is not None), default=0)


def next_revision(new: Mapping[str, str], old: Iterable[MachineSet]) -> Revision:
    """Return the revision of the new MachineSet, whose annotations are `new`: above all others, and never lowered.

    Its previous revision goes into its history. Raises ValueError if that is not a number.
    """
    before, wanted = present(new), highest(old) + 1
    if not before.number:
        return Revision(str(wanted), before.history)
    number = _number(before.number)
    if number is None:
        raise ValueError(f"revision {before.number!r} is not a number")
    if number >= wanted:
        return before
    return Revision(str(wanted), f"{before.history},{before.number}" if before.history else before.number)


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
