"""The simulated cloud in this process: one workload cluster per Cluster, each with its own API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Duplex
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.auth.tokens import bootstrap_token_source
from clusterwright.apiserver.server import ApiServer, Forward
from clusterwright.apiserver.storage.shares import Share, SharedJournal
from clusterwright.apiserver.storage.sqlite import StoreBroken
from clusterwright.inmemory.cluster import Listener, SimulatedCluster
from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import KeySource

log = logging.getLogger(__name__)

FIRST_PORT, LAST_PORT = 20000, 30000
HEARTBEAT = timedelta(seconds=10)
"""How often kubelets renew their Leases."""
_LOOPBACK = {f"127.0.{high}.{low}": None for high in range(40) for low in range(1, 255)}
_VALIDITY = timedelta(days=365)
_FILE = "clusters.sqlite"
"""The file with the objects of all simulated clusters, in the data directory."""


class NoPortLeft(Exception):
    """Every port of the range is taken."""


class EndpointRefused(Exception):
    """An endpoint is not available: two clusters claim the same port, or one claims a host that is not ours."""


class Cloud:
    """All simulated clusters of the process. `listener` None: they are reached in process only. `data_dir` None: nothing is stored."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        random: Random,
        keys: KeySource,
        listener: Listener | None = None,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
        first_port: int = FIRST_PORT,
        contents: Mapping[ObjectKey, Sequence[Json]] | None = None,
    ) -> None:
        """Create a cloud. `first_port`: the start of the search for free ports. Planes on one machine should start at different ports.

        A stopped plane holds no port; without this, its ports may be taken by another plane when it starts again.
        `contents`: by Cluster, the objects that its simulated cluster begins with, as they are.
        """
        self.now = now
        self.host = host
        self._listener = listener
        self._random = random
        self._keys = keys
        self._data_dir = data_dir
        self._journal: SharedJournal | None = None
        self._shares: dict[ObjectKey, Share] = {}
        self._contents = dict(contents or {})
        self._clusters: dict[ObjectKey, SimulatedCluster] = {}
        self._taken: dict[tuple[str, int], ObjectKey] = {}
        self._given: set[ObjectKey] = set()
        """Clusters whose endpoint is not ours."""
        self._next_port = first_port
        self._first_host = first_port - FIRST_PORT
        self._subscribers: dict[str, Callable[[ObjectKey], None]] = {}
        self._node_watchers: dict[str, Callable[[ObjectKey, str], None]] = {}
        self._on_failure: list[Callable[[], None]] = []
        self.broken = ""
        """Why new writes to workload clusters would not survive the process; empty: they will."""

    def subscribe(self, name: str, callback: Callable[[ObjectKey], None]) -> None:
        """Call `callback` when a cluster starts or stops to answer; it replaces the earlier one of the same name."""
        self._subscribers[name] = callback

    def watch_nodes(self, name: str, callback: Callable[[ObjectKey, str], None]) -> None:
        """Call `callback` with the cluster and the name of a deleted Node; it replaces the earlier one of the same name."""
        self._node_watchers[name] = callback

    def on_failure(self, callback: Callable[[], None]) -> None:
        """Call `callback` when `broken` is set."""
        self._on_failure.append(callback)

    def _changed(self, key: ObjectKey) -> None:
        for callback in list(self._subscribers.values()):
            callback(key)

    def _node_gone(self, key: ObjectKey, node: str) -> None:
        for callback in list(self._node_watchers.values()):
            callback(key, node)

    def find(self, key: ObjectKey) -> SimulatedCluster | None:
        """Return the simulated cluster of a Cluster, if it has been created."""
        return self._clusters.get(key)

    def revisions(self) -> tuple[int, ...]:
        """Return the revision of each cluster: equal results mean that nothing has changed."""
        return tuple(cluster.server.store.revision for cluster in self._clusters.values())

    def at(self, host: str, port: int, of: ObjectKey | None = None) -> SimulatedCluster | None:
        """Return the cluster at an endpoint. An endpoint that is not ours leads to a simulated cluster only for its own Cluster `of`."""
        key = self._taken.get((self.host if host == "localhost" else host, port))
        if key is None and of in self._given and (own := self._clusters.get(of)) is not None and (own.host, own.port) == (host, port):
            return own
        return None if key is None else self._clusters.get(key)

    def reserve(self, key: ObjectKey, endpoint: tuple[str, int], *, given: bool = False) -> None:
        """Reserve an endpoint for the cluster that had it before; raises EndpointRefused.

        `given`: the endpoint is that of another provider. If its host is not ours, the cluster is reached in process only.
        """
        host, port = endpoint
        if given and host not in self._hosts():
            self._given.add(key)
            return
        if host not in self._hosts():
            raise EndpointRefused(f"the endpoint's host {host} is not that of this plane, {self.host}")
        if self._taken.setdefault(endpoint, key) != key:
            raise EndpointRefused(f"port {port} belongs to the cluster of {self._taken[endpoint]}")
        if self._listener is not None:
            self._listener.hold(host, port)  # if another has it now, opening it will say so
        if self._next_port <= port <= LAST_PORT:
            self._next_port = port + 1

    def expects(self, key: ObjectKey) -> bool:
        """Return whether the cluster of a Cluster existed before a restart, and is not restored yet."""
        return key not in self._clusters and (key in self._taken.values() or key in self._given)

    async def ensure(
        self, key: ObjectKey, endpoint: tuple[str, int] | None = None, *, port: int = 0, given: bool = False
    ) -> SimulatedCluster:
        """Return the cluster of a Cluster, created on first use; at its previous endpoint, else at this port, if any.

        `given`: the endpoint is that of another provider, as in `reserve`.
        """
        if found := self._clusters.get(key):
            return found
        if endpoint is None:
            endpoint = (self._free_host(port), port) if port else (self.host, self._free_port())
        self.reserve(key, endpoint, given=given)
        share = self._share(key)
        server = ApiServer(now=self.now, random=self._random, journal=share, authorizer=RbacAuthorizer(), forward=self._forward_of(key))
        if share is not None:
            self._shares[key] = share
            server.recover(share.entries(), share.revision)
        server.ensure_namespaces()
        server.ensure(bootstrap_roles())
        server.load(self._contents.pop(key, ()))
        server.start_controllers()
        server.token_sources.append(bootstrap_token_source(server))
        cluster = self._clusters[key] = SimulatedCluster(
            key=key,
            host=endpoint[0],
            port=endpoint[1],
            server=server,
            listener=None if key in self._given else self._listener,
            sign=self._sign,
            changed=self._changed,
            node_gone=lambda node: self._node_gone(key, node),
        )
        self._changed(key)
        return cluster

    def _share(self, key: ObjectKey) -> Share | None:
        """Return the store of a Cluster's simulated cluster, or None if nothing is stored; raises ConnectionFailed."""
        if self._data_dir is None:
            return None
        if self._journal is None:
            try:
                self._journal = SharedJournal(self._data_dir / _FILE, self._broke)
            except StoreBroken as error:
                raise ConnectionFailed(f"the workload cluster of {key} cannot be restored: {error}") from error
        return self._journal.share(str(key))

    def _broke(self, error: BaseException) -> None:
        """Record that new writes to workload clusters do not survive the process."""
        self.broken = f"the store of the workload clusters can no longer be written: {error}"
        log.critical("%s", self.broken)
        for callback in self._on_failure:
            callback()

    async def delete(self, key: ObjectKey) -> None:
        """Delete a cluster with all its objects and its port; raises ConnectionFailed, NotDurable."""
        cluster = self._clusters.get(key)
        if cluster is not None:
            await cluster.close()
            self._clusters.pop(key, None)
        self._given.discard(key)
        for endpoint in [endpoint for endpoint, owner in self._taken.items() if owner == key]:
            del self._taken[endpoint]
            if self._listener is not None:
                self._listener.release(*endpoint)
        if (share := self._shares.pop(key, None) or self._share(key)) is not None:
            await share.drop(cluster.server.store.tables if cluster is not None else {})

    async def close(self) -> None:
        """Stop every listener and close the store; nothing is deleted."""
        self._subscribers.clear()
        self._node_watchers.clear()
        for cluster in list(self._clusters.values()):
            await cluster.close()
        self._clusters.clear()
        self._shares.clear()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._listener is not None:
            for host, port in self._taken:
                self._listener.release(host, port)

    async def run_kubelets(self) -> None:
        """Renew the Lease of every running kubelet, until cancelled."""
        while True:
            await asyncio.sleep(HEARTBEAT.total_seconds())
            for cluster in list(self._clusters.values()):
                cluster.renew_leases(self.now())
                await asyncio.sleep(0)

    async def _sign(self, authority: KeyPair, common_name: str, hosts: tuple[str, ...]) -> KeyPair:
        """Return a serving certificate from an authority, for servers and clients, as kubeadm creates them."""
        key = await self._keys.new_key("ECDSA-P256")
        sign = partial(
            certificates.sign,
            authority,
            key,
            common_name=common_name,
            hosts=hosts,
            serial=certificates.new_serial(self._random),
            not_before=self.now() - timedelta(minutes=5),
            not_after=self.now() + _VALIDITY,
            server=True,
            client=True,
        )
        return await self._keys.run(sign)

    def _free_port(self) -> int:
        """Return the next free port; ports of deleted clusters are reused only after all others."""
        for port in chain(range(self._next_port, LAST_PORT + 1), range(FIRST_PORT, min(self._next_port, LAST_PORT + 1))):
            if (self.host, port) not in self._taken and (self._listener is None or self._listener.hold(self.host, port)):
                self._next_port = port + 1
                return port
        raise NoPortLeft(f"no port is left between {FIRST_PORT} and {LAST_PORT}")

    def _free_host(self, port: int) -> str:
        """Return an address at which this port is free: clusters that all want the same port get one address each, like load balancers."""
        hosts = list(self._hosts())
        first = self._first_host % len(hosts)
        for host in (*hosts[first:], *hosts[:first]):
            if (host, port) not in self._taken and (self._listener is None or self._listener.hold(host, port)):
                return host
        raise NoPortLeft(f"port {port} is free at none of our addresses")

    def _hosts(self) -> dict[str, None]:
        """Yield our addresses, in order: all of a part of the loopback network, if it is local."""
        return _LOOPBACK if self.host in _LOOPBACK else {self.host: None}

    def _forward_of(self, key: ObjectKey) -> Forward:
        async def forward(namespace: str, pod: str, port: int) -> Duplex:
            return await self._clusters[key].dial(namespace, pod, port)

        return forward
