"""One simulated workload cluster: an API server of its own, the machines' processes in front of it, etcd behind it.

Its objects are the state; everything else that is kept here (which API servers run, certificates, open listeners) is what a power
cut would end, and is brought back by the machines when they are looked at again.
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
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.rest import RestClient

Sign = Callable[[KeyPair, str, tuple[str, ...]], Awaitable[KeyPair]]
"""A serving certificate of an authority, for a common name and hosts."""


class Listener(Protocol):
    """A network front end of workload clusters."""

    async def start(self, cluster: SimulatedCluster, context: ssl.SSLContext) -> None:
        """Answer at the cluster's host and port; raises OSError where that cannot be."""

    async def stop(self, cluster: SimulatedCluster) -> None:
        """Stop answering, and cut the open connections."""

    def hold(self, host: str, port: int) -> bool:
        """Keep a port for ourselves; False if somebody else has it."""

    def release(self, host: str, port: int) -> None:
        """Let a port go."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The certificate that an API server presents, and the authority that it trusts."""

    authority: KeyPair
    certificate: KeyPair


class SimulatedCluster:
    """It answers while an API server runs, etcd has quorum, and nobody has cut it off."""

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
        """The machines whose API servers run, and which version each has."""
        self._is_cut_off = False
        self._is_open = False
        self._settling = asyncio.Lock()
        self._etcd_certificates: dict[str, tuple[KeyPair, bytes]] = {}
        self._addresses: dict[str, str] = {}
        self._members: tuple[int, tuple[etcd.Member, ...]] = (-1, ())
        self._ports = Ports(self, str(key))
        self._kubelets = Kubelets(server, self.ensure, node_gone)

    # ------------------------------------------------------------------------------------------------- answering

    @property
    def endpoint(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"

    @property
    def is_serving(self) -> bool:
        """Whether a connection to the endpoint gets an answer."""
        return bool(self._running) and self.serving is not None and not self._is_cut_off and self._has_quorum()

    @property
    def is_founded(self) -> bool:
        """Whether `kubeadm init` has run here, ever."""
        return self.has("v1", "ConfigMap", "kube-system", "kubeadm-config")

    async def cut_off(self, cut: bool) -> None:
        """Make the endpoint unreachable, or reachable again."""
        if cut != self._is_cut_off:
            self._is_cut_off = cut
            await self.settle()

    async def start_api_server(self, machine: str, authority: KeyPair, hosts: tuple[str, ...] = (), *, version: str = "") -> None:
        """An API server of a version begins to run on a machine; the first decides the serving certificate, the oldest the version."""
        if self.serving is None:
            names = tuple(dict.fromkeys(("localhost", "kubernetes", "kubernetes.default", "127.0.0.1", "::1", self.host, *hosts)))
            self.serving = Serving(authority, await self._sign(authority, "kube-apiserver", names))
        self._running[machine] = version
        self._take_version()
        await self.settle()

    async def stop_api_server(self, machine: str) -> None:
        """The API server of a machine stops; with the last, all connections are cut."""
        self._running.pop(machine, None)
        self._take_version()
        await self.settle()
        if not self._running:
            self.serving = None

    def _take_version(self) -> None:
        """Be of the oldest version that serves: an upgrade is done when the last API server is."""
        versions = [v for v in self._running.values() if v]
        if versions:
            self.server.version = min(versions, key=_order)

    async def settle(self) -> None:
        """Make the network front end follow the state, and tell the watchers."""
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
                        certificate, authority = self.serving.certificate, self.serving.authority.certificate
                        await self._listener.start(self, server_context(certificate, authority))
                    self._is_open = True
                    self._changed(self.key)

    async def close(self) -> None:
        """Stop answering; objects that are kept stay kept."""
        self._running.clear()
        await self.settle()
        await asyncio.gather(*self._ports.cut(), return_exceptions=True)
        self.server.close()

    # -------------------------------------------------------------------------------------------------- objects

    def has(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether an object is there."""
        return object_key(namespace, name) in self._table(api_version, kind).objects

    def ensure(self, obj: Json) -> bool:
        """Have an object, with its status, as the machines' own processes would write it; one that is there is left alone.

        Whether it was made.
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
        """Delete an object if it is there, whatever waits for it."""
        key = ObjectKey(namespace, name)
        try:
            await self.client.delete(kind, key, grace_period_seconds=0)
            if await self.client.find(kind, key) is not None:
                await self.client.patch(kind, key, {"metadata": {"finalizers": None}})
        except NotFound:
            return

    def address_of(self, machine: str, known: str = "", others: Iterable[str] = ()) -> str:
        """Return the address of a machine, like no other in this cluster; nothing listens there.

        `known` is the one that it has had before, `others` are those that other machines are known to have.
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
        """The machine is gone; its address may be given to another."""
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
        """Have the member on a machine serve with a certificate of etcd's CA."""
        if machine not in self._etcd_certificates:
            name = f"etcd-{machine}"
            pair = await self._sign(authority, name, (name, "localhost", "127.0.0.1", "::1", self.host))
            self._etcd_certificates[machine] = pair, authority.certificate

    def drop_etcd_certificate(self, machine: str) -> None:
        """The machine is gone."""
        self._etcd_certificates.pop(machine, None)

    async def annotate_etcd(self, machine: str, annotations: Mapping[str, str | None]) -> None:
        """Change what is known of a member; raises NotFound."""
        await self.client.patch(Pod, ObjectKey("kube-system", f"etcd-{machine}"), {"metadata": {"annotations": dict(annotations)}})
        await self.settle()

    def dial(self, namespace: str, pod: str, port: int) -> Awaitable[Duplex]:
        """Return a port of a Pod as a stream of bytes; raises OSError."""
        return self._ports.dial(namespace, pod, port)

    def api_server_at(self, pod: str, port: int) -> tuple[KeyPair, bytes] | None:
        """Return the serving certificate of the API server that listens there, and the authority of its clients; None if none does."""
        entry = self.server.store.table("pods").objects.get(object_key("kube-system", pod))
        component, _, machine = pod.partition("kube-apiserver-")
        if entry is None or self.serving is None or component or machine not in self._running:
            return None
        if (_annotations(entry.raw).get(objects.ADVERTISED) or f":{API_SERVER_PORT}").rpartition(":")[2] != str(port):
            return None
        return self.serving.certificate, self.serving.authority.certificate

    def network_address(self) -> tuple[str, int] | None:
        """Return where the API servers answer on the network; None if they do not."""
        return (self.host, self.port) if self._listener is not None and self._is_open else None

    def etcd_on(self, machine: str) -> tuple[KeyPair, bytes] | None:
        """Return the certificate of the etcd member on a machine, and the authority of its clients; None if none answers there."""
        answers = any(m.name == machine and not m.is_stopped for m in self.members())
        return self._etcd_certificates.get(machine) if answers else None

    def etcd_call(self, machine: str) -> etcdport.Call:
        """Return what answers the calls of the member on a machine."""
        return EtcdServer(machine, members=self.members, annotate=self.annotate_etcd, now=self.server.now).call

    # -------------------------------------------------------------------------------------------------- kubelets

    def renew_leases(self, now: datetime) -> None:
        """Every kubelet that lives says so."""
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
    """Versions in order; what admission lets pass though it is none comes last."""
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
