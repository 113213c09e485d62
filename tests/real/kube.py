"""A real kube-apiserver with its etcd, our processes on it, and what its audit log says of them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusterwright import conditions
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.wire import Request
from clusterwright.apiserver.serving.tls import make_authority, sign
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples

PATIENCE = 900.0
"""Seconds that anything may take on a machine that others use, too."""
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def assets() -> Path | None:
    """Where KUBEBUILDER_ASSETS says that the binaries are; None: nowhere."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nowhere")
    return folder if all((folder / name).exists() for name in ("kube-apiserver", "etcd")) else None


async def until(holds: Callable[[], Awaitable[Any]], what: str, within: float = PATIENCE, step: float = 0.5) -> Any:
    deadline = asyncio.get_running_loop().time() + within
    while not (found := await holds()):
        assert asyncio.get_running_loop().time() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(step)
    return found


@dataclass(frozen=True)
class Audited:
    """One line of the audit log."""

    at: datetime
    verb: str
    resource: str
    """With its subresource."""
    name: str
    code: int
    credential: str
    """Which token was shown."""
    agent: str
    is_dry_run: bool
    """Whether nothing was stored."""


class Manager:
    """One of our processes, with a token of its own."""

    def __init__(self, process: asyncio.subprocess.Process, credential: str, log: Path) -> None:
        self.process = process
        self.credential = credential
        self.log = log

    def send(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.send(signal.SIGCONT)
        self.send(number)
        async with asyncio.timeout(120):
            return await self.process.wait()


class Kube:
    """etcd and kube-apiserver on loopback; `client` is an administrator's."""

    def __init__(self, folder: Path) -> None:
        binaries = assets()
        assert binaries is not None
        self.folder, self._binaries = folder, binaries
        # the binaries bind by themselves: ports are free when they are asked for, and a clash shows at once
        self._ports = [free_port() for _ in range(3)]
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self.managers: list[Manager] = []
        self.kubeconfig = folder / "admin.conf"
        self._prepare()

    def _prepare(self) -> None:
        now = SystemClock().now()
        authority = make_authority(now)
        serving = sign(authority, now, "kube-apiserver", hosts=["127.0.0.1", "localhost"])
        admin = sign(authority, now, "admin", organizations=["system:masters"])
        accounts = make_authority(now, "accounts")
        for name, content in {
            "ca.crt": authority.certificate, "server.crt": serving.certificate, "server.key": serving.key,
            "sa.key": accounts.key, "sa.crt": accounts.certificate, "policy.yaml": POLICY.encode(),
        }.items():  # fmt: skip
            (self.folder / name).write_bytes(content)
        user = {"client-certificate-data": _b64(admin.certificate), "client-key-data": _b64(admin.key)}
        self.write_kubeconfig(self.kubeconfig, user)

    def write_kubeconfig(self, path: Path, user: dict[str, str], server: str = "") -> None:
        """For this user; `server` is where the API server is reached, if not at its own address."""
        cluster = {
            "server": server or f"https://127.0.0.1:{self._ports[0]}",
            "certificate-authority-data": _b64((self.folder / "ca.crt").read_bytes()),
        }
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1", "kind": "Config", "current-context": "c",
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": user}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )  # fmt: skip

    async def __aenter__(self) -> Kube:
        await self.start_etcd()
        await self.start_server()
        self._transport = HttpTransport(Kubeconfig.load([self.kubeconfig]).resolve(), SystemClock())
        self.client = RestClient(self._transport, clock=SystemClock(), user_agent="test")
        await until(self._is_ready, "kube-apiserver is ready")
        return self

    async def _is_ready(self) -> bool:
        try:
            return await self.client.raw_get("/readyz") == b"ok"
        except Exception:  # whatever it is, it does not answer yet
            return False

    async def __aexit__(self, *_: object) -> None:
        for manager in self.managers:
            if manager.process.returncode is None:
                await manager.stop(signal.SIGKILL)
        await self._transport.close()
        for name in ("kube-apiserver", "etcd"):  # in this order: without its etcd the server would wait for it
            await self.end(name)

    async def start_etcd(self) -> None:
        _, client, peer = self._ports
        url = f"http://127.0.0.1:{client}"
        await self._start(
            "etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
        )  # fmt: skip

    async def start_server(self) -> None:
        secure, etcd, _ = self._ports
        folder = self.folder
        await self._start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={secure}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key",
            f"--client-ca-file={folder}/ca.crt", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder}/sa.crt", f"--service-account-signing-key-file={folder}/sa.key",
            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC", f"--audit-policy-file={folder}/policy.yaml",
            f"--audit-log-path={folder}/audit.jsonl", "--audit-log-maxsize=0",
        )  # fmt: skip

    async def _start(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(str(self._binaries / name), *flags, stdout=log, stderr=log)

    async def end(self, name: str) -> None:
        """Stop etcd or kube-apiserver."""
        process = self._processes[name]
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def send(self, name: str, number: signal.Signals) -> None:
        """Send etcd or kube-apiserver a signal."""
        self._processes[name].send_signal(number)

    # Our processes.

    async def command(self, *words: str) -> str:
        """A command of ours as the administrator; what it printed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clusterwright", *words, "--kubeconfig", str(self.kubeconfig),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        return out.decode()

    async def install(self, *flags: str) -> None:
        """What `clusterwright install --apply` makes."""
        await self.command("install", "--apply", *flags)

    async def manager(self, *flags: str, namespace: str = "clusterwright-system", server: str = "") -> Manager:
        """A manager with the rights of the installed account and no others, and a token that only it has; `server`: by this way."""
        number = len(self.managers)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        body = json.dumps(asked).encode()
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/clusterwright-manager/token"
        answer = await self._transport.send(Request(method="POST", path=path, body=body, headers={"content-type": "application/json"}))
        assert answer.status == 201, answer.body
        token = json.loads(answer.body)["status"]["token"]
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        kubeconfig, log = self.folder / f"manager-{number}.conf", self.folder / f"manager-{number}.log"
        self.write_kubeconfig(kubeconfig, {"token": token}, server)
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "clusterwright", "manager", "--kubeconfig", str(kubeconfig), "--lease-namespace", namespace,
                "--log-level", "info", *flags, stdout=out, stderr=out, cwd=self.folder,
            )  # fmt: skip
        manager = Manager(process, f"JTI={claims['jti']}", log)
        self.managers.append(manager)
        return manager

    # What happened.

    def audited(self, since: datetime | None = None) -> Iterator[Audited]:
        """Finished requests, in the order of the log."""
        for line in (self.folder / "audit.jsonl").read_text(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            at = datetime.fromisoformat(event["requestReceivedTimestamp"])
            ref = event.get("objectRef") or {}
            if event.get("stage") != "ResponseComplete" or (since is not None and at < since):
                continue
            extra = (event.get("user") or {}).get("extra") or {}
            yield Audited(
                at,
                event["verb"],
                ref.get("resource", "") + (f"/{ref['subresource']}" if ref.get("subresource") else ""),
                ref.get("name", ""),
                (event.get("responseStatus") or {}).get("code", 0),
                (extra.get("authentication.kubernetes.io/credential-id") or [""])[0],
                event.get("userAgent", ""),
                "dryRun=All" in event["requestURI"],
            )

    def writes(self, managers: Sequence[Manager], since: datetime | None = None) -> list[Audited]:
        """Writes of these processes but for Events and Leases."""
        ours = {manager.credential for manager in managers}
        aside = {"events", "leases", "tokenreviews", "subjectaccessreviews"}
        return [
            e for e in self.audited(since) if e.credential in ours and e.verb in WRITES and e.resource not in aside and not e.is_dry_run
        ]


async def create_clusters(kube: Kube, names: Sequence[str], *, control_plane: int, workers: int) -> None:
    for name in names:
        objects = [*samples.cluster(name, has_control_plane_object=True), *samples.control_plane(name, replicas=control_plane)]
        if workers:
            objects += samples.workers(name, f"{name}-md", replicas=workers)
        for obj in objects:
            await kube.client.create(obj)


async def until_available(kube: Kube, names: Sequence[str], machines: int) -> None:
    async def holds() -> bool:
        clusters = {c.metadata.name: c for c in await kube.client.list(Cluster)}
        running = Counter(m.spec.cluster_name for m in await kube.client.list(Machine) if conditions.is_true(m.status.conditions, "Ready"))
        return all(
            n in clusters and conditions.is_true(clusters[n].status.conditions, "Available") and running[n] == machines for n in names
        )

    await until(holds, f"{len(names)} clusters are available with {machines} machines each", step=2.0)


def now() -> datetime:
    return datetime.now(UTC)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
