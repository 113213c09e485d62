"""Wire the ExtensionConfig controller: its watches, and the configs that each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.extensionconfig import readonly, reconciler
from clusterwright.controllers.extensionconfig.reconciler import INJECT_ANNOTATION
from clusterwright.controllers.wiring import Access, ControllerDefinition, Dependencies
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Reconciler, Watch


async def configs_of_secret(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs that take their CA from the Secret."""
    named = f"{secret.metadata.namespace}/{secret.metadata.name}"
    return tuple(c.key for c in await reader.list(ExtensionConfig) if c.metadata.annotations.get(INJECT_ANNOTATION) == named)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of ExtensionConfigs: one that discovers, or one that registers what another manager discovered."""
    if deps.runtime is None:
        raise ValueError("RuntimeSDK needs a runtime client")
    if deps.options.get("runtime-extensions-read-only"):
        return readonly.make(deps, deps.runtime.registry)
    return reconciler.make(deps, deps.runtime)


CONTROLLER = ControllerDefinition(
    name="extensionconfig",
    kind=ExtensionConfig,
    watches=(Watch(Secret, configs_of_secret, why="the CA of the extension is copied from it"),),
    make=make,
    access=(Access("namespaces", "get"),),  # whether a handler is meant for an object is told by the labels of its Namespace
    gate="RuntimeSDK",
)
