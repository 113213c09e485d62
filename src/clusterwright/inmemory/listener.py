"""Simulated clusters on the network: one loopback endpoint each, TLS with client certificates."""

from __future__ import annotations

import socket
import ssl

from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.inmemory.cluster import SimulatedCluster


class TlsListener:
    """A `cluster.Listener` that serves with aiohttp.

    A port is reserved as soon as it is chosen, long before anything listens there: a bound socket that does not listen refuses connections,
    and keeps other processes from taking it.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], HttpServer] = {}
        self._held: dict[tuple[str, int], socket.socket] = {}

    async def start(self, cluster: SimulatedCluster, context: ssl.SSLContext) -> None:
        """Listen at the cluster's port."""
        server = HttpServer(cluster.server, Authenticator(sources=[cluster.server.token_user]), advertise=False)
        await server.start(cluster.host, cluster.port, context)
        self._running[cluster.host, cluster.port] = server

    async def stop(self, cluster: SimulatedCluster) -> None:
        """Stop listening and close open connections; the port stays reserved."""
        server = self._running.pop((cluster.host, cluster.port), None)
        if server is not None:
            await server.stop()

    def hold(self, host: str, port: int) -> bool:
        """Reserve a port; return False if another process has it."""
        if (host, port) in self._held:
            return True
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind((host, port))
        except OSError:
            holder.close()
            return False
        # only now, so that the bind above was exclusive, and our own second listener may bind the port too
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held[host, port] = holder
        return True

    def release(self, host: str, port: int) -> None:
        """Release a reserved port."""
        holder = self._held.pop((host, port), None)
        if holder is not None:
            holder.close()
