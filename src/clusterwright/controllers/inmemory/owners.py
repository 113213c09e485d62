"""Whom a Dev object belongs to, and whether it may be touched."""

from __future__ import annotations

from typing import TypeVar

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.conditions import set_condition
from clusterwright.runtime.client import Original, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.models import with_conditions
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import conditions_of, ensure_paused_condition, paused_condition

T = TypeVar("T", bound=Object)


def owner_key(obj: Object, kind: str) -> ObjectKey | None:
    """The key of the owner of a kind of group cluster.x-k8s.io."""
    for reference in obj.metadata.owner_references:
        if reference.kind == kind and reference.api_version.startswith("cluster.x-k8s.io/"):
            return ObjectKey(obj.metadata.namespace, reference.name)
    return None


async def unless_paused(patcher: Patcher, clock: Clock, original: Original[T], cluster: Cluster) -> T | None:
    """The object to go on with; None if it is paused, which is then said.

    That an object is not paused is said with whatever else the pass says: a write of its own would tell nobody anything.
    """
    obj, is_cluster_paused = original.object, bool(cluster.spec.paused)
    wanted = paused_condition(obj, cluster_paused=is_cluster_paused)
    if wanted.status == "True":
        await ensure_paused_condition(patcher, clock, original, cluster_paused=is_cluster_paused)
        return None
    present = set_condition(conditions_of(obj), wanted, generation=obj.metadata.generation, now=clock.now())
    return with_conditions(obj, present)


async def find_owner(reader: Reader, obj: Object, kind: type[T]) -> T | None:
    """The owner, or None where there is none (yet, or any more)."""
    key = owner_key(obj, kind.__name__)
    return None if key is None else await reader.find(kind, key)
