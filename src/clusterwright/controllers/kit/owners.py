"""The owners of an object, and whether they are paused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Object, ObjectKey, OwnerReference
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.runtime.client import Reader

T = TypeVar("T", bound=Object)


class Owner(Protocol):
    """The owner of an object, usually its Cluster."""

    @property
    def paused(self) -> bool:
        """Whether the owned objects must be left alone."""


@dataclass(frozen=True, slots=True)
class Unowned:
    """The owner of an object that has none; `paused`: the object has a pause field of its own."""

    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """The facts of a Cluster that all its objects need. A kind that needs more derives from it."""

    reference: OwnerReference
    """An ownerReference to the Cluster."""
    namespace: str
    paused: bool

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            paused=bool(cluster.spec.paused),
        )

    @property
    def name(self) -> str:
        """The Cluster's name."""
        return self.reference.name

    @property
    def key(self) -> ObjectKey:
        """The Cluster's key."""
        return ObjectKey(self.namespace, self.reference.name)


def owner_key(obj: Object, kind: str) -> ObjectKey | None:
    """Return the key of the owner of a kind of group cluster.x-k8s.io."""
    for reference in obj.metadata.owner_references:
        if reference.kind == kind and reference.api_version.startswith(f"{CORE_GROUP}/"):
            return ObjectKey(obj.metadata.namespace, reference.name)
    return None


async def find_owner(reader: Reader, obj: Object, kind: type[T]) -> T | None:
    """Return the owner, or None if it does not exist."""
    key = owner_key(obj, kind.__name__)
    return None if key is None else await reader.find(kind, key)
