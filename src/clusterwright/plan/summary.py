"""The effects of a plan by Cluster: for a change of a class, or of anything else that many Clusters use. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.offline.ownership import name_of
from clusterwright.plan.result import Plan

_DEPTH = 6
"""How many owners are followed from an object to its Cluster."""


@dataclass(slots=True)
class ClusterEffects:
    """The effects on one Cluster."""

    cluster: str
    replaced: int = 0
    created: int = 0
    changed: int = 0
    deleted: int = 0
    stuck: list[str] = field(default_factory=list)

    def to_json(self) -> Json:
        """Return the form of the schema."""
        return {
            "cluster": self.cluster,
            "replaced": self.replaced,
            "created": self.created,
            "changed": self.changed,
            "deleted": self.deleted,
            "notConverging": self.stuck,
        }


def by_cluster(plan: Plan, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[ClusterEffects]:
    """Return the effects on each Cluster before or after, by name, without what happens anyway."""
    objects = {**before, **after}
    found = {name: ClusterEffects(name) for name in sorted(objects) if name.startswith("Cluster/")}

    def of(name: str) -> ClusterEffects | None:
        return found.get(cluster_of(name, objects))

    for turn in plan.replaced:
        if (effects := of(turn.old)) is not None:
            effects.replaced += 1
    replaced = {t.old for t in plan.replaced} | {t.new for t in plan.replaced}
    for listed, what in ((plan.created, "created"), (plan.changed, "changed"), (plan.deleted, "deleted")):
        for one in listed:
            if one.name not in replaced and not one.anyway and (effects := of(one.name)) is not None:
                setattr(effects, what, getattr(effects, what) + 1)
    for stuck in plan.stuck:
        if (effects := of(stuck.object)) is not None:
            effects.stuck.append(f"{stuck.object}: {stuck.why}")
    return list(found.values())


def cluster_of(name: str, objects: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the Cluster of an object, by its label, its spec or its owners; empty if it has none."""
    for _ in range(_DEPTH):
        if name.startswith("Cluster/") or name not in objects:
            return name if name.startswith("Cluster/") else ""
        obj = Unstructured(objects[name])
        cluster = obj.metadata.labels.get(CLUSTER_NAME_LABEL) or obj.at("spec", "clusterName")
        if isinstance(cluster, str) and cluster:
            return name_of("Cluster", obj.key.namespace, cluster)
        owners = obj.metadata.owner_references
        if not owners:
            return ""
        name = name_of(owners[0].kind, obj.key.namespace, owners[0].name)
    return ""
