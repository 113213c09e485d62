"""How the ExtensionConfig controller is wired: what it watches, and whom each change wakes."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.extensionconfig.reconciler import INJECT_ANNOTATION, make
from clusterwright.controllers.wiring import ControllerDefinition
from clusterwright.runtime.client import Reader
from clusterwright.runtime.reconcile import Watch


async def configs_of_secret(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """The configs that take their CA from the Secret."""
    named = f"{secret.metadata.namespace}/{secret.metadata.name}"
    return tuple(c.key for c in await reader.list(ExtensionConfig) if c.metadata.annotations.get(INJECT_ANNOTATION) == named)


CONTROLLER = ControllerDefinition(
    name="extensionconfig",
    kind=ExtensionConfig,
    watches=(Watch(Secret, configs_of_secret),),
    make=make,
    gate="RuntimeSDK",
)
