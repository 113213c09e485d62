"""A log that has grown large, because somebody read for long, is folded in while the server serves; nothing answered is lost.

`SOAK_LOG_BYTES` says how large the log of the soak becomes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import aiohttp
import pytest

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.identity import ADMIN
from clusterwright.apiserver.serving.serve import RunningServer, ServeOptions, start
from support.patience import PATIENCE

PATH = "/api/v1/namespaces/default/configmaps"
SIZE, OBJECTS = 900_000, 16
LIMIT = 67_108_864
"""What a log may keep of its room when it is folded in."""


async def begin(folder: Path) -> RunningServer:
    options = ServeOptions(listen="127.0.0.1:0", data_dir=folder, tokens={"t": ADMIN}, now=lambda: datetime.now(UTC), random=Random(1))
    return await start(options)


async def write(running: RunningServer, name: str, value: str) -> None:
    """Create or change an object; returns when that is answered."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}
    query = (("fieldManager", "test"), ("force", "true"))
    headers = {"content-type": "application/apply-patch+yaml"}
    request = Request(method="PATCH", path=f"{PATH}/{name}", query=query, headers=headers, body=json.dumps(body).encode())
    answer = await running.server.handle(request)
    assert isinstance(answer, Response)
    assert answer.status in (200, 201), answer.body[:500]


class Other:
    """A second client, over the network: asks for something small, again and again."""

    def __init__(self, running: RunningServer) -> None:
        self._url, self.waits = f"{running.url}{PATH}/small", list[float]()
        self._task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        connector, clock = aiohttp.TCPConnector(ssl=False), asyncio.get_running_loop().time
        async with aiohttp.ClientSession(connector=connector, headers={"Authorization": "Bearer t"}) as session:
            while True:
                begun = clock()
                async with session.get(self._url) as answer:
                    assert answer.status == 200
                    await answer.read()
                self.waits.append(clock() - begun)
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        assert not self._task.done(), self._task.exception()
        self._task.cancel()
        await asyncio.wait([self._task])


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(80_000_000, id="80 MB"),
        pytest.param(int(os.environ.get("SOAK_LOG_BYTES", "1000000000")), id="as large as it is said", marks=pytest.mark.soak),
    ],
)
async def test_a_log_that_has_grown_is_folded_in_while_serving(tmp_path: Path, size: int) -> None:
    running = await begin(tmp_path)
    log = tmp_path / "store.sqlite-wal"
    await write(running, "small", "x")
    said: dict[str, str] = {}
    reader = sqlite3.connect(f"file:{tmp_path / 'store.sqlite'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM objects").fetchone()  # as a backup does: the log must keep what it may still need
    other = Other(running)
    n = 0
    while log.stat().st_size < size:
        n += 1
        name = f"c{n % OBJECTS}"
        await write(running, name, f"{n:08}" + "x" * SIZE)
        said[name] = f"{n:08}"
    grown, before = log.stat().st_size, len(other.waits)

    reader.close()
    async with asyncio.timeout(PATIENCE):
        while log.stat().st_size > LIMIT or len(other.waits) == before:
            n += 1
            await write(running, "last", f"{n:08}")
            said["last"] = f"{n:08}"
    folded, served = log.stat().st_size, len(other.waits)
    await other.end()
    slowest = max(other.waits[before:], default=0.0)
    await running.stop()

    again = await begin(tmp_path)
    objects = again.server.store.table("configmaps").objects
    kept = {name: json.loads(objects[f"default/{name}"].raw)["data"]["k"][:8] for name in said}
    await again.stop()

    print(f"log of {grown:,} bytes folded to {folded:,}; {served - before} requests served meanwhile, the slowest in {slowest:.3f} s")  # noqa: T201 - what a soak is asked for
    assert grown >= size
    assert kept == said
    assert served > before > 0, "others are served while the log grows, and while it is folded in"
    assert sum(f.stat().st_size for f in tmp_path.glob("store.sqlite*")) < OBJECTS * SIZE * 2 + LIMIT
