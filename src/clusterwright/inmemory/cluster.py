"""One simulated workload cluster: its API server, the processes of its machines, and etcd.

Its objects are the state; everything else here (running API servers, certificates, open listeners) would end with a power cut, and is
restored when the machines are reconciled again.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from clusterwright.api.kubernetes import Pod
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wire import Duplex
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.tls import server_context
from clusterwright.apiserver.storage.store import Table, object_key
from clusterwright.inmemory import etcd, etcdport, objects
from clusterwright.inmemory.etcdserver import EtcdServer
from clusterwright.inmemory.kubelets import Kubelets
from clusterwright.inmemory.ports import API_SERVER_PORT, Ports
from clusterwright.inmemory.workloads import Workloads
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.rest import RestClient

Sign = Callable[[KeyPair, str, tuple[str, ...]], Awaitable[KeyPair]]
"""Returns a serving certificate from an authority, for a common name and hosts."""


class Listener(Protocol):
    """A network front end of workload clusters."""

    async def start(self, cluster: SimulatedCluster, context: ssl.SSLContext) -> None:
        """Serve the cluster's host and port; raises OSError if that is impossible."""

    async def stop(self, cluster: SimulatedCluster) -> None:
        """Stop serving, and close open connections."""

    def hold(self, host: str, port: int) -> bool:
        """Reserve a port; return False if another process has it."""

    def release(self, host: str, port: int) -> None:
        """Release a reserved port."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The certificate of an API server, and the authority that it trusts."""

    authority: KeyPair
    certificate: KeyPair
    further_clients: bytes = b""
    """Further authorities of client certificates."""

    @property
    def client_authorities(self) -> bytes:
        """The authorities of client certificates."""
        return self.authority.certificate + self.further_clients


