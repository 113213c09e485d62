"""Finds objects that name a Cluster which does not exist: no controller does anything about them."""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.api.contract import crd_name
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of


def lost_clusters(known: Known) -> Iterator[Found]:
    """Yield the Clusters that objects name and that do not exist."""
    if known.cluster is not None or "Cluster" not in known.seen:
        return
    for name, obj in known.objects.items():
        cluster = obj.at("spec", "clusterName")
        missing = name_of("Cluster", obj.key.namespace, str(cluster))
        if not isinstance(cluster, str) or not cluster or missing in known.objects or obj.metadata.deletion_timestamp is not None:
            continue
        resource = f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}"
        facts = {"object": f"{obj.kind} {obj.key.name}", "cluster": cluster, "namespace": obj.key.namespace, "resource": resource}
        text = f"does not exist, but {name} names it in spec.clusterName"
        since = str(obj.at("metadata", "creationTimestamp") or "")
        complaint = Complaint(Tier.MISSING, text, since, path="spec.clusterName", cause="cluster.missing", facts=facts)
        yield Found(object=missing, complaint=complaint, explains={name: "belongs to it"}, is_all=True)
