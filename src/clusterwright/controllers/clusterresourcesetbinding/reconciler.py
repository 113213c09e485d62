"""The ClusterResourceSetBinding's own steps of a pass. This is the smallest controller: read it first."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from clusterwright.api.addons import ClusterResourceSetBinding
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.clusterresourcesetbinding.plan import FATE, BindingSnapshot, Fate, cluster_name, modern
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.reconcile import Reconciler

SHAPE = Shape(kind=ClusterResourceSetBinding, owned=(), main=False)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of ClusterResourceSetBindings."""
    return KindReconciler(deps, SHAPE, Bindings(deps))


@dataclass(frozen=True, slots=True)
class Named:
    """The Cluster of a binding. It never pauses the binding."""

    key: ObjectKey
    paused: bool = False


class Bindings(Kind[ClusterResourceSetBinding, Named, BindingSnapshot, BindingSnapshot]):
    """Deletes bindings of Clusters that are gone."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._has_hooks = deps.features["RuntimeSDK"] and deps.features["ClusterTopology"]

    async def owner(self, obj: ClusterResourceSetBinding) -> Named:
        """Return the key of the Cluster, which need not exist. Raises PassFailed."""
        try:
            return Named(ObjectKey(obj.metadata.namespace, cluster_name(obj)))
        except ValueError as error:
            raise PassFailed(str(error)) from None

    async def observe(self, obj: ClusterResourceSetBinding, owner: Named) -> BindingSnapshot:
        """Read the Cluster."""
        cluster = await self._client.find(Cluster, owner.key)
        return BindingSnapshot(object=obj, now=self._deps.clock.now(), name=owner.key.name, cluster=cluster, has_hooks=self._has_hooks)

    async def act(self, run: Pass[ClusterResourceSetBinding, BindingSnapshot, BindingSnapshot]) -> None:
        """Delete the binding, or write the Cluster into its spec."""
        match run.decide(FATE).chosen(Fate):
            case Fate.GOES:
                with suppress(NotFound):
                    await self._client.delete(ClusterResourceSetBinding, run.object.key, uid=run.object.metadata.uid)
            case Fate.STAYS | Fate.WAITS:
                run.become(modern(run.object, run.seen.name))
            case None:
                pass
            case never:
                assert_never(never)

    def conclude(self, run: Pass[ClusterResourceSetBinding, BindingSnapshot, BindingSnapshot]) -> None:
        """Set nothing: a binding has no status."""
        return