class SimulatedCluster:
    """A simulated cluster. It answers while an API server runs, etcd has quorum, and it is not cut off."""

    def __init__(
        self,
        *,
        key: ObjectKey,
        host: str,
        port: int,
        server: ApiServer,
        listener: Listener | None,
        sign: Sign,
        changed: Callable[[ObjectKey], None],
        node_gone: Callable[[str], None],
    ) -> None:
        self.key = key
        self.host = host
        self.port = port
        self.server = server
        self.client: Client = RestClient(InProcessTransport(server))
        self.serving: Serving | None = None
        self._listener = listener
        self._sign = sign
        self._changed = changed
        self._running: dict[str, str] = {}
        """The machines with running API servers, and the version of each."""
        self._is_cut_off = False
        self._is_open = False
        self._settling = asyncio.Lock()
        self._etcd_certificates: dict[str, tuple[KeyPair, bytes]] = {}
        self._addresses: dict[str, str] = {}
        self._members: tuple[int, tuple[etcd.Member, ...]] = (-1, ())
        self._ports = Ports(self, str(key))
        self._kubelets = Kubelets(server, self.ensure, node_gone)
        self._workloads = Workloads(server, self.ensure, self._kubelets.is_served)

    # ------------------------------------------------------------------------------------------------- answering

    @property
    def endpoint(self) -> str:
        """The endpoint, host:port."""
        return f"{self.host}:{self.port}"

    @property
    def is_serving(self) -> bool:
        """Whether connections to the endpoint are answered."""
        return bool(self._running) and self.serving is not None and not self._is_cut_off and self._has_quorum()

    @property
    def is_founded(self) -> bool:
        """Whether `kubeadm init` has ever run here."""
        return self.has("v1", "ConfigMap", "kube-system", "kubeadm-config")

    async def cut_off(self, cut: bool) -> None:
        """Make the endpoint unreachable, or reachable again."""
        if cut != self._is_cut_off:
            self._is_cut_off = cut
            await self.settle()

    async def start_api_server(
        self, machine: str, authority: KeyPair, hosts: tuple[str, ...] = (), *, version: str = "", clients: bytes = b""
    ) -> None:
        """Start an API server of a version on a machine; the first sets the serving certificate, the oldest the version.

        `clients` are further authorities of client certificates.
        """
        if self.serving is None:
            names = tuple(dict.fromkeys(("localhost", "kubernetes", "kubernetes.default", "127.0.0.1", "::1", self.host, *hosts)))
            self.serving = Serving(authority, await self._sign(authority, "kube-apiserver", names), clients)
        self._running[machine] = version
        self._take_version()
        await self.settle()

    async def stop_api_server(self, machine: str) -> None:
        """Stop the API server of a machine; with the last, close all connections."""
        self._running.pop(machine, None)
        self._take_version()
        await self.settle()
        if not self._running:
            self.serving = None

    def _take_version(self) -> None:
        """Serve the oldest version among the API servers: an upgrade is done with the last API server."""
        versions = [v for v in self._running.values() if v]
        if versions:
            self.server.version = min(versions, key=_order)

    async def settle(self) -> None:
        """Start or stop the network front end by the state, and notify the watchers."""
        async with self._settling:
            while self._is_open != self.is_serving:
                if self._is_open:
                    self._is_open = False
                    self._changed(self.key)
                    self.server.close()
                    self._ports.cut()
                    if self._listener is not None:
                        await self._listener.stop(self)
                else:
                    assert self.serving is not None
                    if self._listener is not None:
                        context = server_context(self.serving.certificate, self.serving.client_authorities)
                        await self._listener.start(self, context)
                    self._is_open = True
                    self._changed(self.key)

    async def close(self) -> None:
        """Stop serving; stored objects stay."""
        self._running.clear()
        await self.settle()
        await asyncio.gather(*self._ports.cut(), return_exceptions=True)
        self.server.close()

    # -------------------------------------------------------------------------------------------------- objects

    def has(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether an object exists."""
        return object_key(namespace, name) in self._table(api_version, kind).objects

    def ensure(self, obj: Json) -> bool:
        """Create an object with its status, as the machines' processes would; an existing one is left alone.

        Return whether it was created.
        """
        metadata = obj["metadata"]
        table, key = self._table(obj["apiVersion"], obj["kind"]), object_key(metadata.get("namespace", ""), metadata["name"])
        if key in table.objects:
            return False
        self.server.ensure([obj])
        entry = table.objects[key]
        made: Json = msgspec.json.decode(entry.raw)
        whole = {**made, "status": {**made.get("status", {}), **obj["status"]}} if "status" in obj else dict(made)
        if obj["kind"] == "Node":  # the API server marks new Nodes not ready; the simulated controller manager knows better
            whole["spec"] = {**obj.get("spec", {})}
        if whole != made:
            self.server.put_system(table, entry, whole)
            self.server.drain()
        return True

    def _table(self, api_version: str, kind: str) -> Table:
        gvk = GroupVersionKind.of(api_version, kind)
        resource = self.server.registry.by_kind(gvk.group, gvk.version, gvk.kind)
        assert resource is not None, gvk
        return self.server.store.table(resource.storage_key)

    async def remove(self, kind: Any, namespace: str, name: str) -> None:
        """Delete an object if it exists, ignoring its finalizers."""
        key = ObjectKey(namespace, name)
        try:
            await self.client.delete(kind, key, grace_period_seconds=0)
            if await self.client.find(kind, key) is not None:
                await self.client.patch(kind, key, {"metadata": {"finalizers": None}})
        except NotFound:
            return

    def address_of(self, machine: str, known: str = "", others: Iterable[str] = ()) -> str:
        """Return the address of a machine, unique in this cluster; nothing listens there.

        `known` is its previous address, `others` are the known addresses of other machines.
        """
        if machine not in self._addresses:
            if not known:
                taken = {*self._addresses.values(), *self._node_addresses(), *others}
                number = 2
                while (known := f"10.0.{number // 250}.{number % 250 + 1}") in taken:
                    number += 1
            self._addresses[machine] = known
        return self._addresses[machine]

    def release_address(self, machine: str) -> None:
        """Release the address of a machine that is gone."""
        self._addresses.pop(machine, None)

    def _node_addresses(self) -> set[str]:
        nodes = (msgspec.json.decode(e.raw) for e in self.server.store.table("nodes").objects.values())
        return {a["address"] for n in nodes for a in (n.get("status") or {}).get("addresses") or () if a.get("type") == "InternalIP"}

    def token(self, token_id: str) -> Mapping[str, str] | None:
        """Return the decoded data of a bootstrap token's Secret."""
        entry = self.server.store.table("secrets").objects.get(object_key("kube-system", f"bootstrap-token-{token_id}"))
        if entry is None:
            return None
        data: Mapping[str, bytes] = msgspec.json.decode(entry.raw, type=_Data).data
        return {k: v.decode("utf-8", "replace") for k, v in data.items()}

    # ----------------------------------------------------------------------------------------------------- etcd

    def members(self) -> tuple[etcd.Member, ...]:
        """Return the etcd members."""
        pods = self.server.store.table("pods")
        if self._members[0] != pods.rv:  # asked for with every request
            found = etcd.members((p.name, _annotations(p.raw)) for p in pods.range("kube-system") if p.name.startswith("etcd-"))
            self._members = pods.rv, found
        return self._members[1]

    def _has_quorum(self) -> bool:
        everyone = self.members()
        return not everyone or etcd.has_quorum(everyone)

    async def add_etcd_certificate(self, machine: str, authority: KeyPair) -> None:
        """Let the member on a machine serve with a certificate of etcd's CA."""
        if machine not in self._etcd_certificates:
            name = f"etcd-{machine}"
            pair = await self._sign(authority, name, (name, "localhost", "127.0.0.1", "::1", self.host))
            self._etcd_certificates[machine] = pair, authority.certificate

    def drop_etcd_certificate(self, machine: str) -> None:
        """Drop the certificate of a machine that is gone."""
        self._etcd_certificates.pop(machine, None)

    async def annotate_etcd(self, machine: str, annotations: Mapping[str, str | None]) -> None:
        """Change the state of a member; raises NotFound."""
        await self.client.patch(Pod, ObjectKey("kube-system", f"etcd-{machine}"), {"metadata": {"annotations": dict(annotations)}})
        await self.settle()

    def dial(self, namespace: str, pod: str, port: int) -> Awaitable[Duplex]:
        """Return a port of a Pod as a stream of bytes; raises OSError."""
        return self._ports.dial(namespace, pod, port)

    def api_server_at(self, pod: str, port: int) -> tuple[KeyPair, bytes] | None:
        """Return the serving certificate of the API server at an address, and the authority of its clients; None if there is none."""
        entry = self.server.store.table("pods").objects.get(object_key("kube-system", pod))
        component, _, machine = pod.partition("kube-apiserver-")
        if entry is None or self.serving is None or component or machine not in self._running:
            return None
        if (_annotations(entry.raw).get(objects.ADVERTISED) or f":{API_SERVER_PORT}").rpartition(":")[2] != str(port):
            return None
        return self.serving.certificate, self.serving.client_authorities

    def network_address(self) -> tuple[str, int] | None:
        """Return the network address of the API servers; None if they are not on the network."""
        return (self.host, self.port) if self._listener is not None and self._is_open else None

    def etcd_on(self, machine: str) -> tuple[KeyPair, bytes] | None:
        """Return the certificate of the etcd member on a machine, and the authority of its clients; None if none answers there."""
        answers = any(m.name == machine and not m.is_stopped for m in self.members())
        return self._etcd_certificates.get(machine) if answers else None

    def etcd_call(self, machine: str) -> etcdport.Call:
        """Return the handler for calls to the member on a machine."""
        return EtcdServer(machine, members=self.members, annotate=self.annotate_etcd, now=self.server.now).call

    # -------------------------------------------------------------------------------------------------- kubelets

    def renew_leases(self, now: datetime) -> None:
        """Renew the Lease of every running kubelet."""
        if not self.is_serving:
            return
        table = self.server.store.table("leases.coordination.k8s.io")
        for entry in list(table.range("kube-node-lease")):
            node = self.server.store.table("nodes").objects.get(entry.name)
            if node is None or objects.KUBELET_STOPPED in _annotations(node.raw):
                continue
            lease: Json = msgspec.json.decode(entry.raw)
            lease["spec"]["renewTime"] = objects.micro_time(now)
            self.server.put_system(table, entry, lease)
        self.server.drain()


def _order(version: str) -> tuple[int, ...]:
    """Return a sort key of versions; invalid ones come last."""
    try:
        return parse_version(version).release
    except ValueError:
        return (sys.maxsize,)


class _Data(msgspec.Struct):
    data: dict[str, bytes] = {}


class _Annotated(msgspec.Struct):
    class Meta(msgspec.Struct):
        annotations: dict[str, str] = {}

    metadata: Meta


_ANNOTATED = msgspec.json.Decoder(_Annotated)


def _annotations(raw: bytes) -> Mapping[str, str]:
    return _ANNOTATED.decode(raw).metadata.annotations
