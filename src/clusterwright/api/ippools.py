"""InClusterIPPool and GlobalInClusterIPPool: pools that answer IPAddressClaims. Only the embedded plane serves them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

import msgspec

from clusterwright.api.constraints import REQUIRED, Doc, Int64, Items, Range
from clusterwright.api.ipam import IPAddress
from clusterwright.api.ipranges import Address, parse_address
from clusterwright.api.meta import ALWAYS, Object, Struct

GROUP = "ipam.cluster.x-k8s.io"
ENTRIES = 1000
"""The most entries that a pool may have in `addresses`, and in `excludedAddresses`."""


class InClusterIPPoolSpec(Struct):
    """The addresses that may be assigned, and their network."""

    addresses: Annotated[
        tuple[str, ...], REQUIRED, Items(max=ENTRIES), Doc("The addresses, ranges (first-last) and CIDRs that may be assigned.")
    ] = ()
    allocate_reserved: Annotated[bool, Doc("If true, the first address of the network is assigned, too, and with IPv4 its last one.")] = (
        msgspec.field(default=False, name="allocateReservedIPAddresses")
    )
    excluded_addresses: Annotated[tuple[str, ...], Items(max=ENTRIES), Doc("The addresses, ranges and CIDRs that are never assigned.")] = ()
    gateway: Annotated[str, Doc("The gateway of the network. It is never assigned.")] = ""
    prefix: Annotated[Int64, REQUIRED, Range(0, 128), Doc("The length of the network's prefix.")] = 0


class InClusterIPPoolAddresses(Struct):
    """The numbers of addresses of a pool. Numbers above 2^63-1 are shown as 2^63-1."""

    free: Annotated[Int64, ALWAYS, REQUIRED, Doc("The number of addresses that may still be assigned.")] = 0
    out_of_range: Annotated[Int64, ALWAYS, REQUIRED, Doc("The number of addresses in use that the spec does not have any more.")] = 0
    total: Annotated[Int64, ALWAYS, REQUIRED, Doc("The number of addresses in the spec.")] = 0
    used: Annotated[Int64, ALWAYS, REQUIRED, Doc("The number of addresses in use.")] = 0


class InClusterIPPoolStatus(Struct):
    """The use of a pool."""

    ip_addresses: Annotated[InClusterIPPoolAddresses | None, Doc("The numbers of used and free addresses.")] = None


class InClusterIPPool(Object):
    """A pool for the claims of its namespace."""

    api_version: str = "ipam.cluster.x-k8s.io/v1alpha2"
    kind: str = "InClusterIPPool"
    spec: Annotated[InClusterIPPoolSpec, Doc("The desired state, which users set.")] = InClusterIPPoolSpec()
    status: Annotated[InClusterIPPoolStatus, Doc("The observed state, which controllers write.")] = InClusterIPPoolStatus()


class GlobalInClusterIPPool(Object):
    """A pool for the claims of all namespaces."""

    api_version: str = "ipam.cluster.x-k8s.io/v1alpha2"
    kind: str = "GlobalInClusterIPPool"
    spec: Annotated[InClusterIPPoolSpec, Doc("The desired state, which users set.")] = InClusterIPPoolSpec()
    status: Annotated[InClusterIPPoolStatus, Doc("The observed state, which controllers write.")] = InClusterIPPoolStatus()


Pool = InClusterIPPool | GlobalInClusterIPPool
POOLS: tuple[type[InClusterIPPool] | type[GlobalInClusterIPPool], ...] = (InClusterIPPool, GlobalInClusterIPPool)


def refers_to(address: IPAddress, kind: str, name: str) -> bool:
    """Return whether an address was taken from the pool of this kind and name."""
    ref = address.spec.pool_ref
    return (ref.api_group, ref.kind, ref.name) == (GROUP, kind, name)


def in_use(addresses: Iterable[IPAddress]) -> list[Address]:
    """Return the addresses of IPAddresses. Text that is not an address uses up none."""
    return [found for one in addresses if (found := _parsed(one.spec.address)) is not None]


_parsed = lru_cache(maxsize=16_384)(parse_address)
"""Each claim reads all addresses of its pool: to parse them again costs more than all else that a claim does."""
