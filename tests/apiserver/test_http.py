from __future__ import annotations

import asyncio
import io
import json
import ssl
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from apiserver.apiserver_testing import WIDGETS, Api, Clock, configmap, make_server, widget, widget_crds
from clusterwright.apiserver.serving.connections import Limits
from clusterwright.apiserver.serving.http import HttpServer
from support.patience import PATIENCE

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture
async def http() -> Any:
    server = make_server(Clock())
    server.ensure(widget_crds())
    front = HttpServer(server)
    await front.start("127.0.0.1", 0)
    yield front
    await front.stop()


@pytest_asyncio.fixture
async def session(http: HttpServer) -> Any:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{http.port}", connector=connector) as session:
        yield session


async def test_the_head_of_a_watch_comes_at_once(session: aiohttp.ClientSession):
    async with asyncio.timeout(PATIENCE), session.get(CONFIGMAPS, params={"watch": "1", "resourceVersion": "1"}) as response:
        assert response.status == 200
        assert response.headers["Transfer-Encoding"] == "chunked"


async def test_events_reach_all_watchers(http: HttpServer, session: aiohttp.ClientSession):
    async def first_name() -> str:
        async with session.get(CONFIGMAPS, params={"watch": "1"}) as response:
            started.release()
            line = await response.content.readline()
            return str(json.loads(line)["object"]["metadata"]["name"])

    started = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(first_name()) for _ in range(50)]
    for _ in tasks:
        await started.acquire()
    await session.post(CONFIGMAPS, json=configmap("news"))

    async with asyncio.timeout(PATIENCE):
        assert set(await asyncio.gather(*tasks)) == {"news"}


async def test_a_watch_ends_properly_at_its_timeout(session: aiohttp.ClientSession):
    async with session.get(CONFIGMAPS, params={"watch": "1", "timeoutSeconds": "1"}) as response:
        assert await response.read() == b""
    async with session.get(CONFIGMAPS) as response:  # the connection is in order
        assert response.status == 200


