"""The cloud inside the process: one simulated workload cluster per Cluster, each with an API server of its own."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Protocol

from clusterwright.api.kubernetes import Pod, Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Duplex, Request
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.inprocess import InProcessTransport
from clusterwright.apiserver.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.server import ApiServer, Upgrade
from clusterwright.apiserver.sqlite import SqliteJournal
from clusterwright.inmemory import etcd, gateway, objects
from clusterwright.inmemory.pipe import duplex_pair
from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, NotFound
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.rest import RestClient

FIRST_PORT, LAST_PORT = 20000, 30000
_ETCD_PORT, _API_SERVER_PORT = 2379, 6443


class NoPortLeft(Exception):
    """Every port of the range is taken."""


class PortTaken(Exception):
    """Two clusters claim the same port, or one claims a host that is not ours."""


class Listener(Protocol):
    """A network front end of one workload cluster."""

    async def start(self, cluster: SimulatedCluster, context: ssl.SSLContext) -> None:
        """Answer at the cluster's host and port."""

    async def stop(self, cluster: SimulatedCluster) -> None:
        """Stop answering, and cut the open connections."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What an API server shows its clients, and whom it trusts."""

    authority: KeyPair
    certificate: KeyPair


class SimulatedCluster:
    """One workload cluster. It answers while an API server runs, etcd has quorum, and nobody has cut it off."""

    def __init__(self, cloud: Cloud, key: ObjectKey, port: int, server: ApiServer) -> None:
        self.key = key
        self.host = cloud.host
        self.port = port
        self.server = server
        self.client: Client = RestClient(InProcessTransport(server))
        self.serving: Serving | None = None
        self._cloud = cloud
        self._running: set[str] = set()
        self._is_cut_off = False
        self._has_quorum = True
        self._etcd_contexts: dict[str, ssl.SSLContext] = {}
        self._watchers: list[Callable[[], None]] = []
        self._was_serving = False
        self.journal: SqliteJournal | None = None

    def close(self) -> None:
        """End all watches and finish writing."""
        self.server.close()
        if self.journal is not None:
            self.journal.close()

    @property
    def endpoint(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"

    @property
    def is_serving(self) -> bool:
        """Whether a connection to the endpoint gets an answer."""
        return bool(self._running) and self.serving is not None and self._has_quorum and not self._is_cut_off

    def on_change(self, callback: Callable[[], None]) -> None:
        """Have `callback` called whenever the cluster begins or ceases to answer."""
        self._watchers.append(callback)

    async def cut_off(self, cut: bool) -> None:
        """Make the endpoint unreachable, or reachable again."""
        self._is_cut_off = cut
        await self._settle()

    async def start_api_server(self, machine: str, authority: KeyPair) -> None:
        """An API server begins to run on a machine; the first decides the serving certificate."""
        if self.serving is None:
            self.serving = Serving(authority, await self._cloud.sign(authority, "kube-apiserver", ("localhost", "kubernetes", self.host)))
        self._running.add(machine)
        await self._settle()

    async def stop_api_server(self, machine: str) -> None:
        """The API server of a machine stops."""
        self._running.discard(machine)
        if not self._running and self.serving is not None:
            await self._settle()
            self.serving = None
        await self._settle()

    async def check_quorum(self) -> None:
        """Look at the etcd members again, after one has come, gone or stopped."""
        everyone = await self.members()
        self._has_quorum = etcd.has_quorum(everyone) if everyone else True
        await self._settle()

    async def _settle(self) -> None:
        if self.is_serving == self._was_serving:
            return
        self._was_serving = self.is_serving
        listener = self._cloud.listener
        if listener is not None and self.serving is not None:
            if self.is_serving:
                await listener.start(self, server_context(self.serving.certificate, self.serving.authority.certificate))
            else:
                await listener.stop(self)
        for callback in self._watchers:
            callback()
        if self._cloud.on_change is not None:
            self._cloud.on_change(self.key)

    # -------------------------------------------------------------------------------------------------- objects

    async def ensure(self, obj: Json) -> None:
        """Create an object if it is not there; one that is there is left alone."""
        status = obj.pop("status", None)
        try:
            created = await self.client.create(obj)
        except AlreadyExists:
            return
        if status is not None:
            await self.client.patch(created.gvk, created.key, {"status": status}, subresource="status")

    async def remove(self, kind: Any, namespace: str, name: str) -> None:
        """Delete an object if it is there, whatever waits for it."""
        key = ObjectKey(namespace, name)
        try:
            await self.client.delete(kind, key, grace_period_seconds=0)
            await self.client.patch(kind, key, {"metadata": {"finalizers": None}})
        except NotFound:
            return

    async def token(self, token_id: str) -> Mapping[str, str] | None:
        """The decoded data of a bootstrap token's Secret."""
        secret = await self.client.find(Secret, ObjectKey("kube-system", f"bootstrap-token-{token_id}"))
        if secret is None:
            return None
        return {k: v.decode("utf-8", "replace") for k, v in secret.data.items()}

    # ----------------------------------------------------------------------------------------------------- etcd

    async def members(self) -> tuple[etcd.Member, ...]:
        """The etcd members."""
        pods = await self.client.list(Pod, namespace="kube-system", labels={"component": "etcd"})
        return etcd.members((p.metadata.name, p.metadata.annotations) for p in pods)

    async def add_etcd_certificate(self, machine: str, authority: KeyPair) -> None:
        """Have the member on a machine serve with a certificate of etcd's CA."""
        if machine not in self._etcd_contexts:
            name = f"etcd-{machine}"
            pair = await self._cloud.sign(authority, name, (name, "localhost", self.host))
            self._etcd_contexts[machine] = server_context(pair, authority.certificate, require_client=True)

    async def annotate_etcd(self, machine: str, annotations: Mapping[str, str | None]) -> None:
        """Change what is known of a member."""
        await self.client.patch(Pod, ObjectKey("kube-system", f"etcd-{machine}"), {"metadata": {"annotations": dict(annotations)}})
        await self.check_quorum()

    async def port_forward(self, pod: str, port: int, socket: Duplex) -> None:
        """Serve one port-forward until it is closed: etcd's client port, or an API server's, which shows its certificate."""
        if port == _API_SERVER_PORT and pod.removeprefix("kube-apiserver-") in self._running and self.serving is not None:
            context = server_context(self.serving.certificate, self.serving.authority.certificate)
            await gateway.serve(socket, port, context, _refuse_call)
            return
        machine = pod.removeprefix("etcd-")
        etcd_context = self._etcd_contexts.get(machine)
        try:
            if etcd_context is None or port != _ETCD_PORT:
                raise etcd.EtcdRefused(f"an error occurred forwarding {port}: connection refused")
            etcd.addressed(await self.members(), machine)
        except etcd.EtcdRefused as error:
            await gateway.refuse(socket, port, str(error))
            return
        assert etcd_context is not None
        await gateway.serve(socket, port, etcd_context, lambda path, body: self._etcd_call(machine, path, body))

    async def _etcd_call(self, machine: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        everyone = await self.members()
        me = etcd.addressed(everyone, machine)
        leader = etcd.leader(everyone)
        header = {"cluster_id": me.cluster_id, "member_id": me.id}
        match path:
            case "/v3/maintenance/status":
                errors = [] if leader else ["etcdserver: no leader"]
                return {"header": header, "leader": leader.id if leader else "0", "version": "3.5.21", "errors": errors}
            case "/v3/cluster/member/list":
                _require(leader)
                return {"header": header, "members": [_member_json(m) for m in everyone]}
            case "/v3/maintenance/alarm":
                alarms = [{"memberID": m.id, "alarm": a} for m in everyone for a in m.alarms]
                return {"header": header, "alarms": alarms}
            case "/v3/cluster/member/remove":
                _require(leader)
                target = etcd.by_id(everyone, str(body.get("ID", "")))
                await self.annotate_etcd(target.name, {etcd.REMOVED: "", etcd.LEADER_FROM: None})
                return {"header": header, "members": [_member_json(m) for m in everyone if m.id != target.id]}
            case "/v3/cluster/member/promote":
                _require(leader)
                target = etcd.by_id(everyone, str(body.get("ID", "")))
                await self.annotate_etcd(target.name, {etcd.LEARNER: None})
                return {"header": header}
            case "/v3/maintenance/transfer-leadership":
                if leader is None or leader.id != me.id:
                    raise etcd.EtcdRefused("etcdserver: not leader")
                target = etcd.by_id(everyone, str(body.get("targetID", "")))
                await self.annotate_etcd(me.name, {etcd.LEADER_FROM: None})
                await self.annotate_etcd(target.name, {etcd.LEADER_FROM: objects.timestamp(self._cloud.now())})
                return {"header": header}
            case _:
                raise etcd.EtcdRefused(f"unknown method {path}")


async def _refuse_call(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    raise etcd.EtcdRefused("only the certificate can be seen here")


def _require(leader: etcd.Member | None) -> None:
    if leader is None:
        raise etcd.EtcdRefused("etcdserver: request timed out")


def _member_json(member: etcd.Member) -> Json:
    json: Json = {"ID": member.id, "name": member.name, "peerURLs": [f"https://{member.name}:2380"]}
    if member.is_learner:
        json["isLearner"] = True
    return json


class Cloud:
    """All simulated clusters of the process. `listener` None: they are reached in process only."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        random: Random,
        keys: KeySource,
        listener: Listener | None = None,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.now = now
        self.host = host
        self.listener = listener
        self._random = random
        self._keys = keys
        self._data_dir = data_dir
        self._clusters: dict[ObjectKey, SimulatedCluster] = {}
        self._next_port = FIRST_PORT
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_change: Callable[[ObjectKey], None] | None = None
        """Told when a cluster begins or ceases to answer."""

    def find(self, key: ObjectKey) -> SimulatedCluster | None:
        """The cluster of a Cluster, if it has been created."""
        return self._clusters.get(key)

    def at(self, host: str, port: int) -> SimulatedCluster | None:
        """The cluster behind an endpoint."""
        if host not in {self.host, "localhost"}:
            return None
        return next((c for c in self._clusters.values() if c.port == port), None)

    async def ensure(self, key: ObjectKey, endpoint: tuple[str, int] | None) -> SimulatedCluster:
        """The cluster of a Cluster, created on first use; at the endpoint it had before, if it had one."""
        if found := self._clusters.get(key):
            return found
        port = self._reserve(endpoint)
        journal = None if self._data_dir is None else SqliteJournal(self._data_dir / f"{_file_name(key)}.sqlite")
        server = ApiServer(now=self.now, random=self._random, journal=journal, authorizer=RbacAuthorizer(), upgrade=self._upgrade_of(key))
        if journal is not None:
            server.recover(journal.entries(), journal.revision)
            journal.start()
        server.ensure_namespaces()
        server.ensure(bootstrap_roles())
        server.start_controllers()
        cluster = self._clusters[key] = SimulatedCluster(self, key, port, server)
        cluster.journal = journal
        await cluster.check_quorum()
        return cluster

    async def delete(self, key: ObjectKey) -> None:
        """Forget a cluster with all its objects."""
        cluster = self._clusters.pop(key, None)
        if cluster is None:
            return
        await cluster.cut_off(cut=True)
        cluster.close()
        if self._data_dir is not None:
            for path in self._data_dir.glob(f"{_file_name(key)}*"):
                path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Stop every listener and close every store; nothing is forgotten."""
        for cluster in list(self._clusters.values()):
            await cluster.cut_off(cut=True)
            cluster.close()
        self._clusters.clear()
        for task in list(self._tasks):
            task.cancel()

    async def sign(self, authority: KeyPair, common_name: str, hosts: tuple[str, ...]) -> KeyPair:
        """A serving certificate of an authority, usable by servers and clients."""
        key = await self._keys.new_key("ECDSA-P256")
        return certificates.sign(
            authority,
            key,
            common_name=common_name,
            hosts=hosts,
            serial=certificates.new_serial(self._random),
            not_before=self.now() - timedelta(minutes=5),
            not_after=self.now() + timedelta(days=3650),
            server=True,
            client=True,
        )

    def _reserve(self, endpoint: tuple[str, int] | None) -> int:
        taken = {c.port for c in self._clusters.values()}
        if endpoint is not None:
            host, port = endpoint
            if host != self.host:
                raise PortTaken(f"the endpoint's host {host} is not ours, which is {self.host}")
            if port in taken:
                raise PortTaken(f"port {port} belongs to another cluster")
        else:
            port = self._next_port
            while port in taken or not self._is_free(port):
                port += 1
            if port > LAST_PORT:
                raise NoPortLeft(f"no port is left between {FIRST_PORT} and {LAST_PORT}")
        self._next_port = max(self._next_port, port + 1)
        return port

    def _is_free(self, port: int) -> bool:
        probe = getattr(self.listener, "is_free", None)
        return port > LAST_PORT or probe is None or bool(probe(self.host, port))

    def _upgrade_of(self, key: ObjectKey) -> Upgrade:
        async def upgrade(request: Request, info: RequestInfo, user: User) -> Duplex:
            cluster = self._clusters[key]
            near, far = duplex_pair()
            query = dict(request.query)
            task = asyncio.create_task(cluster.port_forward(info.name, int(query.get("ports") or 0), far))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return near

        return upgrade


def _file_name(key: ObjectKey) -> str:
    return f"{key.namespace}_{key.name}"


def server_context(pair: KeyPair, client_authority: bytes, *, require_client: bool = False) -> ssl.SSLContext:
    """A TLS context that serves with `pair` and knows clients of one authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED if require_client else ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=client_authority.decode())
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads keys from files only
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.certificate + b"\n" + pair.key)
        context.load_cert_chain(path)
    return context
