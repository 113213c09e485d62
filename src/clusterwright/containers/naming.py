"""Names and labels of containers, networks and volumes. Pure.

The labels tell which plane, cluster and machine a thing is of, so that it can be found and removed even if the plane's data is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.meta import ObjectKey

PREFIX = "clusterwright.dev/"
PLANE_LABEL = PREFIX + "plane"
"""The uid of the plane's namespace kube-system."""
NAMESPACE_LABEL = PREFIX + "namespace"
CLUSTER_LABEL = PREFIX + "cluster"
KIND_LABEL = PREFIX + "kind"
OBJECT_LABEL = PREFIX + "object"
"""With the kind: the InfraMachine or InfraCluster that a container was made for."""
ROLE_LABEL = PREFIX + "role"
CONTROL_PLANE, WORKER, LOAD_BALANCER = "control-plane", "worker", "load-balancer"
NETWORK = "clusterwright"
"""The network of all nodes, so that clusters reach each other and one range of addresses is enough."""
PROVIDER_ID = "docker:////"


@dataclass(frozen=True, slots=True)
class Place:
    """The plane and the Cluster to which things belong, for their labels."""

    plane: str
    cluster: ObjectKey

    @property
    def labels(self) -> dict[str, str]:
        """The labels of everything that belongs to the cluster."""
        return {PLANE_LABEL: self.plane, NAMESPACE_LABEL: self.cluster.namespace, CLUSTER_LABEL: self.cluster.name}


def container_name(machine: ObjectKey) -> str:
    """Return the name of a machine's container. Names of a namespace other than `default` end in it."""
    return machine.name if machine.namespace == "default" else f"{machine.name}.{machine.namespace}"


def provider_id(container: str) -> str:
    """Return the identity of a machine, as upstream's provider writes it."""
    return PROVIDER_ID + container
