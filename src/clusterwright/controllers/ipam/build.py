"""Wire the IPAM provider: the changes that reconcile claims and pools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.ipam import IPAddress, IPAddressClaim
from clusterwright.api.ippools import GROUP, POOLS, GlobalInClusterIPPool, InClusterIPPool, Pool, refers_to
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.ipam import claims, pools
from clusterwright.controllers.ipam.facts import ClusterPause, PoolFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition
from clusterwright.runtime.client import Reader
from clusterwright.runtime.mapping import owners
from clusterwright.runtime.predicates import changed, gone
from clusterwright.runtime.reconcile import Mapper, Watch

NAMES = (IPAddressClaim.__name__.lower(), *(kind.__name__.lower() for kind in POOLS))


async def claims_of_pool(pool: Pool, reader: Reader) -> Sequence[ObjectKey]:
    """Return the claims that name the pool."""
    found = await reader.list(IPAddressClaim, namespace=pool.metadata.namespace)
    return [claim.key for claim in found if claims.is_ours(claim) and _names(claim, pool.kind, pool.metadata.name)]


async def waiting_claims(address: IPAddress, reader: Reader) -> Sequence[ObjectKey]:
    """Return the claims of the address's pool that have no address."""
    ref = address.spec.pool_ref
    namespace = address.metadata.namespace if ref.kind == InClusterIPPool.__name__ else ""
    found = await reader.list(IPAddressClaim, namespace=namespace)
    return [
        claim.key for claim in found if claim.status.address_ref is None and claims.is_ours(claim) and _names(claim, ref.kind, ref.name)
    ]


async def claims_of_cluster(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """Return the claims that are for the Cluster."""
    found = await reader.list(IPAddressClaim, namespace=cluster.metadata.namespace)
    return [claim.key for claim in found if claims.cluster_name(claim) == cluster.metadata.name]


def pool_of_address(kind: type[Any]) -> Mapper:
    """Return the pool of this kind that an address was taken from."""

    async def map(address: IPAddress, _reader: Reader) -> Sequence[ObjectKey]:
        name = address.spec.pool_ref.name
        namespace = address.metadata.namespace if kind is InClusterIPPool else ""
        return (ObjectKey(namespace, name),) if refers_to(address, kind.__name__, name) else ()

    return map


def _names(claim: IPAddressClaim, kind: str, name: str) -> bool:
    return (claim.spec.pool_ref.kind, claim.spec.pool_ref.name) == (kind, name)


def controllers() -> tuple[ControllerDefinition, ...]:
    """Return the controllers of claims and of both kinds of pools."""
    return (
        ControllerDefinition(
            name=NAMES[0],
            kind=IPAddressClaim,
            watches=(
                Watch(Cluster, claims_of_cluster, changed(ClusterPause.of)),
                Watch(InClusterIPPool, claims_of_pool, changed(PoolFacts.of)),
                Watch(GlobalInClusterIPPool, claims_of_pool, changed(PoolFacts.of)),
                Watch(IPAddress, owners(GROUP, IPAddressClaim.__name__)),
                Watch(IPAddress, waiting_claims, gone, why="a claim that found no free address gets this one"),
            ),
            make=claims.make,
            concurrency=1,  # two passes at once could both find the same address free
            access=(Access(f"ipaddresses.{GROUP}", "create patch delete"),),
            is_provider=True,
        ),
        *(
            ControllerDefinition(
                name=kind.__name__.lower(),
                kind=kind,
                watches=(Watch(IPAddress, pool_of_address(kind)),),
                make=partial(pools.make, kind=kind),
                is_provider=True,
            )
            for kind in POOLS
        ),
    )
