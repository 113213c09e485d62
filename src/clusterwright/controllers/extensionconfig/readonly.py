"""ExtensionConfigs in a second manager: another manager discovers them, this one registers the result. It writes nothing."""

from __future__ import annotations

import msgspec

from clusterwright.api.runtime import ExtensionConfig
from clusterwright.conditions import is_true
from clusterwright.controllers.extensionconfig.reconciler import ConfigPass, RegisteredConfigs, register
from clusterwright.controllers.extensionconfig.snapshot import ExtensionConfigDone
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.reconciler import KindReconciler, Shape
from clusterwright.controllers.wiring import NoEvents, PassTools
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.runtimesdk.registry import Registry
from clusterwright.runtimesdk.warmup import undiscovered

SHAPE = Shape(kind=ExtensionConfig, done=ExtensionConfigDone, owned=(), main=False)


def make(tools: PassTools, registry: Registry) -> Reconciler:
    """Return the reconciler of ExtensionConfigs that another manager discovers."""
    silent = PassTools(
        client=tools.client, clock=tools.clock, random=tools.random, events=NoEvents(), reports=tools.reports, trace=tools.trace
    )
    return KindReconciler(silent, SHAPE, DiscoveredConfigs(tools, registry))


class DiscoveredConfigs(RegisteredConfigs):
    """Registers discovered extensions."""

    async def owner(self, obj: ExtensionConfig) -> Unowned:
        """Return a paused owner if the discovering manager has paused the config: then its registration stays."""
        return Unowned(is_true(obj.status.conditions, "Paused"))

    async def act(self, run: ConfigPass) -> None:
        """Register the handlers, if their record is complete. Raises PassFailed."""
        config = msgspec.json.decode(run.original.raw)
        if problem := undiscovered(config):
            raise PassFailed(f"failed to validate ExtensionConfig: {problem}")
        register(self.registry, config)

    def conclude(self, run: ConfigPass) -> None:
        """Set nothing: the discovering manager writes the status."""
        return
