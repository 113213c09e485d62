"""Initialise the registry with all existing ExtensionConfigs.

A manager that discovers extensions calls each of them in the following passes: until then hooks of undiscovered extensions fail, so that
one dead extension only blocks its users. A manager that only reads another manager's discoveries (`read_only`) takes them from the status.
"""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtimesdk.registry import Registry

RETRY: Final = 2.0


def undiscovered(config: Json) -> str:
    """Return why another manager's discovery of an ExtensionConfig does not count yet; empty: it does."""
    metadata = config["metadata"]
    name, generation = metadata["name"], metadata.get("generation") or 0
    if not ((config.get("spec") or {}).get("clientConfig") or {}).get("caBundle"):
        return f"caBundle is not set on ExtensionConfig {name}"
    conditions = (config.get("status") or {}).get("conditions") or ()
    found = next((c for c in conditions if c.get("type") == "Discovered"), None)
    if found is None:
        return f"Discovered condition not yet set on ExtensionConfig {name}"
    if found.get("status") != "True":
        return f"Discovered condition on ExtensionConfig {name} must have status: True (instead it has: {found.get('status')})"
    observed = found.get("observedGeneration") or 0
    if observed != generation:
        return f"Discovered condition on ExtensionConfig {name} must have observedGeneration: {generation} (instead it has: {observed})"
    return ""


def _is_paused(config: Json) -> bool:
    return PAUSED_ANNOTATION in (config["metadata"].get("annotations") or {})


class WarmUp:
    """Reads all ExtensionConfigs once, live, and initialises the registry with them."""

    def __init__(self, client: Client, clock: Clock, registry: Registry, *, read_only: bool = False) -> None:
        self._client = client
        self._clock = clock
        self._registry = registry
        self._read_only = read_only
        self._began = False

    async def run(self) -> None:
        """Retry until it is done."""
        self._began = True
        while not self._registry.is_ready:
            try:
                found = await self._client.live.list(GroupVersionKind.of(ExtensionConfig().api_version, "ExtensionConfig"))
            except ApiError:
                await self._clock.sleep(RETRY)
                continue
            configs = (dict(c.json) for c in found if c.metadata.deletion_timestamp is None)
            self._registry.start(configs, known=lambda c: not undiscovered(c) if self._read_only else _is_paused(c))

    @property
    def readiness(self) -> bool | str:
        """Return whether every extension can be called, or which cannot; a process that waits to lead calls none."""
        if not self._began:
            return True
        if not self._registry.is_ready:
            return "ExtensionConfigs could not be listed yet"
        waiting = self._registry.undiscovered
        return f"not discovered yet: {', '.join(waiting)}" if waiting else True
