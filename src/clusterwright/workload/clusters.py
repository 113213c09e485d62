"""The cluster cache: one connection per Cluster, monitored by a probe; a new connection requeues the keys that wait for it.

It is a reconciler of Clusters that never writes: connect when the infrastructure is there, probe every ten seconds, back off
and try again, disconnect after five failures in a row. Its health state outlives disconnects. Everything that reaches into a
workload cluster goes through `WorkloadClusters`, which this class is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, WATCH_FILTER_LABEL
from clusterwright.api.wire import Transport
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, ConnectionFailed, Unauthorized
from clusterwright.runtime.events import Recorder
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.metrics import Counter, Gauge, Registry
from clusterwright.runtime.reconcile import Mapper, Result
from clusterwright.runtime.transports import Throttled
from clusterwright.workload.access import EtcdClient, Health, NotConnected
from clusterwright.workload.bounded import Bounded
from clusterwright.workload.connection import Connection, digest
from clusterwright.workload.credentials import EtcdAccess

PROBE_INTERVAL = timedelta(seconds=10)
RETRY_INTERVAL = timedelta(seconds=30)
FALLBACK = timedelta(seconds=10)
AT_ONCE = timedelta(milliseconds=1)
REQUEST_TIMEOUT = 10.0
QPS, BURST = 20.0, 30
FAILURE_THRESHOLD = 5
KUBECONFIG_REFUSED = "KubeconfigRefused"
KUBECONFIG_SUFFIX = "-kubeconfig"
SECRET = GroupVersionKind("", "v1", "Secret")

_log = get_logger("clustercache")

Reach = Callable[[bytes], Awaitable[Transport]]
"""Returns a transport to the cluster that a kubeconfig describes."""
Connect = Callable[[ObjectKey, bytes], Awaitable[Transport]]
"""Returns a transport to the cluster that a kubeconfig describes; raises ApiError or ValueError."""


@dataclass(frozen=True, slots=True)
class Source:
    """A subscriber to changes of a Cluster's connection, and to failures of its probe for `failing_for`."""

    tell: Callable[[Cluster, str], Awaitable[None]]
    failing_for: timedelta | None = None


def mapped_source(reader: Reader, map: Mapper, enqueue: Callable[[ObjectKey, str], None], failing_for: timedelta | None) -> Source:
    """Return a source that requeues the keys that `map` returns for the Cluster."""

    async def tell(cluster: Cluster, reason: str) -> None:
        for key in await map(cluster, reader):
            enqueue(key, reason)

    return Source(tell, failing_for)


async def secret_to_cluster(secret: Secret, _reader: Reader) -> Sequence[ObjectKey]:
    """Return the Cluster of a kubeconfig Secret, so that a connection is tried as soon as the Secret exists."""
    name = secret.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if not name or secret.metadata.name != name + KUBECONFIG_SUFFIX:
        return []
    return [ObjectKey(secret.metadata.namespace, name)]


def connection_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """Return whether a change of a Cluster may affect its connection: it appears, goes, is provisioned, or is relabelled."""
    return old is None or new is None or _facts(old) != _facts(new)


def _facts(cluster: Cluster) -> tuple[bool, object]:
    initialization = cluster.status.initialization
    return initialization is not None and initialization.infrastructure_provisioned is True, cluster.metadata.labels


@dataclass(slots=True)
class _Accessor:
    """The state of one Cluster's connection."""

    connection: Connection | None = None
    last_creation_error: datetime | None = None
    last_probe: datetime | None = None
    last_probe_success: datetime | None = None
    failures: int = 0
    tried: str = ""
    """The digest of the kubeconfig of the last attempt to connect; empty: there was none."""
    refusal: str = ""
    """Why that kubeconfig was not used."""
    retry_now: bool = False
    probe_now: bool = False
    told: dict[int, datetime] = field(default_factory=dict)

    def succeeded(self, now: datetime) -> None:
        self.failures = 0
        self.last_probe = self.last_probe_success = now
        self.last_creation_error = None

    def failed(self, now: datetime) -> None:
        self.failures += 1
        self.last_probe = now


