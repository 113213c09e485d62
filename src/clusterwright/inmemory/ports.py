"""Serve the ports of Pods in a simulated cluster: etcd's client port and the API servers' ports. All other ports refuse."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, Protocol

from clusterwright.api.meta import Json
from clusterwright.api.wire import Duplex
from clusterwright.apiserver.serving.tls import server_context
from clusterwright.inmemory import etcd, etcdport
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.runtime.logging import get_logger
from clusterwright.streams.pipe import TcpStream, duplex_pair

ETCD_PORT, API_SERVER_PORT = 2379, 6443
_log = get_logger("inmemory")


class Machines(Protocol):
    """The programs that run in each Pod."""

    def api_server_at(self, pod: str, port: int) -> tuple[KeyPair, bytes] | None:
        """Return the serving certificate of the API server at an address, and the authority of its clients; None if there is none."""

    def network_address(self) -> tuple[str, int] | None:
        """Return the network address of the API servers; None if they are not on the network."""

    def etcd_on(self, machine: str) -> tuple[KeyPair, bytes] | None:
        """Return the certificate of the etcd member on a machine, and the authority of its clients; None if none answers there."""

    def etcd_call(self, machine: str) -> etcdport.Call:
        """Return the handler for calls to the member on a machine."""


class Ports:
    """The ports of one cluster's Pods. Those served without a network run in tasks of ours, until `cut`."""

    def __init__(self, machines: Machines, cluster: str) -> None:
        self._machines = machines
        self._cluster = cluster
        self._served: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def dial(self, namespace: str, pod: str, port: int) -> Duplex:
        """Return a port of a Pod as a stream of bytes; raises OSError."""
        if namespace == "kube-system":
            if (held := self._machines.api_server_at(pod, port)) is not None:
                if (address := self._machines.network_address()) is not None:
                    return TcpStream(*await asyncio.open_connection(*address))
                context = _context(*held)
                return self._serve(pod, lambda far: etcdport.serve(far, context, _only_certificate))
            component, _, machine = pod.partition("etcd-")
            if not component and port == ETCD_PORT and (held := self._machines.etcd_on(machine)) is not None:
                context, call = _context(*held, require_client=True), self._machines.etcd_call(machine)
                return self._serve(pod, lambda far: etcdport.serve(far, context, call))
        raise ConnectionRefusedError(f"dial tcp4 127.0.0.1:{port}: connect: connection refused")

    def _serve(self, pod: str, serve: Callable[[Duplex], Coroutine[Any, Any, None]]) -> Duplex:
        near, far = duplex_pair()
        task = asyncio.get_running_loop().create_task(serve(far), name=f"port-forward {pod}")
        self._served.add(task)
        task.add_done_callback(lambda ended: self._ended(ended, far))
        return near

    def _ended(self, task: asyncio.Task[None], far: Duplex) -> None:
        self._served.discard(task)
        if task.cancelled():
            # perhaps before it began: then it has not closed the stream, and the peer would wait for an answer
            closing = task.get_loop().create_task(far.close(), name=f"{task.get_name()} closing")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        elif (error := task.exception()) is not None:
            _log.error("Port-forward failed", cause=error, cluster=self._cluster, tunnel=task.get_name())

    def cut(self) -> list[asyncio.Task[None]]:
        """End all served connections; return the tasks, to be awaited."""
        served = list(self._served)
        for task in served:
            task.cancel()
        return served


async def _only_certificate(method: str, body: Json) -> Json:
    raise etcd.EtcdRefused("only the certificate is available here")


@lru_cache(maxsize=1024)  # tunnels come and go, many a minute; what they are encrypted with stays
def _context(pair: KeyPair, authority: bytes, *, require_client: bool = False) -> ssl.SSLContext:
    context = server_context(pair, authority, require_client=require_client)
    context.set_alpn_protocols(etcdport.PROTOCOLS)
    return context
