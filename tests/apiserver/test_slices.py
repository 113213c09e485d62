"""Long lists are made and sent in slices: others have their turns in between. Counted, not timed."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from apiserver.apiserver_testing import Clock, configmap, make_server
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.verbs import reads
from support.patience import PATIENCE

PATH = "/api/v1/namespaces/default/configmaps"


async def with_objects(count: int, text: str) -> ApiServer:
    server = make_server(Clock())
    for number in range(count):
        obj = {**configmap(f"c{number:03}"), "data": {"text": text}}
        obj["metadata"] = {**obj["metadata"], "labels": {"odd": str(number % 2)}}
        body = json.dumps(obj).encode()
        answer = await server.handle(Request(method="POST", path=PATH, body=body, headers={"content-type": "application/json"}))
        assert answer.status == 201
    return server


@pytest.mark.parametrize(("query", "found"), [((), 60), ((("labelSelector", "odd=1"),), 30)], ids=["all", "selected"])
async def test_a_long_list_is_made_in_turns(monkeypatch: pytest.MonkeyPatch, query: tuple[tuple[str, str], ...], found: int) -> None:
    server = await with_objects(60, "x")
    whole = await server.handle(Request(method="GET", path=PATH, query=query))
    monkeypatch.setattr(reads, "_TURN", 10)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    sliced = await server.handle(Request(method="GET", path=PATH, query=query))
    task.cancel()

    assert turns >= found // 10
    assert sliced.body == whole.body
    assert len(json.loads(sliced.body)["items"]) == found


async def test_a_list_waits_in_slices_for_a_client_that_does_not_read() -> None:
    server = await with_objects(40, "x" * 200_000)
    http = HttpServer(server)
    port = await http.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            held = 0
            for number in range(40):
                async with session.get(f"{PATH}/c{number:03}") as answer:
                    assert answer.status == 200
                    await answer.read()
                assert http._low_level is not None
                transports = [c.transport for c in http._low_level.connections if c.transport is not None]
                held = max(held, *(t.get_write_buffer_size() for t in transports))
            writer.close()
            async with session.get(PATH) as answer:
                assert len((await answer.json())["items"]) == 40
    finally:
        await http.stop()

    assert 0 < held < 1_000_000  # of eight megabytes