class ClusterCache:
    """The `WorkloadClusters` of this process, and the reconciler that keeps them connected."""

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
        events: Recorder | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._connect = connect
        self._watch_filter = watch_filter
        self._events = events
        self._etcd_access = EtcdAccess(client, clock=clock, random=random, keys=keys)
        self._accessors: dict[ObjectKey, _Accessor] = {}
        self._sources: list[Source] = []
        self._enqueue: Callable[[ObjectKey, str], None] = lambda _key, _reason: None
        registry = registry or Registry()
        labels = ["cluster_name", "cluster_namespace"]
        self._up = registry.add(Gauge("capi_cluster_cache_connection_up", "Whether the connection to the cluster is up", labels))
        self._healthy = registry.add(Gauge("capi_cluster_cache_healthcheck", "Result of the last health check of the cluster", labels))
        self._checks = registry.add(
            Counter("capi_cluster_cache_healthchecks_total", "Results of all health checks of the cluster", [*labels, "status"])
        )

    # Wiring.

    def bind(self, enqueue: Callable[[ObjectKey, str], None]) -> None:
        """Set the function that requeues keys of this reconciler."""
        self._enqueue = enqueue

    def add_source(self, source: Source) -> None:
        """Notify `source` of connections from now on."""
        self._sources.append(source)

    def wake(self, cluster: ObjectKey) -> None:
        """Connect or probe now, because the cluster may have changed."""
        accessor = self._accessors.get(cluster)
        if accessor is not None:
            accessor.retry_now = accessor.probe_now = True
        self._enqueue(cluster, "workload cluster changed")

    async def run(self) -> None:
        """Wait until cancelled; then close every connection."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def forget(self, is_lost: Callable[[ObjectKey], bool]) -> None:
        """Close the connections to Clusters that another process handles now."""
        for key in [key for key in self._accessors if is_lost(key)]:
            await self._drop(key)

    async def close(self) -> None:
        """Close every connection."""
        accessors, self._accessors = self._accessors, {}
        for accessor in accessors.values():
            if accessor.connection is not None:
                await accessor.connection.close()

    # Keeping connections.

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass: connect or probe when it is due, and requeue waiting keys. Never fails."""
        try:
            cluster = await self._client.find(Cluster, key)
        except ApiError:
            return Result.after(FALLBACK)
        if cluster is None or (self._watch_filter and cluster.metadata.labels.get(WATCH_FILTER_LABEL) != self._watch_filter):
            await self._drop(key)
            return Result.await_change()
        accessor = self._accessors.setdefault(key, _Accessor())
        initialization = cluster.status.initialization
        if initialization is None or initialization.infrastructure_provisioned is not True:
            return Result.await_change()
        was, refused_before = (accessor.connection is not None, accessor.failures >= FAILURE_THRESHOLD), accessor.refusal
        success = accessor.last_probe_success
        wait = await self._connect_or_probe(key, accessor)
        if accessor.refusal and accessor.refusal != refused_before and self._events is not None:
            self._events.record(cluster, "Warning", KUBECONFIG_REFUSED, accessor.refusal)
        await self._tell(cluster, accessor, was, success, "kubeconfig judged" if accessor.refusal != refused_before else "")
        self._measure(key, accessor)
        return Result.after(min([wait, *self._deadlines(accessor)]))

    async def _connect_or_probe(self, key: ObjectKey, accessor: _Accessor) -> timedelta:
        retry_now, probe_now = accessor.retry_now, accessor.probe_now
        accessor.retry_now = accessor.probe_now = False
        now = self._clock.now()
        connection = accessor.connection
        if connection is not None and await self._is_outdated(key, connection):
            await self._disconnect(key, accessor, "kubeconfig changed")
            connection = None
        if connection is None:
            error_at = accessor.last_creation_error
            is_recent = error_at is not None and now - error_at < RETRY_INTERVAL
            if error_at is not None and is_recent and not retry_now and not await self._has_news(key, accessor):
                return max(RETRY_INTERVAL - (now - error_at), AT_ONCE)
            return await self._open(key, accessor)
        probed = accessor.last_probe
        if probed is not None and not probe_now and now - probed < PROBE_INTERVAL:
            return max(PROBE_INTERVAL - (now - probed), AT_ONCE)
        return await self._probe(key, accessor, connection)

    async def _is_outdated(self, key: ObjectKey, connection: Connection) -> bool:
        """Return whether the kubeconfig in the Secret has changed; an unreadable one counts as unchanged."""
        try:
            return digest(await self._kubeconfig(key)) != connection.digest
        except ApiError:
            return False

    async def _has_news(self, key: ObjectKey, accessor: _Accessor) -> bool:
        """Return whether the kubeconfig differs from the one that failed: then connect without waiting."""
        try:
            return digest(await self._kubeconfig(key)) != accessor.tried
        except ApiError:
            return False

    async def _kubeconfig(self, key: ObjectKey) -> bytes:
        name = key.name + KUBECONFIG_SUFFIX
        secret = await self._client.find(Secret, ObjectKey(key.namespace, name))
        if secret is None:
            raise ConnectionFailed(f"error creating REST config: error getting kubeconfig secret: Secret {name} not found")
        value = secret.data.get("value")
        if not value:
            raise ConnectionFailed(f"error creating REST config: Secret {name} has no kubeconfig")
        return bytes(value)

    async def _open(self, key: ObjectKey, accessor: _Accessor) -> timedelta:
        connection: Connection | None = None
        accessor.tried = accessor.refusal = ""
        try:
            kubeconfig = await self._kubeconfig(key)
            accessor.tried = digest(kubeconfig)
            transport = await self._connect(key, kubeconfig)
            connection = Connection(
                Throttled(Bounded(transport, REQUEST_TIMEOUT), self._clock, qps=QPS, burst=BURST),
                kubeconfig,
                clock=self._clock,
                random=Random(self._random.getrandbits(64)),
                failed=lambda: self._lost(key, accessor),
            )
            await connection.open()
        except (ApiError, OSError, ValueError) as error:
            text = str(error)
            if isinstance(error, InvalidKubeconfig):
                accessor.refusal = f"Secret {key.name + KUBECONFIG_SUFFIX}: {text}"
            if connection is not None:
                await connection.close()
                text = f"error creating HTTP client and mapper: cluster is not reachable: {text}"
            now = self._clock.now()
            accessor.failed(now)
            accessor.last_creation_error = now
            _log.info("Connect failed", cluster=str(key), error=text, failures=accessor.failures)
            return RETRY_INTERVAL
        except BaseException:
            if connection is not None:
                await connection.close()
            raise
        accessor.succeeded(self._clock.now())
        accessor.connection = connection
        _log.info("Connected", cluster=str(key))
        return PROBE_INTERVAL

    async def _probe(self, key: ObjectKey, accessor: _Accessor, connection: Connection) -> timedelta:
        labels = (key.name, key.namespace)
        try:
            await connection.probe()
        except Unauthorized:
            accessor.failed(self._clock.now())
            self._checks.add(*labels, "error")
            await self._disconnect(key, accessor, "unauthorized")
            return AT_ONCE
        except ApiError as error:
            accessor.failed(self._clock.now())
            self._checks.add(*labels, "error")
            if accessor.failures >= FAILURE_THRESHOLD:
                await self._disconnect(key, accessor, str(error))
                accessor.last_creation_error = self._clock.now()
                return RETRY_INTERVAL
            return PROBE_INTERVAL
        accessor.succeeded(self._clock.now())
        self._checks.add(*labels, "success")
        return PROBE_INTERVAL

    def _lost(self, key: ObjectKey, accessor: _Accessor) -> None:
        """Reconcile now, because a background part of the connection ended."""
        accessor.probe_now = True
        self._enqueue(key, "connection part ended")

    async def _disconnect(self, key: ObjectKey, accessor: _Accessor, why: str) -> None:
        connection, accessor.connection = accessor.connection, None
        if connection is not None:
            _log.info("Disconnected", cluster=str(key), reason=why)
            await connection.close()

    async def _drop(self, key: ObjectKey) -> None:
        accessor = self._accessors.pop(key, None)
        self._etcd_access.forget(key)
        if accessor is not None:
            await self._disconnect(key, accessor, "Cluster is gone")
            self._up.remove(key.name, key.namespace)
            self._healthy.remove(key.name, key.namespace)
            for status in ("success", "error"):
                self._checks.remove(key.name, key.namespace, status)

    async def _tell(self, cluster: Cluster, accessor: _Accessor, was: tuple[bool, bool], success: datetime | None, news: str) -> None:
        """Notify the sources of a connect, a disconnect, the fifth failure in a row, failures that last or end, and other news."""
        now = self._clock.now()
        is_now = (accessor.connection is not None, accessor.failures >= FAILURE_THRESHOLD)
        for number, source in enumerate(self._sources):
            reason = _reason(was, is_now) or news or _answers_again(source, accessor, success)
            reason = reason or _failing(source, accessor, accessor.told.get(number), now)
            if not reason:
                continue
            accessor.told[number] = now
            try:
                await source.tell(cluster, reason)
            except Exception as error:
                _log.warning("Source failed", cluster=str(cluster.key), error=str(error))

    def _deadlines(self, accessor: _Accessor) -> list[timedelta]:
        """Return the time until the probe will have failed for as long as some source specifies."""
        success, now = accessor.last_probe_success, self._clock.now()
        if success is None or not accessor.failures:
            return []
        left = [success + source.failing_for + AT_ONCE - now for source in self._sources if source.failing_for is not None]
        return [wait for wait in left if wait > timedelta()]

    def _measure(self, key: ObjectKey, accessor: _Accessor) -> None:
        self._up.set(1 if accessor.connection is not None else 0, key.name, key.namespace)
        self._healthy.set(1 if accessor.failures == 0 and accessor.last_probe_success is not None else 0, key.name, key.namespace)

    # WorkloadClusters.

    def _connection(self, cluster: ObjectKey, what: str = "error getting client") -> Connection:
        accessor = self._accessors.get(cluster)
        if accessor is None or accessor.connection is None:
            raise NotConnected(what)
        return accessor.connection

    async def client(self, cluster: ObjectKey) -> Client:
        """Return a client of the workload cluster (with cached Nodes); raises NotConnected."""
        return self._connection(cluster).client

    def health(self, cluster: ObjectKey) -> Health:
        """Return the result of the probe; for an unknown Cluster, that no connection was tried."""
        accessor = self._accessors.get(cluster)
        if accessor is None:
            return Health(untried=not self._watch_filter)  # a Cluster that the filter leaves out is never tried
        return Health(
            untried=accessor.last_probe is None,
            connected=accessor.connection is not None,
            last_probe=accessor.last_probe,
            last_probe_success=accessor.last_probe_success,
            consecutive_failures=accessor.failures,
            refusal=accessor.refusal,
        )

    async def etcd(self, cluster: ObjectKey, nodes: Sequence[str]) -> EtcdClient:
        """Return a client of the first etcd member, in the order of `nodes`, that answers a status call; raises NotConnected, EtcdError."""
        connection = self._connection(cluster)
        return await connection.etcd(list(nodes), await self._etcd_access.context(cluster))

    async def serving_certificate_expiry(self, cluster: ObjectKey, node: str, port: int = 6443) -> datetime:
        """Return NotAfter of the certificate that the API server on `node` serves; raises NotConnected, ApiError."""
        return await self._connection(cluster).serving_certificate_expiry(node, port)

    async def watch(
        self,
        cluster: ObjectKey,
        watcher: str,
        kind: type[Object],
        notify: Callable[[Any], None],
        *,
        namespace: str = "",
        labels: str = "",
    ) -> None:
        """Call `notify` for existing objects and for every change.

        Only once per watcher name, selection and connection; raises NotConnected.
        """
        if not watcher:
            raise ValueError("a watch needs a name")
        await self._connection(cluster, "error creating watch").watch(watcher, kind, notify, namespace=namespace, labels=labels)

    def unwatch(self, cluster: ObjectKey, watcher: str, kind: type[Object]) -> None:
        """End the watches of this name and kind; those of a closed connection have ended already."""
        accessor = self._accessors.get(cluster)
        if accessor is not None and accessor.connection is not None:
            accessor.connection.unwatch(watcher, kind)


def _reason(was: tuple[bool, bool], is_now: tuple[bool, bool]) -> str:
    if was[0] != is_now[0]:
        return "workload cluster connected" if is_now[0] else "workload cluster disconnected"
    return "workload cluster does not answer" if is_now[1] and not was[1] else ""


def _answers_again(source: Source, accessor: _Accessor, before: datetime | None) -> str:
    """Return whether the probe succeeded after `before` had become too old for the source: its readers saw a lost connection.

    The probe need not have failed: probes of a busy process are late.
    """
    success = accessor.last_probe_success
    if source.failing_for is None or before is None or success is None:
        return ""
    return "workload cluster answers again" if success > before + source.failing_for else ""


def _failing(source: Source, accessor: _Accessor, told: datetime | None, now: datetime) -> str:
    """Return whether the probe has now failed for as long as the source specifies, and it was not notified yet."""
    success = accessor.last_probe_success
    if source.failing_for is None or success is None:
        return ""
    due = success + source.failing_for
    return "workload cluster probe fails" if (told is None or told < due) and due < now else ""
