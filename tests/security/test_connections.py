"""What a connection may cost before it is known whose it is, and how users share the server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

import aiohttp
import pytest

from clusterwright.api.wire import Request
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.connections import Limits
from clusterwright.apiserver.serving.http import HttpServer
from support.patience import PATIENCE

REVIEW = b"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
TOKENS = {"root": User("root", ("system:masters",)), "plain": User("plain", ("system:authenticated",))}


@asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[HttpServer]:
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), authorizer=RbacAuthorizer())
    server.ensure(bootstrap_roles())
    http = HttpServer(server, Authenticator(TOKENS), limits=limits)
    await http.start("127.0.0.1", 0)
    try:
        yield http
    finally:
        await http.stop()


async def ended(port: int, text: bytes, drip: bytes = b"") -> bytes:
    """What the server says before it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    said = b""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with asyncio.timeout(0.1):
                    data = await reader.read(65536)
            except TimeoutError:
                if drip:
                    writer.write(drip)
                continue
            except OSError:
                break
            if not data:
                break
            said += data
    writer.close()
    return said


@pytest.mark.parametrize(
    ("text", "drip"),
    [(b"", b""), (REVIEW[:40], b""), (REVIEW, b"X: y\r\n")],
    ids=["nothing", "half a head", "a line at a time"],
)
async def test_a_head_that_does_not_come_in_time_ends_the_connection(text: bytes, drip: bytes) -> None:
    async with serving(Limits(head=0.5)) as http:
        assert await ended(http.port, text, drip) == b""


async def test_a_second_request_has_its_time_too() -> None:
    async with serving(Limits(head=0.5)) as http:
        said = await ended(http.port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", drip=b"G")

    assert said.startswith(b"HTTP/1.1 200")
    assert said.count(b"HTTP/1.1 200") == 1


async def test_the_body_of_an_unauthorised_request_is_not_read() -> None:
    async with serving(Limits()) as http:
        said = await ended(http.port, REVIEW + b"Content-Length: 3000000\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 403")


async def test_the_oldest_unknown_connection_is_closed_if_there_are_too_many() -> None:
    async with serving(Limits(strangers=5)) as http:
        first = asyncio.ensure_future(ended(http.port, b""))
        await asyncio.sleep(0.2)
        others = [await asyncio.open_connection("127.0.0.1", http.port) for _ in range(6)]
        await asyncio.wait_for(first, PATIENCE)
        async with aiohttp.ClientSession() as session:
            url, known = f"http://127.0.0.1:{http.port}/api/v1/namespaces", {"Authorization": "Bearer root"}
            async with session.get(url, headers=known) as answer:
                status = answer.status
        for _, writer in others:
            writer.close()

    assert status == 200


async def test_bodies_are_bounded_together() -> None:
    async with serving(Limits()) as http:
        http._reading[False] = 64 * 1024 * 1024  # as if as many were under way as may be
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{http.port}/api/v1/namespaces"
            headers = {"Authorization": "Bearer root", "Content-Type": "application/json"}
            async with session.post(url, data=b'{"metadata":{"name":"x"}}', headers=headers) as answer:
                refused = answer.status, answer.headers["Retry-After"]
            http._reading[False] = 0
            async with session.post(url, data=b'{"metadata":{"name":"x"}}', headers=headers) as answer:
                served = answer.status

    assert refused == (429, "1")
    assert (served, http._reading) == (201, {True: 0, False: 0})


async def test_answers_name_their_level_and_no_version_of_ours() -> None:
    async with serving(Limits()) as http, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{http.port}/version"
        found = []
        for token in ("root", "plain"):
            async with session.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
                found.append((answer.headers["X-Kubernetes-PF-FlowSchema-UID"], answer.headers["X-Kubernetes-PF-PriorityLevel-UID"]))
                assert answer.headers["Server"] == "clusterwright"

    assert len({level for _, level in found}) == 2


# --------------------------------------------------------------------------------------------------------------- taking turns


async def test_a_flood_over_the_network_leaves_the_controllers_their_share() -> None:
    """Requests in this process, as controllers make them, while two hundred connections ask as fast as they can."""
    async with serving(Limits()) as http:
        url, stop = f"http://127.0.0.1:{http.port}/api/v1/namespaces/default/configmaps?limit=500", asyncio.Event()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, headers={"Authorization": "Bearer plain"}) as session:

            async def flood() -> None:
                while not stop.is_set():
                    async with session.get(url) as answer:
                        await answer.read()

            tasks = [asyncio.ensure_future(flood()) for _ in range(200)]
            await asyncio.sleep(0.5)
            count, end = 0, time.process_time() + 2.0  # all of them are in this process: its time is shared, not the machine's
            while time.process_time() < end:
                body = json.dumps({"metadata": {"name": f"n{count}"}}).encode()
                await http.server.handle(
                    Request(method="POST", path="/api/v1/namespaces", body=body, headers={"content-type": "application/json"})
                )
                await asyncio.sleep(0)
                count += 1
            stop.set()
            await asyncio.gather(*tasks)

    assert count >= 10


async def test_a_client_that_disconnects_early_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Limits()) as http:
        body = json.dumps({"metadata": {"name": "large"}, "data": {"k": "x" * 900_000}}).encode()
        await http.server.handle(
            Request(method="POST", path="/api/v1/namespaces/default/configmaps", body=body, headers={"content-type": "application/json"})
        )
        for path in ("configmaps/large", "configmaps?watch=true"):
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", http.port, limit=1024)
                head = f"GET /api/v1/namespaces/default/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer root\r\n\r\n"
                writer.write(head.encode())
                await reader.read(100)
                writer.transport.abort()
        await asyncio.sleep(0.3)

    assert [r.getMessage() for r in caplog.records if r.levelname in {"ERROR", "CRITICAL"}] == []
