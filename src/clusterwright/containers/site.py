"""The engine with cached facts: the plane's identity, its cgroups, pulled images, the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import ObjectKey
from clusterwright.containers import naming
from clusterwright.containers.images import NotLoaded, load
from clusterwright.engine import Engine, EngineError
from clusterwright.provider import InfraClusters, InfraMachines, ProvisionFailed
from clusterwright.runtime.client import Reader

Wake = Callable[[ObjectKey, str], None]
NODE_IMAGE = "kindest/node"


class Site:
    """The engine that runs the containers of one plane."""

    def __init__(
        self,
        engine: Engine,
        reader: Reader,
        *,
        node_image: str = NODE_IMAGE,
        entrypoint: Sequence[str] = (),
        name_servers: Sequence[str] = (),
        has_modules: bool = True,
        network: str = naming.NETWORK,
        load_balancer_image: str = "",
        allows_host_mounts: bool = False,
    ) -> None:
        self.engine = engine
        self.entrypoint = entrypoint
        self.name_servers = tuple(name_servers)
        self.has_modules = has_modules
        """Whether the host has kernel modules for nodes."""
        self.providers: list[InfraMachines[Any] | InfraClusters[Any]] = []
        """The providers that use it: events of the engine requeue their objects."""
        self._reader = reader
        self._node_image = node_image
        self._network = network
        self.load_balancer_image = load_balancer_image
        """The image for clusters that name none, instead of the default."""
        self.allows_host_mounts = allows_host_mounts
        """Whether machines may mount paths of the host."""
        self._plane = ""
        self._old_cgroups: bool | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._said: dict[str, str] = {}
        self._failed: dict[str, str] = {}

    async def plane(self) -> str:
        """Return the plane's identity: the UID of its namespace kube-system; raises ApiError."""
        if not self._plane:
            self._plane = (await self._reader.get(Namespace, ObjectKey("", "kube-system"))).metadata.uid
        return self._plane

    async def has_old_cgroups(self) -> bool:
        """Return whether the host has cgroups of version 1; cached."""
        if self._old_cgroups is None:
            self._old_cgroups = str((await self.engine.info()).get("CgroupVersion", "2")) == "1"
        return self._old_cgroups

    def image(self, version: str) -> str:
        """Return the node image for a Kubernetes version: a tag is added unless the configured image has one."""
        has_tag = ":" in self._node_image.rpartition("/")[2] or "@" in self._node_image
        return self._node_image if has_tag else f"{self._node_image}:{version}"

    async def network(self) -> str:
        """Return the network of all nodes, created if it does not exist: with IPv6 where the engine and its host have that.

        Some engines choose an IPv6 range themselves, others must be given one.
        """
        if await self.engine.network(self._network) is not None:
            return self._network
        labels = {naming.PLANE_LABEL: await self.plane()}
        for ranges in ((), (naming.ipv6_range(self._network),)):
            with suppress(EngineError):
                await self.engine.create_network(self._network, labels, subnets=ranges, has_ipv6=True)
                return self._network
        await self.engine.create_network(self._network, labels)
        return self._network

    async def has_ipv6(self) -> bool:
        """Return whether the network of all nodes has IPv6."""
        found = await self.engine.network(self._network) or {}
        return any(":" in str(one.get("Subnet")) for one in (found.get("IPAM") or {}).get("Config") or ())

    async def pull(self, image: str, key: ObjectKey, wake: Wake) -> str:
        """Pull an image, once for all callers. Return the progress.

        Raises ProvisionFailed with the last error until a pull succeeds.
        """
        await self.errand(f"pull {image}", lambda: self._pull(image), key, wake)
        return f"Waiting for an image: {self._said.get(image, f'pulling {image}')}"

    async def _pull(self, image: str) -> None:
        async for said in self.engine.pull(image):
            self._said[image] = said
        self._said.pop(image, None)

    async def load(self, images: Sequence[str], node: str, key: ObjectKey, wake: Wake) -> bool:
        """Load images into a node. Return whether they are there; raises ProvisionFailed until it has succeeded."""
        return await self.errand(f"load images into {node}", lambda: load(self.engine, images, [node]), key, wake)

    async def errand(self, name: str, work: Callable[[], Coroutine[Any, Any, None]], key: ObjectKey, wake: Wake) -> bool:
        """Run something that takes longer than a pass, once for all callers. Return whether it has just finished.

        Raises ProvisionFailed with the last error until it succeeds.
        """
        task = self._tasks.get(name)
        if task is not None and task.done() and not task.cancelled():
            del self._tasks[name]
            error = task.exception()
            if error is None:
                self._failed.pop(name, None)
                return True
            if not isinstance(error, EngineError | NotLoaded):
                raise error
            self._failed[name] = str(error)  # the next attempt follows when this one was told, and waited for
        elif task is None:
            task = self._tasks[name] = asyncio.create_task(work(), name=name)
            task.add_done_callback(lambda _: wake(key, f"{name}: ended"))
        if name in self._failed:
            raise ProvisionFailed(self._failed[name])
        return False

    async def close(self) -> None:
        """End background work, and the connection."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self.engine.close()
