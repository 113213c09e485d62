"""The facts of pools and addresses that claims and pools read. Watches compare them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterwright.api.core import Cluster
from clusterwright.api.ippools import InClusterIPPoolSpec, Pool
from clusterwright.api.ipranges import AddressSet, Range, network, parse_address, parse_range
from clusterwright.api.meta import OwnerReference
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.runtime.paused import is_paused

RELEASE_ADDRESS_FINALIZER = "ipam.cluster.x-k8s.io/ReleaseAddress"
PROTECT_ADDRESS_FINALIZER = "ipam.cluster.x-k8s.io/ProtectAddress"
PROTECT_POOL_FINALIZER = "ipam.cluster.x-k8s.io/ProtectPool"


class BadPool(ValueError):
    """The spec of a pool cannot be used; the text names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """The facts of a pool that a claim needs."""

    reference: OwnerReference
    paused: bool
    spec: InClusterIPPoolSpec

    @staticmethod
    def of(pool: Pool) -> PoolFacts:
        """Return the facts of a pool."""
        return PoolFacts(
            reference=owner_reference(pool, controller=False),
            paused=PAUSED_ANNOTATION in pool.metadata.annotations,
            spec=pool.spec,
        )


@dataclass(frozen=True, slots=True)
class ClusterPause:
    """Whether a Cluster pauses its claims."""

    paused: bool

    @staticmethod
    def of(cluster: Cluster) -> ClusterPause:
        """Return whether the Cluster is paused, by its spec or by an annotation."""
        return ClusterPause(is_paused(cluster, cluster_paused=bool(cluster.spec.paused)))


def assignable(spec: InClusterIPPoolSpec) -> AddressSet:
    """Return the addresses that a pool may assign. Raises BadPool, which admission makes impossible."""
    addresses = AddressSet(_ranges(spec.addresses, "spec.addresses"))
    if not addresses.ranges:
        raise BadPool("spec.addresses: there is no address")
    unused = _ranges(spec.excluded_addresses, "spec.excludedAddresses")
    if spec.gateway:
        gateway = parse_address(spec.gateway)
        if gateway is None:
            raise BadPool(f'spec.gateway: "{spec.gateway}" is not an IP address')
        unused.append(Range.of(gateway))
    return addresses.without([*unused, *_reserved(spec, addresses.ranges[0])])


def _reserved(spec: InClusterIPPoolSpec, lowest: Range) -> list[Range]:
    """Return the first address of the network, and the last one of an IPv4 network, unless the pool may assign them."""
    if spec.allocate_reserved:
        return []
    whole = network(lowest.lowest, spec.prefix)
    if whole is None:
        raise BadPool(f"spec.prefix: {spec.prefix} is too long for IPv{lowest.version}")
    ends = [whole.first] if whole.version == 6 else [whole.first, whole.last]
    return [Range(whole.version, end, end) for end in ends]


def _ranges(entries: Iterable[str], field: str) -> list[Range]:
    found = []
    for number, entry in enumerate(entries):
        one = parse_range(entry)
        if one is None:
            raise BadPool(f'{field}[{number}]: "{entry}" is not an IP address, a range or a CIDR')
        found.append(one)
    return found
