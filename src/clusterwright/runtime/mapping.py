"""Map a changed object to keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Mapper


async def itself(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
    """Return the object's own key."""
    return (obj.key,)


def owners(group: str, kind: str, *, controller_only: bool = False) -> Mapper:
    """Return the owners of this group and kind, in any version, in the object's namespace."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        metadata = obj.metadata
        return tuple(
            ObjectKey(metadata.namespace, reference.name)
            for reference in metadata.owner_references
            if reference.kind == kind
            and reference.api_version.rpartition("/")[0] == group
            and (reference.controller or not controller_only)
        )

    return map


def by_label(label: str) -> Mapper:
    """Return the object in the same namespace that a label names."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        name = obj.metadata.labels.get(label)
        return (ObjectKey(obj.metadata.namespace, name),) if name else ()

    return map
