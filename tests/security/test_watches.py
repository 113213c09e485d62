"""Watches are bounded: their number for each user, and what waits for a reader that does not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import aiohttp
import pytest

from apiserver.apiserver_testing import Clock
from clusterwright.api.wire import Response
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.audit import _redacted
from clusterwright.apiserver.serving.connections import Limits
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.storage import streams
from clusterwright.apiserver.storage.streams import Stream
from support.patience import PATIENCE

WATCH = "/api/v1/configmaps?watch=true"
USERS = {"a": User("alice", ("system:authenticated",)), "b": User("bob", ("system:authenticated",)), "r": User("root", ("system:masters",))}


@asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[aiohttp.ClientSession]:
    http = HttpServer(ApiServer(now=Clock(), random=Random(1)), Authenticator(USERS, []), limits=limits)
    port = await http.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session
    finally:
        await http.stop()


async def test_a_user_has_only_so_many_watches_and_others_are_not_affected() -> None:
    async with serving(Limits(watches=3)) as session, AsyncExitStack() as stack:

        async def watch(token: str) -> aiohttp.ClientResponse:
            return await stack.enter_async_context(session.get(WATCH, headers={"Authorization": f"Bearer {token}"}))

        mine = [await watch("a") for _ in range(3)]
        refused = await watch("a")

        assert [answer.status for answer in mine] == [200] * 3
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "10"
        assert 'user "alice" has 3 watches open' in (await refused.json())["message"]
        assert [(await watch(token)).status for token in "bbbrrrr"] == [200] * 7
        mine[0].close()
        while (again := await watch("a")).status == 429:  # noqa: ASYNC110 - the server has yet to see that the client left
            await asyncio.sleep(0.01)
        assert again.status == 200


async def test_unread_bytes_of_a_slow_reader_are_bounded_and_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "QUEUE_BYTES", 10_000)
    stream = Stream(Response(status=200))
    for _ in range(50):
        stream.push(b"x" * 1000, first=True)  # the objects that exist may be more
    for _ in range(10):
        stream.push(b"y" * 1000)
    assert not stream.closed
    assert len(stream.take(30_000)) == 30_000
    for _ in range(30):
        stream.push(b"y" * 1000)
    assert not stream.closed

    stream.push(b"z" * 1000)

    assert stream.closed
    assert await stream.next() is None


def test_the_audit_log_holds_no_secrets_of_the_query() -> None:
    query = (("labelSelector", "a=b"), ("token", "needle"), ("access_token", "needle"), ("x" * 500, "needle"), ("limit", "5"))
    shown = json.dumps(_redacted(query))

    assert "needle" not in shown
    assert _redacted(query)[0] == ("labelSelector", "a=b")
    assert len(shown) < 300
