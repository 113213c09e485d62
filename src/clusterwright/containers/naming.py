"""Names and labels of containers, networks and volumes. Pure.

The labels name plane, cluster and machine, so that leftovers can be found and removed even if the plane's data are lost.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey

PREFIX = "clusterwright.dev/"
PLANE_LABEL = PREFIX + "plane"
"""The label with the UID of the plane's namespace kube-system."""
NAMESPACE_LABEL = PREFIX + "namespace"
CLUSTER_LABEL = PREFIX + "cluster"
KIND_LABEL = PREFIX + "kind"
OBJECT_LABEL = PREFIX + "object"
"""The label with the name of the InfraMachine or InfraCluster of a container; another one has its kind."""
ROLE_LABEL = PREFIX + "role"
FAILURE_DOMAIN_LABEL = PREFIX + "failure-domain"
CONTROL_PLANE, WORKER, LOAD_BALANCER = "control-plane", "worker", "load-balancer"
NETWORK = "clusterwright"
"""The network of all nodes: clusters reach each other, and one address range is enough."""
PROVIDER_ID = "docker:////"


@dataclass(frozen=True, slots=True)
class Place:
    """The plane and the Cluster of a container, for its labels."""

    plane: str
    cluster: ObjectKey

    @property
    def labels(self) -> dict[str, str]:
        """The labels of everything that belongs to the cluster."""
        return {PLANE_LABEL: self.plane, NAMESPACE_LABEL: self.cluster.namespace, CLUSTER_LABEL: self.cluster.name}


def container_name(machine: ObjectKey) -> str:
    """Return the name of a machine's container. It ends in the namespace, unless that is `default`."""
    return machine.name if machine.namespace == "default" else f"{machine.name}.{machine.namespace}"


def ipv6_range(network: str) -> str:
    """Return a private IPv6 range for a network; networks of different names have different ones."""
    digits = hashlib.sha256(network.encode()).hexdigest()
    return f"fd{digits[:2]}:{digits[2:6]}:{digits[6:10]}:{digits[10:14]}::/64"


def has_only_ipv6(cluster: Cluster) -> bool:
    """Return whether Pods and Services of a cluster have IPv6 addresses only, so that its API server is reached by one."""
    network = cluster.spec.cluster_network
    ranges = [r for part in (network.pods, network.services) if part is not None for r in part.cidr_blocks] if network is not None else []
    return bool(ranges) and all(":" in one for one in ranges)


def provider_id(container: str) -> str:
    """Return the provider ID of a machine, in the format of upstream's provider."""
    return PROVIDER_ID + container
