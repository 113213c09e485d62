"""The steps of a pass over a pool: count the addresses in use, and keep the pool while there are any."""

from __future__ import annotations

from typing import Any, Final, assert_never

from clusterwright.api.copying import replace
from clusterwright.api.ipam import IPAddress
from clusterwright.api.ippools import InClusterIPPoolAddresses, Pool, in_use, refers_to
from clusterwright.controllers.ipam.facts import PROTECT_POOL_FINALIZER, BadPool, assignable
from clusterwright.controllers.ipam.plan import POOL, Fate, PoolSnapshot
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import Terminal
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

MOST: Final = 2**63 - 1
"""The largest number that a status shows."""


def make(deps: Dependencies, kind: type[Any]) -> Reconciler:
    """Return the reconciler of a kind of pools."""
    shape: Shape[Any] = Shape(kind=kind, finalizer=PROTECT_POOL_FINALIZER, owned=(), main=False)
    return KindReconciler(deps, shape, Pools(deps))


class Pools(Kind[Any, Unowned, PoolSnapshot, PoolSnapshot]):
    """The reconciler of pools: it counts their addresses. Pools are not paused, because a count changes no address."""

    def __init__(self, deps: Dependencies) -> None:
        self._client = deps.client
        self._clock = deps.clock

    async def owner(self, obj: Pool) -> Unowned:
        """Return no owner."""
        return Unowned()

    async def observe(self, obj: Pool, owner: Unowned) -> PoolSnapshot:
        """Read the addresses that were taken from the pool."""
        found = await self._client.list(IPAddress, namespace=obj.metadata.namespace)
        taken = tuple(one for one in found if refers_to(one, obj.kind, obj.metadata.name))
        return PoolSnapshot(object=obj, now=self._clock.now(), taken=taken)

    async def act(self, run: Pass[Any, PoolSnapshot, PoolSnapshot]) -> None:
        """Count, or let the pool go. Raises Terminal if the spec cannot be used."""
        match run.decide(POOL).chosen(Fate):
            case Fate.GOES:
                run.become(without_finalizer(run.object, PROTECT_POOL_FINALIZER))
            case Fate.STAYS:
                try:
                    counted = count(run.seen)
                except BadPool as error:
                    raise Terminal(str(error)) from None
                run.become(replace(run.object, status=replace(run.object.status, ip_addresses=counted)))
            case Fate.WAITS | None:
                pass
            case never:
                assert_never(never)

    def conclude(self, run: Pass[Any, PoolSnapshot, PoolSnapshot]) -> None:
        """Set nothing: a pool has no conditions."""
        return


def count(pool: PoolSnapshot) -> InClusterIPPoolAddresses:
    """Return how many addresses of a pool are used and free. Raises BadPool."""
    addresses = assignable(pool.object.spec)
    total, used = addresses.size, len(pool.taken)
    outside = len({one for one in in_use(pool.taken) if one not in addresses})
    return InClusterIPPoolAddresses(total=min(total, MOST), used=used, free=min(max(total - used + outside, 0), MOST), out_of_range=outside)
