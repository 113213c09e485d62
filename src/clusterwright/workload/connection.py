"""One connection to a workload cluster: a client with Nodes in memory, watches, tunnels to Pods."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

from cryptography.x509.oid import NameOID

from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Object
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wire import Duplex, Request, Transport
from clusterwright.kubeadm.certificates import load_certificate
from clusterwright.runtime.cache import Cache, CachedClient
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.informer import Entry, Informer
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.watcher import Watcher
from clusterwright.streams.tls import TlsStream
from clusterwright.workload.access import PortRefused
from clusterwright.workload.etcd import CLIENT_PORT, MemberClient, first_available

PROBE_TIMEOUT = 5.0
SYNC_TIMEOUT = 300.0
TLS_TIMEOUT = 15.0
KUBE_SYSTEM = "kube-system"
USER_AGENT = "clusterwright-workload"

_log = get_logger("workload")

Notify = Callable[[Any], None]
_Selection = tuple[GroupVersionKind, str, str]


class Connection:
    """A connection to an answering workload cluster. `closed` is called once if a background part of it fails."""

    def __init__(self, transport: Transport, kubeconfig: bytes, *, clock: Clock, random: Random, failed: Callable[[], None]) -> None:
        self._transport = transport
        self._clock = clock
        self.digest = digest(kubeconfig)
        self.rest = RestClient(transport, clock=clock, user_agent=USER_AGENT)
        self._random = random
        self._cache = Cache(self.rest, random=random)
        self.client = CachedClient(self.rest, self._cache)
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._informers: dict[_Selection, Informer] = {}
        self._watchers: set[tuple[str, _Selection]] = set()
        self._watching: dict[_Selection, asyncio.Task[None]] = {}
        self._is_closing = False

    async def open(self) -> None:
        """Connect to the API server and cache its Nodes; raises ApiError."""
        await self.probe()
        try:
            await self._cache.informer(Node)
            self._spawn(self._cache.run(), "workload cache")
            async with asyncio.timeout(SYNC_TIMEOUT):
                await self._cache.synced()
        except TimeoutError as error:
            raise ConnectionFailed(f"Nodes were not listed within {SYNC_TIMEOUT:g} s") from error

    async def probe(self) -> None:
        """Send GET to `/`; raises ApiError."""
        await self.rest.raw_get("/", timeout=PROBE_TIMEOUT)

    async def watch(self, watcher: str, kind: type[Object], notify: Notify, *, namespace: str, labels: str) -> None:
        """Call `notify` for every existing object and every change, once per watcher; raises ApiError."""
        selection = (gvk_of(kind), namespace, labels)
        if (watcher, selection) in self._watchers:
            return
        informer = await self._informer(kind, selection)
        if (watcher, selection) in self._watchers:  # added by another task meanwhile
            return
        self._watchers.add((watcher, selection))

        def handle(old: Entry | None, new: Entry | None, _initial: bool) -> None:
            if (watcher, selection) not in self._watchers:
                return
            if new is not None:
                notify(informer.decode(kind, new))
            elif old is not None:
                notify(_gone(informer.decode(kind, old), self._clock.now()))

        informer.subscribe(handle)

    def unwatch(self, watcher: str, kind: type[Object]) -> None:
        """End the watches of this name and kind; a selection without watchers is dropped."""
        for name, selection in [w for w in self._watchers if w[0] == watcher and w[1][0] == gvk_of(kind)]:
            self._watchers.discard((name, selection))
            if not any(other == selection for _, other in self._watchers) and (task := self._watching.pop(selection, None)) is not None:
                self._informers.pop(selection, None)
                task.cancel()

    async def _informer(self, kind: type[Object], selection: _Selection) -> Informer:
        gvk, namespace, labels = selection
        if kind is Node and not namespace and not labels:
            return await self._cache.informer(kind)
        if (present := self._informers.get(selection)) is not None:
            return present
        resource = await self.rest.resources.of(kind)
        if (present := self._informers.get(selection)) is not None:
            return present
        # not in the client's cache: only changes are wanted, reads of these kinds stay live
        informer = self._informers[selection] = Informer(gvk, namespace=namespace)
        watcher = Watcher(self.rest, resource, informer, random=Random(self._random.getrandbits(64)), namespace=namespace, labels=labels)
        self._watching[selection] = self._spawn(watcher.run(), f"watch {gvk.kind}")
        return informer

    async def etcd(self, nodes: list[str], context: ssl.SSLContext) -> MemberClient:
        """Return a client of the first member, in the order of `nodes`, that answers; raises EtcdError."""
        return await first_available(self._dial_etcd, nodes, context)

    async def _dial_etcd(self, node: str) -> Duplex:
        return await forward(self._transport, KUBE_SYSTEM, f"etcd-{node}", CLIENT_PORT)

    async def serving_certificate_expiry(self, node: str, port: int) -> datetime:
        """Return NotAfter of the certificate that the API server on `node` presents; raises ConnectionFailed or another ApiError."""
        pod = f"kube-apiserver-{node}"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # whoever answers in the tunnel, only the date on the certificate is looked at
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            async with asyncio.timeout(TLS_TIMEOUT):
                stream = TlsStream(await forward(self._transport, KUBE_SYSTEM, pod, port), context, pod)
                try:
                    await stream.handshake()
                    return certificate_expiry(stream.peer_certificate())
                finally:
                    await stream.close()
        except ConnectionRefusedError as error:
            raise PortRefused(str(error)) from error
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionFailed(f"failed to read the certificate of {pod}: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Stop everything that runs for this connection; safe to call twice."""
        self._is_closing = True
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._transport.close()

    def _spawn(self, coroutine: Any, name: str) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if self._is_closing:
            return
        _log.warning("Connection part ended", part=task.get_name(), error=str(error))
        self._failed()


async def forward(transport: Transport, namespace: str, pod: str, port: int) -> Duplex:
    """Return a port of a Pod as a stream of bytes; raises ApiError, OSError."""
    return await transport.forward(Request(method="POST", path=f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"), port)


def _gone(obj: Any, now: datetime) -> Any:
    """Return the last state of a deleted object: always with a deletion time, so that handlers can recognise it."""
    if obj.metadata.deletion_timestamp is not None:
        return obj
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=now))


def digest(kubeconfig: bytes) -> str:
    """Return a digest that identifies a kubeconfig, which need not be kept then."""
    return hashlib.sha256(kubeconfig).hexdigest()


def certificate_expiry(der: bytes) -> datetime:
    """Return NotAfter of an API server's certificate; raises ValueError for any other certificate."""
    certificate = load_certificate(der)
    names = [str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if "kube-apiserver" not in names:
        raise ValueError("the certificate is not an API server's")
    return certificate.not_valid_after_utc
