"""One pass over a ClusterResourceSetBinding."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from clusterwright.api.addons import ClusterResourceSetBinding
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.controllers.clusterresourcesetbinding.plan import FATE, BindingSnapshot, Fate, cluster_name, is_owned
from clusterwright.controllers.external import refers_to
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.reconciler import STEP
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reconcile import Result


class Bindings:
    """Reconciles bindings. They have no conditions, so that there is nothing for the usual pass to say."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._patcher = Patcher(deps.client, deps.clock, deps.random)
        self._has_hooks = deps.features["RuntimeSDK"] and deps.features["ClusterTopology"]

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._client.read(ClusterResourceSetBinding, key)
        if original is None:
            self._deps.trace(key, {STEP: "not-found"})
            return Result.await_change()
        try:
            name = cluster_name(original.object)
        except ValueError as error:
            raise PassFailed(str(error)) from None
        await self._modernize(original, name)
        cluster = await self._client.find(Cluster, ObjectKey(key.namespace, name))
        decision = FATE.decide(BindingSnapshot(cluster, self._has_hooks))
        self._deps.trace(key, {STEP: "normal", FATE.name: decision.row})
        match decision.chosen(Fate):
            case Fate.GOES:
                await self._delete(original.object)
            case Fate.STAYS | Fate.WAITS | None:
                pass
            case never:
                assert_never(never)
        return Result.await_change()

    async def _modernize(self, original: Original[ClusterResourceSetBinding], cluster: str) -> None:
        """The spec says which Cluster it is; an owner reference, which old versions had for that, goes."""
        binding = original.object
        if binding.spec.cluster_name and not is_owned(binding, cluster):
            return
        metadata = binding.metadata
        owners = tuple(r for r in metadata.owner_references if not refers_to(r, CORE_GROUP, "Cluster", cluster))
        modern = replace(binding, metadata=replace(metadata, owner_references=owners), spec=replace(binding.spec, cluster_name=cluster))
        await self._patcher.patch(original, modern)

    async def _delete(self, binding: ClusterResourceSetBinding) -> None:
        try:
            await self._client.delete(ClusterResourceSetBinding, binding.key, uid=binding.metadata.uid)
        except NotFound:
            return


def make(deps: Dependencies) -> Bindings:
    """The reconciler of ClusterResourceSetBindings."""
    return Bindings(deps)