async def test_clients_that_vanish_leave_no_watch_behind(http: HttpServer):
    for _ in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
        writer.write(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
    async with asyncio.timeout(PATIENCE):
        while http.server.watches.open():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_watcher_that_does_not_read_is_cut_off(http: HttpServer, session: aiohttp.ClientSession):
    http.limits = Limits(unread=200_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port, limit=1024)
    writer.write(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    assert http.server.watches.open()
    async with asyncio.timeout(PATIENCE):
        for number in range(400):
            await session.post(CONFIGMAPS, json=configmap(f"big{number}", data={"x": "y" * 60_000}))
            if not http.server.watches.open():
                break

    assert not http.server.watches.open()
    writer.close()


async def test_a_client_that_vanishes_in_its_body_writes_nothing(http: HttpServer, session: aiohttp.ClientSession):
    body = json.dumps(configmap("half")).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", http.port)
    writer.write(f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    writer.write(body[:-5])
    await writer.drain()
    writer.transport.abort()
    await asyncio.sleep(0)

    async with session.get(f"{CONFIGMAPS}/half") as response:
        assert response.status == 404


class CountingAuthorizer:
    """Allows all but deletions, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def allows(self, server: Any, user: Any, info: Any) -> bool:
        self.asked.append(info.verb)
        return bool(info.verb != "delete")


async def test_a_request_is_authorised_once_and_before_its_body_is_read(http: HttpServer, session: aiohttp.ClientSession):
    authorizer = http.server.authorizer = CountingAuthorizer()
    async with session.post(CONFIGMAPS, json=configmap("a")) as response:
        assert response.status == 201
    async with session.get(f"{CONFIGMAPS}/a") as response:
        assert response.status == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
    writer.write(f"DELETE {CONFIGMAPS}/a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n".encode())  # and no body
    async with asyncio.timeout(PATIENCE):
        status, _ = await _answer(reader)
        assert await reader.read() == b""  # the connection ends: what would come next is a body
    writer.close()

    assert status == b"403"
    assert authorizer.asked == ["create", "get", "delete"]


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return head.split(b" ", 2)[1], await reader.readexactly(length)


async def test_unknown_methods_are_refused_as_methods(http: HttpServer):
    for path, status in ((CONFIGMAPS, b"405"), ("/version", b"405"), ("/healthz", b"200"), ("/nope", b"404")):
        reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
        writer.write(f"BREW {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await _answer(reader))[0] == status
        writer.close()


async def test_a_body_in_many_pieces_is_unchanged(http: HttpServer):
    """Every piece begins with what could be the method of a request, and the first one comes at any step of how a head is taken."""
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
    for steps in range(12):
        text = "word " * 50
        pieces = [b"kind : ConfigMap\n", b"apiVersion : v1\n", f"metadata : {{name: after-{steps}}}\n".encode(), b"data : {text: '"]
        pieces += [*[b"word "] * 50, b"'}\n"]
        length = sum(map(len, pieces))
        head = f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode())
        for piece in pieces:
            for _ in range(steps):
                await asyncio.sleep(0)
            writer.write(piece)
        status, answered = await _answer(reader)
        assert status == b"201", answered
        assert json.loads(answered)["data"]["text"] == text
    writer.close()


@pytest.mark.parametrize("chunked", [True, False])
async def test_bodies_over_the_limit_are_refused_with_a_status(session: aiohttp.ClientSession, chunked: bool):
    async def parts() -> Any:
        for _ in range(5):
            yield b"x" * 1_000_000

    data: Any = parts() if chunked else io.BytesIO(b"x" * 4_000_000)
    async with session.post(CONFIGMAPS, data=data, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 413
        assert (await response.json())["reason"] == "RequestEntityTooLarge"


async def test_warnings_are_headers(session: aiohttp.ClientSession):
    async with session.post(WIDGETS, json=widget("w", nope='"quoted"', other=1)) as response:
        assert sorted(response.headers.getall("Warning")) == [
            '299 - "unknown field \\"spec.nope\\""',
            '299 - "unknown field \\"spec.other\\""',
        ]


async def test_encoded_paths_are_decoded_once(session: aiohttp.ClientSession, http: HttpServer):
    from yarl import URL

    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:x"}, "rules": []}
    await session.post(roles, json=body)

    async with session.get(URL(f"http://127.0.0.1:{http.port}{roles}/system%3Ax", encoded=True)) as response:
        assert response.status == 200


async def test_metrics_have_kube_apiservers_names(http: HttpServer, session: aiohttp.ClientSession):
    from clusterwright.apiserver.metrics import Metrics

    http.server.metrics = Metrics()
    await session.post(CONFIGMAPS, json=configmap("m"))
    await session.get(f"{CONFIGMAPS}/m")
    async with session.get("/metrics") as response:
        text = await response.text()

    assert 'apiserver_request_total{code="201"' in text
    assert 'resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1' in text
    assert "apiserver_request_duration_seconds_bucket{" in text
    assert 'apiserver_storage_objects{resource="configmaps"} 1' in text


async def test_nothing_is_answered_before_the_handshake_of_tls(http: HttpServer):
    context = ssl.create_default_context()
    with pytest.raises((ssl.SSLError, OSError)):
        await asyncio.open_connection("127.0.0.1", http.port, ssl=context)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/namespaces?labelSelector=%ff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/namespaces?labelSelector=%zz&%=% HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET //api//v1//namespaces HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        b"BREW /api HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nImpersonate-Group: only\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\n\r\n",
        bytes(range(256)) * 8 + b"\r\n\r\n",
    ],
)
async def test_malformed_http_is_answered_or_cut_off_without_harm(http: HttpServer, session: aiohttp.ClientSession, raw: bytes):
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
    writer.write(raw)
    writer.write_eof()
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()

    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 500")
    async with session.get("/readyz") as response:
        assert response.status == 200


async def test_malformed_http_is_answered_in_the_version_that_is_spoken(http: HttpServer):
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
    writer.write(b"\x16\x03\x01\x02\x00\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nConnection: close\r\n" in answer


async def test_the_server_is_found_through_its_service():
    server = make_server()
    http = HttpServer(server)
    port = await http.start("127.0.0.1", 0)
    api = Api.of(server)

    service = await api.get("/api/v1/namespaces/default/services/kubernetes")
    endpoints = await api.get("/api/v1/namespaces/default/endpoints/kubernetes")

    assert (service["spec"]["ports"][0]["targetPort"], service["spec"]["ports"][0]["port"]) == (port, 443)
    assert endpoints["subsets"] == [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}]
    addresses = await api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
    assert (addresses["spec"]["cidrs"], addresses["status"]["conditions"][0]["status"]) == (["10.0.0.0/24"], "True")
    checks = (await api.get("/healthz", verbose="")).raw.decode()
    assert "[+]poststarthook/crd-informer-synced ok" in checks
    assert checks.endswith("healthz check passed\n")
    await http.stop()
