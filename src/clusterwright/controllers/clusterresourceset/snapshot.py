"""The snapshot of a ClusterResourceSet, and the outcome of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from clusterwright.api.addons import ClusterResourceSet
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.runtime.errors import Conflict


class Trouble(Enum):
    """The step that failed for a Cluster."""

    SECRET_TYPE = "a Secret is of another type"  # noqa: S105
    RESOURCE = "a resource cannot be read"
    OWNERSHIP = "a resource cannot be owned"
    BINDING = "the binding cannot be read, created or written"
    CONNECTION = "there is no connection to the workload cluster"
    CONTENT = "a resource cannot be decoded, or the strategy is unknown"
    APPLYING = "an object cannot be applied"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure for one Cluster. `resource` is the resource at fault, if any."""

    trouble: Trouble
    cluster: ObjectKey
    text: str
    cause: Exception | None = None
    resource: str = ""

    @property
    def is_contention(self) -> bool:
        """Return whether the error is a write conflict, which only needs another try."""
        return isinstance(self.cause, Conflict)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of a Cluster that decide whether a set matches it."""

    key: ObjectKey
    labels: Mapping[str, str]
    deleting: bool

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        return ClusterFacts(cluster.key, cluster.metadata.labels, cluster.metadata.deletion_timestamp is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSetSnapshot(Snapshot[ClusterResourceSet]):
    """A set and the Clusters that it matches."""

    clusters: tuple[ClusterFacts, ...] = ()
    match_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSetDone(ResourceSetSnapshot):
    """The set at the end of the pass, and the outcome for each Cluster."""

    failures: tuple[Failure, ...] = ()
    complete: tuple[ObjectKey, ...] = ()
    """The Clusters to which every existing resource is applied."""
    is_missing: bool = False
    """Whether a resource does not exist yet."""

    def troubles(self, *kinds: Trouble) -> tuple[Failure, ...]:
        """Return the failures of these steps, without write conflicts."""
        return tuple(f for f in self.failures if f.trouble in kinds and not f.is_contention)
