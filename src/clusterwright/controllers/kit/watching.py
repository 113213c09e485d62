"""Map a change to the keys to reconcile, and decide which changes count.

A change counts if it affects what is read: a predicate is `changed(Facts.of)`, where `Facts` is the type that the snapshot holds, so that
the predicate cannot drift from what the tables read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CORE_GROUP
from clusterwright.controllers.external import Reference
from clusterwright.runtime.client import Reader
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.reconcile import Mapper

SETTLE = 0.25
"""Seconds to collect changes of children before an object that aggregates them is reconciled."""


async def cluster(obj: Any, _reader: Reader) -> Sequence[ObjectKey]:
    """Return the Cluster that the object belongs to: by `spec.clusterName`, else by its label."""
    name = getattr(obj.spec, "cluster_name", "") or obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return (ObjectKey(obj.metadata.namespace, name),) if name else ()


def of_cluster(kind: type[Object], *, having: str = "") -> Mapper:
    """Return the objects of a kind that carry the label of the changed Cluster; `having`: that also carry this label."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        selector = f"{CLUSTER_NAME_LABEL}={obj.metadata.name}" + (f",{having}" if having else "")
        return tuple(o.key for o in await reader.list(kind, namespace=obj.metadata.namespace, labels=selector))

    return map


def same_cluster(labels: Mapping[str, str]) -> str:
    """Return a selector for objects of the same Cluster as an object with these labels; for all, without one. Admission sets the label."""
    name = labels.get(CLUSTER_NAME_LABEL, "")
    return f"{CLUSTER_NAME_LABEL}={name}" if name else ""


def owned(kind: type[Object]) -> Mapper:
    """Return the objects of a kind that the changed object owns."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        return tuple(o.key for o in await reader.list(kind, namespace=obj.metadata.namespace, owner=obj.metadata.uid))

    return map


def by_reference(group: str, kind: str, references: Callable[[Any], Iterable[Reference | None]]) -> Mapper:
    """Return the objects of a group and kind that the changed object refers to, in its namespace."""

    async def map(obj: Any, _reader: Reader) -> Sequence[ObjectKey]:
        found = (r for r in references(obj) if r is not None and (r.api_group, r.kind) == (group, kind) and r.name)
        return tuple(ObjectKey(obj.metadata.namespace, r.name) for r in found)

    return map


def referrers(kind: type[Object], refers: Callable[[Any, Any], bool]) -> Mapper:
    """Return the objects of a kind, in any namespace, for which `refers(one, changed)` is true."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        return tuple(o.key for o in await reader.list(kind) if refers(o, obj))

    return map


def controller_or_selecting(kind: type[Object], selects: Callable[[Any, Mapping[str, str]], bool]) -> Mapper:
    """Return the controller of the changed object, if it is of this kind; for an orphan, all of the kind that select its labels."""

    async def map(obj: Any, reader: Reader) -> Sequence[ObjectKey]:
        metadata = obj.metadata
        controller = metadata.controller
        if controller is not None:
            return await owners(CORE_GROUP, kind.__name__, controller_only=True)(obj, reader)
        if not metadata.labels:
            return ()
        found = await reader.list(kind, namespace=metadata.namespace, labels=same_cluster(metadata.labels))
        return tuple(o.key for o in found if selects(o, metadata.labels))

    return map
