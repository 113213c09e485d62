"""Reads workload clusters, for rules that ask what runs there. The connections belong to the controllers, which lend them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ConnectionFailed

Open = Callable[[ObjectKey], Awaitable[Reader]]


class Workloads:
    """Empty until somebody lends connections: admission serves before the controllers run, and also where none ever do."""

    def __init__(self) -> None:
        self._open: Open | None = None

    def lend(self, open: Open) -> None:
        """From now on clusters are reached like this."""
        self._open = open

    async def reader(self, cluster: ObjectKey) -> Reader:
        """Reads in the workload cluster of a Cluster; raises an ApiError where it cannot be reached."""
        if self._open is None:
            raise ConnectionFailed("nobody here has connections to workload clusters")
        return await self._open(cluster)
