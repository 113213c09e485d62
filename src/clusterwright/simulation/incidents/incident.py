"""An incident as data: the original fault, the required behaviour, and the scenario that plays it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import Stage

CAPI = "kubernetes-sigs/cluster-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A public incident that is played with the production controllers. All texts are our own words."""

    project: str = CAPI
    number: int
    also: tuple[str, ...] = ()
    """Other issues and pull requests about the same: `#8465` of this project, or `owner/name#1`."""
    title: str
    there: str
    here: str
    adversary: str
    stage: Stage
    play: Callable[[Scene], Awaitable[None]]

    @property
    def name(self) -> str:
        """Return `cluster-api#14197`."""
        return f"{self.project.rpartition('/')[2]}#{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPlayed:
    """A public incident that no scenario plays, and why."""

    project: str = CAPI
    number: int
    also: tuple[str, ...] = ()
    title: str
    reason: str

    @property
    def name(self) -> str:
        """Return `cluster-api#14197`."""
        return f"{self.project.rpartition('/')[2]}#{self.number}"
