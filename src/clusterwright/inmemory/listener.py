"""Simulated clusters on the network: one loopback port each, TLS with client certificates."""

from __future__ import annotations

import socket
import ssl

from clusterwright.apiserver.authentication import Authenticator
from clusterwright.apiserver.http import HttpServer
from clusterwright.inmemory.cluster import SimulatedCluster


class TlsListener:
    """A `cloud.Listener` that serves with aiohttp."""

    def __init__(self) -> None:
        self._running: dict[int, HttpServer] = {}

    async def start(self, cluster: SimulatedCluster, context: ssl.SSLContext) -> None:
        """Listen at the cluster's port."""
        server = HttpServer(cluster.server, Authenticator(sources=[cluster.server.token_user]))
        await server.start(cluster.host, cluster.port, context)
        self._running[cluster.port] = server

    async def stop(self, cluster: SimulatedCluster) -> None:
        """Stop listening and cut open connections."""
        server = self._running.pop(cluster.port, None)
        if server is not None:
            await server.stop()

    @staticmethod
    def is_free(host: str, port: int) -> bool:
        """Whether nobody listens at the port."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
        return True
