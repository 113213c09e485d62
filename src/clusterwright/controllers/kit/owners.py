"""Whom the object of a provider belongs to."""

from __future__ import annotations

from typing import TypeVar

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.runtime.client import Reader

T = TypeVar("T", bound=Object)


def owner_key(obj: Object, kind: str) -> ObjectKey | None:
    """Return the key of the owner of a kind of group cluster.x-k8s.io."""
    for reference in obj.metadata.owner_references:
        if reference.kind == kind and reference.api_version.startswith("cluster.x-k8s.io/"):
            return ObjectKey(obj.metadata.namespace, reference.name)
    return None


async def find_owner(reader: Reader, obj: Object, kind: type[T]) -> T | None:
    """Return the owner, or None where there is none (yet, or any more)."""
    key = owner_key(obj, kind.__name__)
    return None if key is None else await reader.find(kind, key)
