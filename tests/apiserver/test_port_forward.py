"""Port-forward over HTTP: who may, in which protocols, and what peers get that do it wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from apiserver.apiserver_testing import Clock, make_server
from clusterwright.api.wire import Duplex
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.auth.rbac import RbacAuthorizer
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.streams.pipe import TcpStream
from clusterwright.streams.session import Session
from support.echo import a_pod, echo

PATH = "/api/v1/namespaces/default/pods/p/portforward"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
ADA, BOB, EVE = ({"Authorization": f"Bearer {name}"} for name in ("ada", "bob", "eve"))


def allowed(name: str, *verbs: str) -> list[dict[str, Any]]:
    rule = {"apiGroups": [""], "resources": ["pods/portforward", "pods/exec"], "verbs": list(verbs)}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    }
    return [role, binding]


@pytest_asyncio.fixture
async def http() -> Any:
    server = make_server(Clock())
    server.authorizer = RbacAuthorizer()
    server.forward_handler = echo
    server.ensure([a_pod(), *allowed("ada", "get", "create"), *allowed("bob", "get")])
    front = HttpServer(server, Authenticator({n: User(n, groups=("system:authenticated",)) for n in ("ada", "bob", "eve")}))
    await front.start("127.0.0.1", 0)
    yield front
    await front.stop()


@pytest_asyncio.fixture
async def session(http: HttpServer) -> Any:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{http.port}") as session:
        yield session


def spdy_headers(**headers: str) -> dict[str, str]:
    return {**ADA, "Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io", **headers}


async def upgraded(http: HttpServer, path: str = PATH) -> tuple[TcpStream, bytes]:
    """A connection after its upgrade, and the head of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
    lines = [f"POST {path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in spdy_headers().items()), "Content-Length: 0", "", ""]
    writer.write("\r\n".join(lines).encode())
    return TcpStream(reader, writer), await reader.readuntil(b"\r\n\r\n")


async def test_channels_of_a_websocket_are_served_too_as_older_clients_speak_them(session: aiohttp.ClientSession) -> None:
    async with session.ws_connect(f"{PATH}?ports=80&ports=81", protocols=("v4.channel.k8s.io",), headers=ADA) as socket:
        assert socket.protocol == "v4.channel.k8s.io"
        seen: dict[int, bytes] = {}
        await socket.send_bytes(b"\x00hello")
        await socket.send_bytes(b"\x09nobody has this channel")
        await socket.send_bytes(b"")
        while len(seen.get(0, b"")) < 7 or len(seen.get(3, b"")) < 3:
            message = await socket.receive_bytes()
            seen[message[0]] = seen.get(message[0], b"") + message[1:]

        assert seen[0] == b"P\x00hello"
        assert seen[1] == b"P\x00"
        assert seen[2] == b"Q\x00"
        assert seen[3] == b"Q\x00error forwarding port 81 to pod p: nobody at 81"


async def test_the_upgrade_is_answered_as_http_wants_it(http: HttpServer) -> None:
    stream, head = await upgraded(http)

    lines = head.decode().split("\r\n")
    assert lines[0].startswith("HTTP/1.1 101 ")
    names = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    assert names["connection"].lower() == "upgrade"
    assert names["upgrade"] == "SPDY/3.1"
    assert names["x-stream-protocol-version"] == "portforward.k8s.io"
    assert "transfer-encoding" not in names
    assert "content-length" not in names
    await stream.close()


@pytest.mark.parametrize(
    ("headers", "path", "code", "text"),
    [
        ({}, PATH.replace("/p/", "/q/"), 404, 'pods "q" not found'),
        ({"X-Stream-Protocol-Version": "v9.portforward.k8s.io"}, PATH, 403, "unable to negotiate protocol"),
        (BOB, PATH, 403, 'cannot create resource "pods/portforward"'),
        (EVE, PATH, 403, 'cannot create resource "pods/portforward"'),
        ({}, PATH.replace("portforward", "exec"), 405, "is simulated"),
        ({}, "/api/v1/namespaces/default/pods", 403, "forbidden"),
    ],
)
async def test_refusals_by_spdy_have_a_reason(
    session: aiohttp.ClientSession, headers: dict[str, str], path: str, code: int, text: str
) -> None:
    async with session.post(path, headers={**spdy_headers(), **headers}) as answer:
        assert (answer.status, (await answer.json())["kind"]) == (code, "Status")
        assert text in (await answer.json())["message"]


@pytest.mark.parametrize(
    ("who", "query", "protocols", "code"),
    [
        (EVE, "", (TUNNEL,), 403),
        (BOB, "", (TUNNEL,), 403),  # a WebSocket begins with a GET, and is no reading
        (ADA, "", ("v9.channel.k8s.io",), 400),
        (ADA, "", ("v4.channel.k8s.io",), 400),
        (ADA, "?ports=0", ("v4.channel.k8s.io",), 400),
        (ADA, "?ports=99999999999999999999", ("v4.channel.k8s.io",), 400),
        (ADA, "?ports=" + ",".join(["80"] * 65), ("v4.channel.k8s.io",), 400),
    ],
)
async def test_refusals_of_websockets(session: aiohttp.ClientSession, who: dict[str, str], query: str, protocols: Any, code: int) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect(PATH + query, protocols=protocols, headers=who)
    assert refused.value.status == code


async def test_without_a_handler_nothing_is_forwarded(http: HttpServer, session: aiohttp.ClientSession) -> None:
    http.server.forward_handler = None
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect(PATH, protocols=(TUNNEL,), headers=ADA)
    assert refused.value.status == 404


async def test_streams_that_make_no_pair_are_reset_and_the_others_live_on(http: HttpServer) -> None:
    stream, _ = await upgraded(http)
    session = Session(stream, is_server=False)
    running = asyncio.ensure_future(session.run())

    for headers in ({"streamtype": "data"}, {"port": "80"}, {"streamtype": "other", "port": "80"}, {"streamtype": "data", "port": "70000"}):
        wrong = await session.open(headers)
        with pytest.raises(ConnectionResetError):
            await wrong.receive()
    first = await session.open({"streamtype": "error", "port": "80", "requestid": "7"})
    await session.open({"streamtype": "error", "port": "80", "requestid": "7"})
    assert b"error stream already assigned" in (await first.receive() or b"")
    # without request ids, as the oldest clients do it
    errors = await session.open({"streamtype": "error", "port": "80"}, last=True)
    data = await session.open({"streamtype": "data", "port": "80"})
    await data.send(b"hello")
    assert await data.receive() == b"hello"
    await data.finish()
    assert await errors.receive() is None

    await session.close()
    await running


async def test_a_peer_with_another_protocol_after_the_upgrade_is_disconnected(http: HttpServer) -> None:
    stream, _ = await upgraded(http)
    await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await stream.receive() is None
    await stream.close()


async def test_a_peer_that_does_not_read_is_not_read_from(http: HttpServer) -> None:
    """What it sends waits in its own socket, not in our memory."""
    stream, _ = await upgraded(http)
    session = Session(stream, is_server=False)  # it never runs: nothing is read
    await session.open({"streamtype": "error", "port": "80", "requestid": "1"}, last=True)
    data = await session.open({"streamtype": "data", "port": "80", "requestid": "1"})
    for _ in range(1024):  # 64 MiB
        try:
            async with asyncio.timeout(1):
                await data.send(b"x" * 65536)
        except TimeoutError:
            break
    else:
        pytest.fail("everything was read, and kept")
    stream._writer.transport.abort()


async def test_an_early_end_is_not_an_error_of_the_tunnel(http: HttpServer) -> None:
    """kubectl gives the whole tunnel up when it is told of one."""

    class Gone:
        async def send(self, _: bytes) -> None:
            raise ConnectionResetError("the stream is closed")

        async def receive(self) -> bytes | None:
            await asyncio.Event().wait()
            return None

        async def close(self) -> None: ...

    async def gone(namespace: str, pod: str, port: int) -> Duplex:
        return Gone()

    http.server.forward_handler = gone
    stream, _ = await upgraded(http)
    session = Session(stream, is_server=False)
    running = asyncio.ensure_future(session.run())
    errors = await session.open({"streamtype": "error", "port": "80", "requestid": "1"}, last=True)
    data = await session.open({"streamtype": "data", "port": "80", "requestid": "1"})
    await data.send(b"hello")
    assert await errors.receive() is None
    await session.close()
    await running
