"""Many watches, many that never read: memory stays bounded, the others are served."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import aiohttp
import pytest

from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.connections import Limits
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.storage import streams
from support.patience import PATIENCE

PATH = "/api/v1/namespaces/default/configmaps"
HEAD = f"GET {PATH}?watch=true&resourceVersion=0 HTTP/1.1\r\nHost: x\r\n\r\n".encode()


class Served:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.port = process, port

    @property
    def resident(self) -> int:
        """MB that the server holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) // 1024

    @property
    def open_connections(self) -> int:
        """Sockets that the server holds."""
        return sum(1 for fd in Path(f"/proc/{self.process.pid}/fd").iterdir() if "socket" in str(fd.readlink()))


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    script = Path(__file__).parent / "bare_server.py"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port = int(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
    try:
        yield Served(process, port)
    finally:
        process.kill()
        await process.wait()


async def silent(port: int) -> socket.socket:
    """A client that asks for a watch and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, HEAD)
    return client


async def reading(port: int, wanted: int, seen: list[int]) -> None:
    """A client that reads its watch until it has seen so many changes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD)
    count = 0
    while count < wanted:
        data = await reader.read(65536)
        if not data:
            break
        count += data.count(b'"type":"MODIFIED"')
    seen.append(count)
    writer.close()


@pytest.mark.parametrize(
    ("watches", "silents", "changes"),
    [pytest.param(300, 50, 40, id="some"), pytest.param(2000, 200, 60, id="thousands", marks=pytest.mark.soak)],
)
async def test_a_client_that_does_not_read_only_affects_itself(watches: int, silents: int, changes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    async with served() as server, aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": ""}}
        async with session.post(PATH, json=body) as answer:
            assert answer.status == 201
        before = server.resident
        lazy = [await silent(server.port) for _ in range(silents)]
        seen: list[int] = []
        readers = [asyncio.ensure_future(reading(server.port, changes, seen)) for _ in range(watches)]
        async with asyncio.timeout(PATIENCE):
            while server.open_connections < watches + silents:  # noqa: ASYNC110 - they come in their own time
                await asyncio.sleep(0.1)
            await asyncio.sleep(1.0)
        slowest, peak = 0.0, 0
        for n in range(changes):
            started = time.perf_counter()
            patch = json.dumps({"data": {"k": f"{n}" + "x" * 60_000}})
            async with session.patch(PATH + "/c", data=patch, headers={"Content-Type": "application/merge-patch+json"}) as answer:
                assert answer.status == 200
            slowest, peak = max(slowest, time.perf_counter() - started), max(peak, server.resident)
        await asyncio.wait_for(asyncio.gather(*readers), PATIENCE)
        for client in lazy:
            client.close()

    assert sum(1 for count in seen if count == changes) >= 0.99 * watches, "who reads misses nothing"
    assert peak - before < 100 + 2 * silents  # MB: one for each that never reads, and what is on its way to the others
    assert slowest < 20.0


async def test_a_watch_begins_with_all_existing_objects_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "QUEUE_LIMIT", 20)
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1))
    for n in range(100):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}, "data": {"k": "x" * 20_000}}
        await server.handle(Request(method="POST", path=PATH, body=json.dumps(body).encode(), headers={"content-type": "application/json"}))
    http = HttpServer(server, limits=Limits(unread=50_000))
    port = await http.start("127.0.0.1", 0)
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    types = []
    url = f"http://127.0.0.1:{port}{PATH}"
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(read_bufsize=2**20) as session, session.get(url, params=query) as answer:
        while len(types) < 101:
            types.append(json.loads(await answer.content.readline())["type"])
    await http.stop()

    assert types == ["ADDED"] * 100 + ["BOOKMARK"]
