"""The cluster cache: one connection per workload cluster, probed, kept while it works, told about when it changes.

The reconcile of one Cluster, row by row; it never fails. The first row that matches:

    Cluster is gone, or not ours by the watch filter      disconnect and forget                     -
    Cluster cannot be read                                 -                                         after 10 s
    infrastructure not provisioned                         -                                         a Cluster event
    not connected, failed less than 30 s ago               -                                         the rest of the 30 s
    not connected, connecting fails                        remember the failure                      after 30 s
    connected, probed less than 10 s ago                   -                                         the rest of the 10 s
    probe answered 401                                     disconnect                                at once (1 s)
    probe failed for the fifth time                        disconnect                                after 30 s
    probe succeeded, or failed less often                  -                                         after 10 s

A kubeconfig Secret that appears or changes, and whoever knows that an endpoint has come up (`wake`), cut the waiting short.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from cryptography import x509

from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Node, Secret
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import WATCH_FILTER_LABEL
from clusterwright.api.wire import Transport
from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import KeyPair, Purpose, secret_name
from clusterwright.runtime.cache import Cache, CachedClient
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, Unauthorized
from clusterwright.runtime.informer import Entry
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.metrics import Counter, Gauge, Registry
from clusterwright.runtime.reconcile import Mapper, Result
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.transports import Throttled
from clusterwright.workload.access import EtcdClient, EtcdError, Health, NotConnected
from clusterwright.workload.etcd import EtcdCredentials, client_context, first_available
from clusterwright.workload.http1 import TlsStream
from clusterwright.workload.portforward import forward

PROBE_TIMEOUT = 5.0
PROBE_INTERVAL = timedelta(seconds=10)
PROBE_FAILURES = 5
CONNECT_RETRY = timedelta(seconds=30)
FALLBACK = timedelta(seconds=10)
SYNC_TIMEOUT = 300.0
_QPS, _BURST = 20.0, 30
_AT_ONCE = timedelta(seconds=1)
_ETCD_CERTIFICATE_AGE = timedelta(hours=24)
_ETCD_PORT, _API_SERVER_PORT = 2379, 6443

_log = get_logger("clustercache")

Connect = Callable[[ObjectKey, bytes], Awaitable[Transport]]
"""A transport to the cluster that a kubeconfig describes; raises ApiError or ValueError."""


@dataclass(frozen=True, slots=True)
class Source:
    """Who is told when a connection comes, goes, or has failed for a while."""

    notify: Callable[[ObjectKey], Awaitable[None]]
    failing_for: timedelta | None = None


@dataclass(slots=True)
class _Connection:
    """A live connection; gone as a whole when it breaks."""

    transport: Transport
    cache: Cache
    client: CachedClient
    task: asyncio.Task[None]
    watchers: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Accessor:
    """What is known of one Cluster. The health survives disconnecting."""

    health: Health = field(default_factory=Health)
    connection: _Connection | None = None
    last_connect_failure: datetime | None = None
    etcd: tuple[str, datetime, Any] | None = None
    told: dict[int, datetime] = field(default_factory=dict)


class ClusterCache:
    """`WorkloadClusters`, and the reconciler that keeps the connections."""

    def __init__(
        self,
        *,
        client: Client,
        clock: Clock,
        random: Random,
        keys: KeySource,
        connect: Connect,
        watch_filter: str = "",
        registry: Registry | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._keys = keys
        self._connect = connect
        self._watch_filter = watch_filter
        self._accessors: dict[ObjectKey, _Accessor] = {}
        self._sources: list[Source] = []
        self._enqueue: Callable[[ObjectKey, str], None] | None = None
        labels = ("cluster_name", "cluster_namespace")
        self._up = Gauge("capi_cluster_cache_connection_up", "Whether the connection to the workload cluster is up", labels)
        self._healthy = Gauge("capi_cluster_cache_healthcheck", "Whether the last probe of the workload cluster succeeded", labels)
        self._probes = Counter("capi_cluster_cache_healthchecks_total", "Probes by outcome", (*labels, "status"))
        for metric in (self._up, self._healthy, self._probes):
            if registry is not None:
                registry.add(metric)

    # ------------------------------------------------------------------------------------------------ wiring

    def add_source(self, source: Source) -> None:
        """Tell `source` of every change from now on."""
        self._sources.append(source)

    def bind(self, enqueue: Callable[[ObjectKey, str], None]) -> None:
        """How the cache wakes its own reconcile."""
        self._enqueue = enqueue

    def wake(self, cluster: ObjectKey) -> None:
        """Somebody knows better: try to connect, or probe, now rather than later."""
        if (accessor := self._accessors.get(cluster)) is not None:
            accessor.last_connect_failure = None
            accessor.health = replace(accessor.health, last_probe=None)
        if self._enqueue is not None:
            self._enqueue(cluster, "the endpoint has changed")

    async def close(self) -> None:
        """Drop every connection."""
        for accessor in self._accessors.values():
            await self._disconnect(accessor)

    # --------------------------------------------------------------------------------------------- reconcile

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass over a Cluster's connection; the rows above."""
        try:
            cluster = await self._client.find(Cluster, key)
        except ApiError as error:
            _log.warning("Cluster cannot be read", cluster=str(key), error=str(error))
            return Result.after(FALLBACK)
        if cluster is None or not self._is_ours(cluster):
            await self._forget(key)
            return Result.await_change()
        accessor = self._accessors.setdefault(key, _Accessor())
        initialization = cluster.status.initialization
        if not (initialization and initialization.infrastructure_provisioned):
            return Result.await_change()
        was_connected = accessor.connection is not None
        delay = await self._advance(key, accessor)
        self._measure(key, accessor)
        await self._tell(key, accessor, changed=was_connected != (accessor.connection is not None))
        return Result.after(delay)

    def _is_ours(self, cluster: Cluster) -> bool:
        return not self._watch_filter or cluster.metadata.labels.get(WATCH_FILTER_LABEL) == self._watch_filter

    async def _advance(self, key: ObjectKey, accessor: _Accessor) -> timedelta:
        now = self._clock.now()
        if accessor.connection is None:
            failed = accessor.last_connect_failure
            if failed is not None and now < failed + CONNECT_RETRY:
                return failed + CONNECT_RETRY - now
            if not await self._try_connect(key, accessor):
                return CONNECT_RETRY
            return PROBE_INTERVAL
        probed = accessor.health.last_probe
        if probed is not None and now < probed + PROBE_INTERVAL:
            return probed + PROBE_INTERVAL - now
        return await self._probe(key, accessor, accessor.connection)

    async def _try_connect(self, key: ObjectKey, accessor: _Accessor) -> bool:
        transport: Transport | None = None
        try:
            transport = await self._transport(key)
            async with asyncio.timeout(PROBE_TIMEOUT):
                await RestClient(transport, clock=self._clock).raw_get("/")
            accessor.connection = await self._open(key, transport)
        except (ApiError, ValueError, TimeoutError, OSError) as error:
            now = self._clock.now()
            accessor.last_connect_failure = now
            accessor.health = replace(
                accessor.health, connected=False, last_probe=now, consecutive_failures=accessor.health.consecutive_failures + 1
            )
            _log.info("Connecting to the workload cluster failed", cluster=str(key), error=str(error) or type(error).__name__)
            if transport is not None:
                await transport.close()
            return False
        now = self._clock.now()
        accessor.last_connect_failure = None
        accessor.health = Health(connected=True, last_probe=now, last_probe_success=now, consecutive_failures=0)
        _log.info("Connected to the workload cluster", cluster=str(key))
        return True

    async def _transport(self, key: ObjectKey) -> Transport:
        name = secret_name(key.name, Purpose.KUBECONFIG)
        try:
            secret = await self._client.get(Secret, ObjectKey(key.namespace, name))
        except ApiError as error:
            error.add_note("error creating REST config: error getting kubeconfig secret")
            raise
        return Throttled(await self._connect(key, secret.data.get("value", b"")), self._clock, qps=_QPS, burst=_BURST)

    async def _open(self, key: ObjectKey, transport: Transport) -> _Connection:
        rest = RestClient(transport, clock=self._clock, user_agent="clusterwright")
        cache = Cache(rest, random=Random(self._random.getrandbits(64)))
        await cache.informer(Node)
        task = asyncio.create_task(cache.run(), name=f"workload cluster {key}")
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                await cache.synced()
        except BaseException:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            raise
        return _Connection(transport, cache, CachedClient(rest, cache), task)

    async def _probe(self, key: ObjectKey, accessor: _Accessor, connection: _Connection) -> timedelta:
        failure: Exception | None = None
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await connection.client.raw_get("/")
        except (ApiError, TimeoutError, OSError) as error:
            failure = error
        now = self._clock.now()
        self._probes.add(key.name, key.namespace, "success" if failure is None else "error")
        if failure is None:
            accessor.health = Health(connected=True, last_probe=now, last_probe_success=now, consecutive_failures=0)
            return PROBE_INTERVAL
        failures = accessor.health.consecutive_failures + 1
        accessor.health = replace(accessor.health, last_probe=now, consecutive_failures=failures)
        _log.info("Probing the workload cluster failed", cluster=str(key), error=str(failure) or type(failure).__name__, failures=failures)
        if isinstance(failure, Unauthorized):
            await self._disconnect(accessor)
            return _AT_ONCE
        if failures >= PROBE_FAILURES:
            await self._disconnect(accessor)
            return CONNECT_RETRY
        return PROBE_INTERVAL

    async def _disconnect(self, accessor: _Accessor) -> None:
        connection, accessor.connection = accessor.connection, None
        accessor.health = replace(accessor.health, connected=False)
        if connection is None:
            return
        connection.task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await connection.task
        await connection.transport.close()

    async def _forget(self, key: ObjectKey) -> None:
        accessor = self._accessors.pop(key, None)
        if accessor is not None:
            await self._disconnect(accessor)

    # ------------------------------------------------------------------------------------------------ telling

    async def _tell(self, key: ObjectKey, accessor: _Accessor, *, changed: bool) -> None:
        now = self._clock.now()
        success = accessor.health.last_probe_success
        for number, source in enumerate(self._sources):
            due = changed
            if not due and source.failing_for is not None and accessor.health.consecutive_failures:
                threshold = (success + source.failing_for) if success else None
                told = accessor.told.get(number)
                due = (told is None or (threshold is not None and told < threshold)) and (threshold is None or threshold < now)
            if due:
                accessor.told[number] = now
                await source.notify(key)

    def _measure(self, key: ObjectKey, accessor: _Accessor) -> None:
        self._up.set(float(accessor.connection is not None), key.name, key.namespace)
        self._healthy.set(float(accessor.connection is not None and not accessor.health.consecutive_failures), key.name, key.namespace)

    # ------------------------------------------------------------------------------------------------- access

    def health(self, cluster: ObjectKey) -> Health:
        """What the connection probe found."""
        accessor = self._accessors.get(cluster)
        return Health() if accessor is None else accessor.health

    def inspected(self, cluster: ObjectKey) -> bool:
        """Live clusters are always inspected anew."""
        return False

    async def client(self, cluster: ObjectKey) -> Client:
        """A client of the workload cluster; raises NotConnected."""
        return self._connection(cluster, "error getting client").client

    def _connection(self, cluster: ObjectKey, what: str) -> _Connection:
        accessor = self._accessors.get(cluster)
        if accessor is None or accessor.connection is None:
            raise NotConnected(what)
        return accessor.connection

    async def watch(self, cluster: ObjectKey, watcher: str, kind: type[Object], notify: Callable[[Object], None]) -> None:
        """Call `notify` for changes of the kind there; once per watcher name and connection."""
        connection = self._connection(cluster, f"error creating watch {watcher} for {kind.__name__}")
        if watcher in connection.watchers:
            return
        connection.watchers.add(watcher)
        informer = await connection.cache.informer(kind)

        def handle(old: Entry | None, new: Entry | None, initial: bool) -> None:
            entry = new or old
            if entry is not None and not initial:
                notify(informer.decode(kind, entry))

        informer.subscribe(handle)

    # --------------------------------------------------------------------------------------------------- etcd

    async def etcd(self, cluster: ObjectKey, nodes: Sequence[str]) -> EtcdClient:
        """A client of the first etcd member, in the order of `nodes`, that answers a status call."""
        connection = self._connection(cluster, "error getting etcd client")
        context = await self._etcd_context(cluster)

        async def dial(node: str) -> Any:
            return await forward(connection.transport, "kube-system", f"etcd-{node}", _ETCD_PORT)

        return await first_available(dial, nodes, context)

    async def _etcd_context(self, cluster: ObjectKey) -> Any:
        """TLS towards etcd: a client certificate of its CA, minted once a day; or, where etcd is external, the one we were given."""
        accessor = self._accessors[cluster]
        secret = await self._etcd_secret(cluster, Purpose.ETCD_CA)
        version, now = secret.metadata.resource_version, self._clock.now()
        if accessor.etcd is not None and accessor.etcd[0] == version and now < accessor.etcd[1] + _ETCD_CERTIFICATE_AGE:
            return accessor.etcd[2]
        authority = _pair(secret)
        if authority.key:
            key = await self._keys.new_key("ECDSA-P256")
            client = certificates.sign(
                authority,
                key,
                common_name="cluster-api.x-k8s.io",
                serial=certificates.new_serial(self._random),
                not_before=now - timedelta(minutes=5),
                not_after=now + timedelta(days=3650),
                client=True,
                encipherment=False,
            )
        else:
            client = _pair(await self._etcd_secret(cluster, Purpose.API_SERVER_ETCD_CLIENT))
        context = client_context(EtcdCredentials(authority.certificate, client.certificate, client.key))
        accessor.etcd = (version, now, context)
        return context

    async def _etcd_secret(self, cluster: ObjectKey, purpose: Purpose) -> Secret:
        name = secret_name(cluster.name, purpose)
        try:
            return await self._client.get(Secret, ObjectKey(cluster.namespace, name))
        except ApiError as error:
            raise EtcdError(f"failed to get Secret {name}: {error}") from error

    async def serving_certificate_expiry(self, cluster: ObjectKey, node: str) -> datetime:
        """NotAfter of the certificate that the API server on `node` serves."""
        connection = self._connection(cluster, f"error reaching the API server on Node {node}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # only its date is read
        async with asyncio.timeout(PROBE_TIMEOUT):
            stream = TlsStream(
                await forward(connection.transport, "kube-system", f"kube-apiserver-{node}", _API_SERVER_PORT),
                context,
                f"kube-apiserver-{node}",
            )
            try:
                await stream.handshake()
                return x509.load_der_x509_certificate(stream.peer_certificate()).not_valid_after_utc
            finally:
                await stream.close()


def _pair(secret: Secret) -> KeyPair:
    return KeyPair(secret.data.get("tls.crt", b""), secret.data.get("tls.key", b""))


async def secret_to_cluster(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """The Cluster whose kubeconfig a Secret holds."""
    suffix = f"-{Purpose.KUBECONFIG}"
    name = secret.metadata.name
    return [ObjectKey(secret.metadata.namespace, name.removesuffix(suffix))] if name.endswith(suffix) else []


def mapped_source(client: Client, map: Mapper, enqueue: Callable[[ObjectKey, str], None], failing_for: timedelta | None) -> Source:
    """A source that wakes the keys that a controller's mapping names for the Cluster."""

    async def notify(key: ObjectKey) -> None:
        cluster = await client.find(Cluster, key)
        if cluster is not None:
            for target in await map(cluster, client):
                enqueue(target, f"the connection to workload cluster {key} has changed")

    return Source(notify, failing_for)
