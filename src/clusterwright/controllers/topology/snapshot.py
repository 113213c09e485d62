"""The snapshot of a topology, and the outcome of a pass."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from clusterwright.api.core import Cluster
from clusterwright.api.core.cluster import Topology
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.topology.failures import TopologyFailed
from clusterwright.topology import hooks
from clusterwright.topology.model import Blueprint, Current, Progress


@dataclass(frozen=True, slots=True)
class State:
    """All objects of a Cluster: those in its class and those that exist."""

    blueprint: Blueprint
    current: Current


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySnapshot(Snapshot[Cluster]):
    """A Cluster with its topology."""

    read: Cluster
    """The Cluster as it was when the pass began."""
    cluster: Json
    """The Cluster as JSON, with the defaults of its variables."""
    topology: Topology | None = None
    """The topology with the defaults of its variables, if they changed it."""
    state: State | TopologyFailed | None = None
    """The objects of the Cluster, or why they could not be read. None for a paused or deleted Cluster, for which nothing is written."""

    @property
    def is_paused(self) -> bool:
        """Whether the Cluster is paused."""
        return bool(self.read.spec.paused) or PAUSED_ANNOTATION in self.read.metadata.annotations

    @property
    def is_deleting(self) -> bool:
        """Whether the Cluster is being deleted."""
        return self.read.metadata.deletion_timestamp is not None

    @property
    def is_new(self) -> bool:
        """Whether the Cluster had no references when the pass began."""
        spec = self.cluster["spec"]
        return not any((spec.get(f) or {}).get("name") for f in ("infrastructureRef", "controlPlaneRef"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDone(TopologySnapshot):
    """The Cluster at the end of the pass, and the progress of the pass."""

    failure: TopologyFailed | None = None
    was_repaired: bool = False
    progress: Progress | None = None
    """The upgrades in progress; None: the pass ended before."""
    plan: Progress | None = None
    """The progress with the plans of upgrades; None: the pass could not compute them."""
    control_plane_kind: str = ""
    control_plane_version: str = ""
    """The desired version of the control plane."""
    is_gone: bool = False
    """Whether the Cluster was deleted during the pass."""

    @property
    def blocking(self) -> str:
        """The hooks that block."""
        return hooks.blocking_text(self.progress.answers) if self.progress is not None else ""

    @property
    def retry(self) -> timedelta:
        """When to call the blocking hooks again; zero if none blocks."""
        answers = self.progress.answers.values() if self.progress is not None else ()
        return timedelta(seconds=min((a.retry_after for a in answers if a.is_blocking), default=0))
