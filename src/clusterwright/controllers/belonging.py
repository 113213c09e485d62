"""Group the objects of one Cluster, which one shard reconciles. Pure.

Which Cluster an object belongs to never changes: `spec.clusterName` is immutable, owners are set once, and the label with them. An
object that belongs to a Cluster by its nature but does not say to which one is nobody's business yet: its controllers would
only wait for the Cluster to adopt it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CORE_GROUP
from clusterwright.api.wire import UNREADABLE

_BY_THEMSELVES = frozenset({"ClusterClass", "ClusterResourceSet", "ExtensionConfig"})
"""Our kinds whose objects belong to no Cluster, or to many."""


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    labels: dict[str, Any] | None = None
    owner_references: tuple[_Owner, ...] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    cluster_name: Any = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec | None = None


_OBJECT = msgspec.json.Decoder(_Object)


def belongs_to(kind: GroupVersionKind, key: ObjectKey, raw: bytes) -> str:
    """Return the name of the group of an object; empty if its Cluster is not known yet."""
    if not (kind.group == CORE_GROUP or kind.group.endswith(f".{CORE_GROUP}")) or kind.kind in _BY_THEMSELVES:
        return f"{kind.kind} {key}"
    cluster = key.name if (kind.group, kind.kind) == (CORE_GROUP, "Cluster") else _cluster_of(raw)
    return f"Cluster {key.namespace}/{cluster}" if cluster else ""


def _cluster_of(raw: bytes) -> str:
    try:
        obj = _OBJECT.decode(raw)
    except UNREADABLE:
        return ""
    if obj.spec is not None and isinstance(obj.spec.cluster_name, str) and obj.spec.cluster_name:
        return obj.spec.cluster_name
    for owner in obj.metadata.owner_references or ():
        if owner.kind == "Cluster" and owner.api_version.partition("/")[0] == CORE_GROUP:
            return owner.name
    label = (obj.metadata.labels or {}).get(CLUSTER_NAME_LABEL)
    return label if isinstance(label, str) else ""
