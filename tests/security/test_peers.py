"""What a peer sends us is bounded: a workload cluster may be anybody's."""

from __future__ import annotations

import asyncio
import gzip
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from clusterwright.api.wire import Request
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.http import MAX_LINE, HttpTransport
from clusterwright.runtime.kubeconfig import Connection
from clusterwright.streams.grpc import Channel, GrpcError
from support.patience import PATIENCE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LIMIT = 8 * 1024 * 1024


@asynccontextmanager
async def peer(handler: Handler) -> AsyncIterator[HttpTransport]:
    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    transport = HttpTransport(Connection(server=url), SystemClock(), {}, max_body=LIMIT)
    try:
        yield transport
    finally:
        await transport.close()
        await runner.cleanup()


async def longest_pause(work: Awaitable[object]) -> float:
    """How long the event loop was held at a time while something was done."""
    loop, longest = asyncio.get_running_loop(), 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        before = loop.time()
        await asyncio.sleep(0)
        longest = max(longest, loop.time() - before)
    await asyncio.gather(task, return_exceptions=True)
    return longest


async def test_an_answer_that_unpacks_to_400_mb_is_abandoned() -> None:
    bomb = gzip.compress(b"\0" * 400_000_000, 9)

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with peer(handler) as transport:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        asked = asyncio.ensure_future(transport.send(Request(method="GET", path="/api")))
        pause = await longest_pause(asked)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    with pytest.raises(ConnectionFailed, match="longer than"):
        asked.result()
    assert grown < 100_000  # kB
    assert pause < 2.0  # it was 12.8 s; unpacking happens in steps of a quarter of a megabyte


async def test_an_endless_answer_is_abandoned() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65536)

    async with peer(handler) as transport:
        with pytest.raises(ConnectionFailed, match="longer than"):
            await transport.send(Request(method="GET", path="/api"))


async def test_compressed_answers_are_read() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b"x" * 3_000_000), headers={"Content-Encoding": "gzip"})

    async with peer(handler) as transport:
        answer = await transport.send(Request(method="GET", path="/api"))

    assert answer.body == b"x" * 3_000_000


@pytest.mark.parametrize("body", [gzip.compress(b"x" * 100_000)[:-20], b"no gzip at all"], ids=["cut off", "garbled"])
async def test_a_damaged_compressed_answer_is_a_failed_connection(body: bytes) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with peer(handler) as transport:
        with pytest.raises(ConnectionFailed):
            await transport.send(Request(method="GET", path="/api"))


async def test_an_unexpected_content_encoding_is_refused() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=b"{}", headers={"Content-Encoding": "br"})

    async with peer(handler) as transport:
        with pytest.raises(ConnectionFailed, match="unexpected Content-Encoding"):
            await transport.send(Request(method="GET", path="/api"))
        with pytest.raises(ConnectionFailed, match="unexpected Content-Encoding"):
            await transport.stream(Request(method="GET", path="/api"))


async def test_an_endless_line_of_a_watch_is_abandoned() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b'{"type":"ADDED"}\n')
        for _ in range(MAX_LINE // 1_000_000 + 2):
            await answer.write(b"x" * 1_000_000)
        return answer

    async with peer(handler) as transport:
        _, lines = await transport.stream(Request(method="GET", path="/api"))
        assert await anext(lines) == b'{"type":"ADDED"}'  # an async generator is an async iterator
        with pytest.raises(ConnectionFailed, match="longer than"):
            await anext(lines)


class Tunnel:
    """A TLS stream that says what it was told to say."""

    def __init__(self, text: bytes, then: bytes = b"") -> None:
        self._text, self._then = text, then

    async def send(self, message: bytes) -> None:
        del message

    async def receive(self) -> bytes | None:
        text, self._text = self._text, self._then
        return text

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "frames",
    [
        b"\0\0\4\0\0\0\0\0\1" + b"x" * 4,
        b"\0\0\1\1\0\0\0\0\1\x88" + b"\0\0\1\x09\0\0\0\0\1\x88" * 100,
        b"\0\x40\1\0\0\0\0\0\1",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
    ids=["data-before-headers", "continuations", "too-long-frame", "http1"],
)
async def test_an_endless_answer_of_etcd_is_abandoned(frames: bytes) -> None:
    settings = b"\0\0\0\4\0\0\0\0\0"
    channel = Channel(Tunnel(settings + frames, frames), "etcd")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(GrpcError):
            await channel.unary("/etcdserverpb.Maintenance/Status", b"", seconds=1)
