"""ExtensionConfigs as a second manager sees them: another one discovers, this one registers what that one wrote, and writes nothing."""

from __future__ import annotations

import msgspec

from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.conditions import is_true
from clusterwright.controllers.extensionconfig.reconciler import COLD, register
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.runtime.client import Client
from clusterwright.runtime.reconcile import Result
from clusterwright.runtimesdk.registry import Registry
from clusterwright.runtimesdk.warmup import undiscovered


class ReadOnlyReconciler:
    """Registers what has been discovered."""

    def __init__(self, client: Client, registry: Registry) -> None:
        self._client = client
        self._registry = registry

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        if not self._registry.is_ready:
            return Result.after(COLD)
        found = await self._client.read(ExtensionConfig, key)
        if found is None or found.object.metadata.deletion_timestamp is not None:
            self._registry.remove(key.name)
            return Result()
        if is_true(found.object.status.conditions, "Paused"):
            return Result()
        config = msgspec.json.decode(found.raw)
        problem = undiscovered(config)
        if problem:
            raise PassFailed(f"failed to validate ExtensionConfig: {problem}")
        register(self._registry, config)
        return Result()
