"""Find MachineDeployments whose replicas a topology and an autoscaler both write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known

_BOUNDS: Final = tuple(f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{bound}-size" for bound in ("min", "max"))
_NAME: Final = "topology.cluster.x-k8s.io/deployment-name"
_OFTEN: Final = 12
"""The number of changes of a spec from which two writers are suspected."""


def replica_writers(known: Known) -> Iterator[Found]:
    """Yield MachineDeployments with autoscaler bounds and replicas in the topology whose spec changes often."""
    cluster = known.cluster
    listed = cluster.at("spec", "topology", "workers", "machineDeployments") if cluster is not None else None
    given = {str(d.get("name")): d.get("replicas") for d in listed if isinstance(d, Mapping)} if isinstance(listed, list) else {}
    for name, obj in known.of_kind("MachineDeployment"):
        metadata = obj.metadata
        replicas = given.get(metadata.labels.get(_NAME, ""))
        is_bounded = all(bound in metadata.annotations for bound in _BOUNDS)
        changes = obj.at("metadata", "generation")
        if cluster is None or TOPOLOGY_OWNED_LABEL not in metadata.labels or replicas is None or not is_bounded:
            continue
        if not isinstance(changes, int) or changes < _OFTEN:
            continue
        sides = f"the topology of Cluster {cluster.key.name} asks for {replicas}, an autoscaler for others"
        text = f"its replicas are written by two: {sides}; {changes} changes so far"
        facts = {"cluster": cluster.key.name, "namespace": cluster.key.namespace, "writer": "cluster-autoscaler"}
        yield Found(
            object=name, complaint=Complaint(Tier.ERROR, text, path="spec.replicas", cause="replicas.two-writers", facts=facts), is_all=True
        )
