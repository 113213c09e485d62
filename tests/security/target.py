"""A server in a process of its own, and a second client that measures how long the event loop works while it waits for an answer."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from clusterwright.runtime.http import ssl_context
from clusterwright.runtime.kubeconfig import Kubeconfig
from security.attacks import CONFIG_MAPS, CRDS, NAMESPACE, THING, _config_map, _crd
from security.further_attacks import RBAC, _of
from support.patience import PATIENCE

LEAST = 0.05
"""Seconds of CPU time that the event loop may use while the second client waits for one answer."""
PAUSE = 0.015
"""Seconds between its requests: to ask without end is work for the server, too."""


class Wait(NamedTuple):
    """How long the second client waited for an answer, and how much CPU time the event loop used meanwhile."""

    seconds: float
    worked: float


class Target:
    """A server in a process of its own, and three ways to be known to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, url: str, clients: dict[str, aiohttp.ClientSession], trust: ssl.SSLContext
    ) -> None:
        self.process, self.url, self.clients, self.trust = process, url, clients, trust
        self.known = trust
        """With the administrator's certificate."""

    async def send(
        self, who: str, method: str, path: str, body: bytes = b"", media: str = "application/json", **headers: str
    ) -> tuple[int, bytes]:
        url = URL(self.url + path, encoded=True)
        named = {"Content-Type": media, **headers}
        async with self.clients[who].request(method, url, data=io.BytesIO(body) if body else None, headers=named) as answer:
            return answer.status, await answer.read()

    async def waits(self, until: Awaitable[Any]) -> list[Wait]:
        """Each small request of the second client while something was under way."""
        under_way, found = asyncio.ensure_future(until), []
        while not under_way.done():
            started, worked = time.perf_counter(), self.worked
            status, _ = await self.send("second", "GET", f"{CONFIG_MAPS}/seed")
            found.append(Wait(time.perf_counter() - started, self.worked - worked))
            assert status == 200
            await asyncio.sleep(PAUSE)
        await under_way
        return found

    def stalls(self, waits: list[Wait], least: float = LEAST) -> list[Wait]:
        """Return those in which the event loop worked for too long."""
        return [w for w in waits if w.worked >= least]

    @property
    def worked(self) -> float:
        """Seconds of CPU time that the thread of the event loop has used."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    @property
    def resident(self) -> int:
        """kB of memory that the server holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


async def new_account(target: Target, name: str) -> str:
    """Make a service account and return a token of it."""
    assert (await target.send("admin", "POST", f"{NAMESPACE}/serviceaccounts", _of("v1", "ServiceAccount", name)))[0] == 201
    request = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}'
    status, answer = await target.send("admin", "POST", f"{NAMESPACE}/serviceaccounts/{name}/token", request)
    assert status == 201
    return str(json.loads(answer)["status"]["token"])


@contextlib.asynccontextmanager
async def started(folder: Path, *options: str) -> AsyncIterator[Target]:
    """Start `up` with these options, and make the accounts that attack it."""
    flags = [*options, "--in-memory", "--kubeconfig", str(folder / "config"), "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "clusterwright.cli.main", "up", *flags, stdout=asyncio.subprocess.PIPE, cwd=folder, env=dict(os.environ)
    )
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    connection = Kubeconfig.load([folder / "config"]).resolve()
    trust = ssl_context(connection, None)
    known = ssl_context(connection, (connection.client_certificate, connection.client_key))

    def session(context: ssl.SSLContext, **headers: str) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers, timeout=aiohttp.ClientTimeout(PATIENCE))

    clients = {"nobody": session(trust), "admin": session(known), "second": session(known)}
    found = Target(process, connection.server, clients, trust)
    found.known = known
    try:
        for name in ("anybody", "tenant"):
            clients[name] = session(trust, Authorization=f"Bearer {await new_account(found, name)}")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
        subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}
        binding = _of("rbac.authorization.k8s.io/v1", "RoleBinding", "tenant", roleRef=role, subjects=[subject])
        assert (await found.send("admin", "POST", f"{RBAC}/namespaces/default/rolebindings", binding))[0] == 201
        assert (await found.send("admin", "POST", CONFIG_MAPS, _config_map({"a": "b"}, generateName=None, name="seed")))[0] == 201
        assert (await found.send("admin", "POST", CRDS, _crd("things", THING)))[0] == 201
        yield found
    finally:
        for client in clients.values():
            await client.close()
        process.kill()
        await process.wait()
