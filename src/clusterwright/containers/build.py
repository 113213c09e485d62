"""The provider of containers in a manager: its controllers, and the events of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright import provider
from clusterwright.api.meta import ObjectKey
from clusterwright.containers import naming
from clusterwright.containers.clusters import DevLoadBalancers, DockerLoadBalancers
from clusterwright.containers.machines import DevContainers, DockerContainers
from clusterwright.containers.site import NODE_IMAGE, Site
from clusterwright.engine import Engine, EngineError
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.manager import Manager

log = get_logger(__name__)
PROVIDERS = (DevContainers, DevLoadBalancers, DockerContainers, DockerLoadBalancers)
RETRY = 5.0
"""Seconds between two attempts to subscribe to the events of an engine."""
MATTERS = frozenset({"start", "die", "died", "stop", "kill", "oom", "destroy", "remove", "restart", "pause", "unpause"})
"""The actions in events that can change the state of a machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The engine of containers, and the defaults for their images and settings."""

    engine: Engine
    node_image: str = NODE_IMAGE
    """The node image; without a tag, each machine's Kubernetes version is the tag."""
    load_balancer_image: str = ""
    entrypoint: Sequence[str] = ()
    """The entrypoint of nodes, instead of the image's."""
    name_servers: Sequence[str] = ()
    network: str = naming.NETWORK
    has_modules: bool = True
    allows_host_mounts: bool = False
    """Whether machines may mount paths of the engine's host."""


def add(manager: Manager, host: Host) -> None:
    """Add controllers for machines and clusters of containers on a host to a manager."""
    site = Site(
        host.engine,
        manager.client,
        node_image=host.node_image,
        entrypoint=host.entrypoint,
        name_servers=host.name_servers,
        has_modules=host.has_modules,
        network=host.network,
        load_balancer_image=host.load_balancer_image,
        allows_host_mounts=host.allows_host_mounts,
    )
    for one in PROVIDERS:
        provider.add(manager, one, site, name=f"{one.kind.__name__.lower()}-containers")
    manager.add_part("containers", Listening(site, manager.clock).run)


class Listening:
    """Requeues objects when something happens to their containers. While the engine does not answer, only regular checks remain."""

    def __init__(self, site: Site, clock: Clock) -> None:
        self._site = site
        self._clock = clock
        self._complaint = ""

    async def run(self) -> None:
        """Handle events until cancelled."""
        try:
            while True:
                try:
                    await self._listen()
                except (EngineError, ApiError) as error:
                    if str(error) != self._complaint:
                        log.warning("The container engine sends no events", error=str(error))
                    self._complaint = str(error)
                await self._clock.sleep(RETRY)
        finally:
            await self._site.close()

    async def _listen(self) -> None:
        engine = self._site.engine
        labels = {naming.PLANE_LABEL: await self._site.plane()}
        async for event in engine.events(labels, await engine.now()):
            self._complaint = ""
            self.heard(event)

    def heard(self, event: dict[str, Any]) -> None:
        """Requeue the object that an event is about."""
        action, told = str(event.get("Action", "")), (event.get("Actor") or {}).get("Attributes") or {}
        if action not in MATTERS:
            return
        key = ObjectKey(str(told.get(naming.NAMESPACE_LABEL, "")), str(told.get(naming.OBJECT_LABEL, "")))
        for one in self._site.providers:
            if one.kind.__name__ == told.get(naming.KIND_LABEL):
                one.wake(key, f"its container: {action}")
