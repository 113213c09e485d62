"""Access to workload clusters, for rules that read them. The connections belong to the controllers, which share them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ConnectionFailed

Open = Callable[[ObjectKey], Awaitable[Reader]]


class Workloads:
    """The connections, empty until they are shared: admission runs before the controllers do, and also without any."""

    def __init__(self) -> None:
        self._open: Open | None = None

    def lend(self, open: Open) -> None:
        """Use these connections from now on."""
        self._open = open

    async def reader(self, cluster: ObjectKey) -> Reader:
        """Return a reader of a Cluster's workload cluster; raises an ApiError if it cannot be reached."""
        if self._open is None:
            raise ConnectionFailed("nobody here has connections to workload clusters")
        return await self._open(cluster)
