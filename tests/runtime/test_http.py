"""The HTTPS transport against real sockets: our API server, and a server that shows what reached it."""

import asyncio
import ssl
import stat
import sys
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import web
from yarl import URL

from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wire import Request
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.kubeadm.certificates import new_admin_client, new_ca, sign
from clusterwright.runtime import portforward
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.credentials import NoCredentials
from clusterwright.runtime.errors import ApiError, ConnectionFailed, NotFound, Unauthorized
from clusterwright.runtime.fence import Fence, Fenced, NotLeading
from clusterwright.runtime.http import HttpTransport, proxy_of
from clusterwright.runtime.informer import Informer
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.kubeconfig import Connection, ExecPlugin
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.watcher import Watcher
from support.echo import a_pod, echo
from support.patience import PATIENCE


class Certificates:
    """A CA, a server certificate for `api.test`, a client certificate of `admin`; as PEM."""

    def __init__(self, directory):
        async def keys():
            source = FixedKeySource("http")
            return [await source.new_key("ECDSA-P256") for _ in range(3)]

        now, day = datetime.now(UTC), timedelta(days=1)
        ca_key, server_key, client_key = asyncio.run(keys())
        self.ca = new_ca(ca_key, now=now, serial=1)
        self.server = sign(
            self.ca,
            server_key,
            not_before=now - day,
            not_after=now + day,
            serial=2,
            common_name="api",
            hosts=("api.test", "127.0.0.1"),
            server=True,
        )
        self.client = new_admin_client(self.ca, client_key, now=now, serial=3)
        (directory / "server.pem").write_bytes(self.server.certificate + self.server.key)
        (directory / "ca.pem").write_bytes(self.ca.certificate)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=directory / "ca.pem")
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.context.load_cert_chain(directory / "server.pem")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Mirror:
    """Answers with what it saw; `refuse` is a set of authorization headers that get 401."""

    def __init__(self):
        self.refuse = set()
        self.seen = []

    async def __call__(self, request):
        authorization = request.headers.get("Authorization", "")
        certificate = request.transport.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        groups = request.headers.getall("Impersonate-Group", [])
        self.seen.append(authorization)
        if authorization in self.refuse:
            return web.Response(status=401)
        body = {
            "auth": authorization,
            "names": names,
            "path": request.raw_path,
            "groups": groups,
            "user": request.headers.get("Impersonate-User"),
        }
        return web.Response(body=msgspec.json.encode(body), headers=[("Warning", '299 - "be \\"careful\\""'), ("Warning", '299 - "two"')])


@pytest.fixture
async def mirror(certificates):
    seen: Any = Mirror()
    runner = web.ServerRunner(web.Server(seen))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.context).start()
    seen.port = runner.addresses[0][1]
    yield seen
    await runner.cleanup()


async def ask(connection, *, clock=None, times=1, environ=None, **request):
    transport = HttpTransport(connection, clock or SystemClock(), environ)
    try:
        for _ in range(times):
            response = await transport.send(Request(method="GET", path="/x", **request))
        return response, msgspec.json.decode(response.body) if response.body else {}
    finally:
        await transport.close()


def to(mirror, certificates, **fields):
    return Connection(**{"server": f"https://127.0.0.1:{mirror.port}", "certificate_authority": certificates.ca.certificate, **fields})


async def test_client_certificates_and_nothing_of_them_left_on_disk(mirror, certificates, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    connection = to(mirror, certificates, client_certificate=certificates.client.certificate, client_key=certificates.client.key)

    _, body = await ask(connection)

    assert body["names"] == ["kubernetes-admin"]
    assert list(tmp_path.iterdir()) == []


async def test_tokens_paths_queries_and_warnings(mirror, certificates):
    response, body = await ask(to(mirror, certificates, token="t0"), query=(("labelSelector", "a in (b,c)"), ("x", "ä&=")))

    assert body["auth"] == "Bearer t0"
    assert body["path"] == "/x?labelSelector=a%20in%20%28b%2Cc%29&x=%C3%A4%26%3D"
    assert response.warnings == ('be "careful"', "two")


async def test_basic_authentication_and_impersonation(mirror, certificates):
    _, body = await ask(to(mirror, certificates, username="u", password="p", impersonate_user="ada", impersonate_groups=("g1", "g2")))

    assert (body["auth"], body["user"], body["groups"]) == ("Basic dTpw", "ada", ["g1", "g2"])


async def test_the_servers_name_is_checked_and_can_be_given(mirror, certificates):
    by_name = to(mirror, certificates, server=f"https://localhost:{mirror.port}")
    with pytest.raises(ConnectionFailed):
        await ask(by_name)

    response, _ = await ask(to(mirror, certificates, server=f"https://localhost:{mirror.port}", tls_server_name="api.test"))
    assert response.status == 200


async def test_an_unknown_authority_is_refused_unless_told_otherwise(mirror, certificates):
    with pytest.raises(ConnectionFailed):
        await ask(to(mirror, certificates, certificate_authority=b""))

    response, _ = await ask(to(mirror, certificates, certificate_authority=b"", insecure_skip_tls_verify=True))
    assert response.status == 200


async def test_an_authority_need_not_be_self_signed(mirror, certificates):
    response, _ = await ask(to(mirror, certificates, certificate_authority=certificates.server.certificate))
    assert response.status == 200


async def test_bad_certificates_are_reported_without_quotes(mirror, certificates):
    with pytest.raises(ConnectionFailed) as caught:
        await ask(to(mirror, certificates, client_certificate=b"hunter2", client_key=b"hunter2"))
    assert "hunter2" not in str(caught.value)


async def test_token_files_are_read_again_after_a_minute_and_after_a_401(mirror, certificates, tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    clock = Ticking()
    transport = HttpTransport(to(mirror, certificates, token_file=str(file)), clock)

    async def auth():
        return msgspec.json.decode((await transport.send(Request(method="GET", path="/x"))).body)["auth"]

    assert await auth() == "Bearer one"
    file.write_text("two")
    assert await auth() == "Bearer one"
    clock.seconds += 61
    assert await auth() == "Bearer two"
    file.write_text("three")
    mirror.refuse.add("Bearer two")
    assert await auth() == "Bearer three"
    file.unlink()
    clock.seconds += 61
    assert await auth() == "Bearer three"
    await transport.close()


async def test_a_token_that_stays_bad_is_sent_twice_and_no_more(mirror, certificates, tmp_path):
    (tmp_path / "token").write_text("bad")
    mirror.refuse.add("Bearer bad")

    response, _ = await ask(to(mirror, certificates, token_file=str(tmp_path / "token")))

    assert response.status == 401
    assert len(mirror.seen) == 2


class Ticking(SystemClock):
    seconds = 0.0

    def now(self):
        return datetime.now(UTC) + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds


PLUGIN = """#!{python}
import json, os, pathlib, sys
runs = pathlib.Path(sys.argv[1])
n = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (n + 1))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["kind"] == "ExecCredential" and info["spec"]["interactive"] is False, info
status = {{"token": f"{{os.environ['PREFIX']}}-{{n}}-{{info['spec'].get('cluster', {{}}).get('config')}}"}}
if len(sys.argv) > 2:
    status["expirationTimestamp"] = sys.argv[2]
print(json.dumps({{"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}}))
"""


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "plugin"
    path.write_text(PLUGIN.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def make(*args, **fields):
        return ExecPlugin(
            command="./plugin", directory=str(tmp_path), args=(str(tmp_path / "runs"), *args), env=(("PREFIX", "p"),), **fields
        )

    return make


async def test_exec_plugins_run_once_until_refused(mirror, certificates, plugin):
    transport = HttpTransport(to(mirror, certificates, exec=plugin()), SystemClock())
    answers = await asyncio.gather(*(transport.send(Request(method="GET", path="/x")) for _ in range(5)))
    assert {msgspec.json.decode(a.body)["auth"] for a in answers} == {"Bearer p-0-None"}

    mirror.refuse.add("Bearer p-0-None")
    answers = await asyncio.gather(*(transport.send(Request(method="GET", path="/x")) for _ in range(5)))
    assert {msgspec.json.decode(a.body)["auth"] for a in answers} == {"Bearer p-1-None"}
    await transport.close()


async def test_exec_plugins_run_again_when_their_credentials_expire(mirror, certificates, plugin):
    clock = Ticking()
    expires = (clock.now() + timedelta(seconds=600)).strftime("%Y-%m-%dT%H:%M:%SZ")
    transport = HttpTransport(to(mirror, certificates, exec=plugin(expires)), clock)
    first = await transport.send(Request(method="GET", path="/x"))
    clock.seconds = 300
    second = await transport.send(Request(method="GET", path="/x"))
    clock.seconds = 595
    third = await transport.send(Request(method="GET", path="/x"))

    assert [msgspec.json.decode(r.body)["auth"] for r in (first, second, third)] == [
        "Bearer p-0-None",
        "Bearer p-0-None",
        "Bearer p-1-None",
    ]
    await transport.close()


async def test_exec_plugins_are_told_about_the_cluster_if_they_ask(mirror, certificates, plugin):
    _, body = await ask(to(mirror, certificates, exec=plugin(provide_cluster_info=True, extension="conf")))

    assert body["auth"] == "Bearer p-0-conf"


async def test_exec_plugins_can_give_certificates(mirror, certificates, tmp_path):
    status = {"clientCertificateData": certificates.client.certificate.decode(), "clientKeyData": certificates.client.key.decode()}
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    (tmp_path / "answer").write_bytes(msgspec.json.encode(answer))
    exec = ExecPlugin(command="cat", args=(str(tmp_path / "answer"),))

    _, body = await ask(to(mirror, certificates, exec=exec), environ={"PATH": "/bin:/usr/bin"})

    assert body["names"] == ["kubernetes-admin"]


@pytest.mark.parametrize(
    ("command", "args", "complaint"),
    [
        ("/nowhere/plugin", (), "install it"),
        ("/bin/sh", ("-c", "echo why >&2; exit 3"), "exit code 3: why"),
        ("/bin/sh", ("-c", "echo hunter2"), "did not print an ExecCredential"),
        ("/bin/sh", ("-c", 'echo \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}\''), "neither"),
    ],
)
async def test_failing_exec_plugins_are_reported_without_their_output(mirror, certificates, command, args, complaint):
    with pytest.raises(NoCredentials, match=complaint) as caught:
        await ask(to(mirror, certificates, exec=ExecPlugin(command=command, args=args, install_hint="install it")))
    assert "hunter2" not in str(caught.value)
    assert mirror.seen == []


async def test_requests_go_through_a_proxy(mirror, certificates):
    asked: list[Any] = []
    served: list[Any] = []

    async def proxy(reader, writer):
        served.append(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        there, back = await asyncio.open_connection("127.0.0.1", mirror.port)

        async def pump(source, sink):
            try:
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
            except OSError:
                pass
            finally:
                sink.close()

        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    response, _ = await ask(to(mirror, certificates, server="https://api.test:6443", proxy_url=f"http://127.0.0.1:{port}"))
    await asyncio.gather(*served, return_exceptions=True)
    server.close()

    assert response.status == 200
    assert asked == [b"CONNECT api.test:6443 HTTP/1.1"]
    with pytest.raises(ValueError, match="proxies"):
        HttpTransport(to(mirror, certificates, proxy_url="socks5://h:1"), SystemClock())


@pytest.mark.parametrize(
    ("server", "no_proxy", "expected"),
    [
        ("https://api.example.com:6443", "", "http://p:3128"),
        ("http://api.example.com:6443", "", ""),
        ("https://localhost:6443", "", ""),
        ("https://127.0.0.1:6443", "", ""),
        ("https://[::1]:6443", "", ""),
        ("https://api.example.com:6443", "*", ""),
        ("https://api.example.com:6443", "other.com, example.com", ""),
        ("https://example.com:6443", "example.com", ""),
        ("https://example.com:6443", ".example.com", "http://p:3128"),
        ("https://api.example.com:6443", ".example.com", ""),
        ("https://notexample.com:6443", "example.com", "http://p:3128"),
        ("https://api.example.com:6443", "example.com:443", "http://p:3128"),
        ("https://api.example.com:6443", "example.com:6443", ""),
        ("https://10.1.2.3:6443", "10.0.0.0/8", ""),
        ("https://11.1.2.3:6443", "10.0.0.0/8,example.com", "http://p:3128"),
        ("https://10.1.2.3:6443", "10.1.2.3", ""),
    ],
)
def test_the_environments_proxy_and_its_exceptions(server, no_proxy, expected):
    assert proxy_of(server, {"HTTPS_PROXY": "p:3128", "NO_PROXY": no_proxy}) == expected


async def test_nobody_listening_is_a_failed_connection():
    with pytest.raises(ConnectionFailed):
        await ask(Connection(server="https://127.0.0.1:1"))


@asynccontextmanager
async def raw_server(answer):
    """A transport to a server that says exactly `answer` to whoever asks anything, and hangs up."""
    served: list[Any] = []

    async def serve(reader, writer):
        served.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        for part in answer:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    transport = HttpTransport(Connection(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), SystemClock())
    yield transport
    await transport.close()
    await asyncio.gather(*served, return_exceptions=True)
    server.close()
    await server.wait_closed()


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


async def read_lines(lines):
    found = []
    try:
        async for line in lines:
            found.append(line)  # noqa: PERF401  # what came before a failure counts
    except ConnectionFailed as error:
        found.append(error)
    return found


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([chunk(b"one\ntw"), chunk(b"o\n"), b"0\r\n\r\n"], [b"one", b"two"]),
        ([chunk(b"one\ncut of"), b"0\r\n\r\n"], [b"one", b"cut of"]),
        ([chunk(b"one\n"), b"ff\r\nbroken"], [b"one", ConnectionFailed]),
    ],
)
async def test_lines_are_joined_and_a_broken_stream_is_reported(parts, expected):
    async with raw_server([HEAD, *parts]) as transport:
        response, lines = await transport.stream(Request(method="GET", path="/x"))
        found = await read_lines(lines)

    assert response.status == 200
    assert [type(item) if isinstance(item, Exception) else item for item in found] == expected


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", b"nonsense\r\n\r\n", b""])
async def test_half_an_answer_is_a_failed_connection(answer):
    async with raw_server([answer]) as transport:
        with pytest.raises(ConnectionFailed):
            await transport.send(Request(method="POST", path="/x", body=b"{}"))


async def test_a_watch_that_is_refused_has_its_reason(mirror, certificates, tmp_path):
    (tmp_path / "token").write_text("bad")
    mirror.refuse.add("Bearer bad")
    transport = HttpTransport(to(mirror, certificates, token_file=str(tmp_path / "token")), SystemClock())

    response, lines = await transport.stream(Request(method="GET", path="/x"))

    assert response.status == 401
    assert [line async for line in lines] == []
    assert len(mirror.seen) == 2
    await transport.close()


async def test_a_renewed_client_certificate_is_used_for_new_requests(mirror, certificates, tmp_path):
    def answer(pair):
        status = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
        status["expirationTimestamp"] = "2020-01-01T00:00:00Z"  # always expired: asked again each time
        return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status})

    now, day = datetime.now(UTC), timedelta(days=1)
    source = FixedKeySource("renewed")
    transport = HttpTransport(to(mirror, certificates, exec=ExecPlugin(command="/bin/cat", args=(str(tmp_path / "a"),))), SystemClock())
    for name in ("first", "second", "third"):
        key = await source.new_key("ECDSA-P256")
        pair = sign(certificates.ca, key, not_before=now - day, not_after=now + day, serial=9, common_name=name, client=True)
        (tmp_path / "a").write_bytes(answer(pair))
        response = await transport.send(Request(method="GET", path="/x"))
        assert msgspec.json.decode(response.body)["names"] == [name]
    await transport.close()


# Our own API server over HTTPS.


@pytest.fixture
async def client(certificates):
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), forward=echo)
    server.ensure_namespaces()
    server.ensure([a_pod()])
    http = HttpServer(server, Authenticator({"good": User("ada", groups=("system:masters",))}))
    port = await http.start("127.0.0.1", 0, certificates.context)
    connection = Connection(server=f"https://127.0.0.1:{port}", certificate_authority=certificates.ca.certificate, token="good")
    client: Any = RestClient(HttpTransport(connection, SystemClock()))
    client.http, client.port = http, port
    yield client
    await client.close()
    await http.stop()


def a_config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}, "data": data}


async def test_objects_over_https(client):
    await client.create(a_config_map("c", a="1"))
    key = ObjectKey("default", "c")
    await client.patch(ConfigMap, key, {"data": {"b": "2"}})

    assert dict((await client.get(ConfigMap, key)).data) == {"a": "1", "b": "2"}
    await client.delete(ConfigMap, key)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, key)


async def test_a_wrong_token_is_unauthorized(client, certificates):
    connection = Connection(server=f"https://127.0.0.1:{client.port}", certificate_authority=certificates.ca.certificate, token="bad")
    other = RestClient(HttpTransport(connection, SystemClock()))
    with pytest.raises(Unauthorized):
        await other.get(ConfigMap, ObjectKey("default", "x"))
    await other.close()


async def test_an_informer_over_https_survives_its_server_being_restarted(client, certificates):
    for n in range(5):
        await client.create(a_config_map(f"c{n}", text="x" * 200_000))
    informer = Informer(gvk_of(ConfigMap))
    changed = asyncio.Event()
    informer.subscribe(lambda old, new, initial: changed.set())
    watcher = asyncio.ensure_future(Watcher(client, await client.resources.of(ConfigMap), informer, random=Random(1)).run())
    synced = asyncio.Event()
    informer.when_synced(synced.set)

    async def seen(condition):
        async with asyncio.timeout(PATIENCE):
            while not condition():
                changed.clear()
                await changed.wait()

    async with asyncio.timeout(PATIENCE):
        await synced.wait()
    assert len(informer) == 5
    await client.patch(ConfigMap, ObjectKey("default", "c0"), {"data": {"text": "y" * 300_000}})
    await seen(lambda: b"yyy" in informer.find(ObjectKey("default", "c0")).raw)

    await client.http.stop()
    await client.http.start("127.0.0.1", client.port, certificates.context)
    await client.delete(ConfigMap, ObjectKey("default", "c1"))
    await seen(lambda: informer.find(ObjectKey("default", "c1")) is None)
    watcher.cancel()
    await asyncio.wait([watcher])


FORWARD = Request(method="POST", path="/api/v1/namespaces/default/pods/p/portforward")


async def said(duplex, text):
    """What comes back for a text, from a port that sends everything back."""
    await duplex.send(text)
    answer = b""
    while len(answer) < len(text):
        answer += await duplex.receive() or b"-" * len(text)
    return answer


@pytest.mark.parametrize("way", ["websocket", "spdy"])
async def test_a_port_of_a_pod_is_a_stream_in_both_directions(client, way, monkeypatch):
    if way == "spdy":
        monkeypatch.setattr(portforward, "TUNNEL", "unheard.of")
    duplex = await client.transport.forward(FORWARD, 2379)

    assert await said(duplex, b"hello") == b"hello"
    large = bytes(range(256)) * 4096
    assert await said(duplex, large) == large
    await duplex.close()
    await duplex.close()
    with pytest.raises(OSError, match="closed"):
        await duplex.send(b"too late")
    assert [t for t in asyncio.all_tasks() if "ForwardedPort" in repr(t)] == []


@pytest.mark.parametrize("way", ["websocket", "spdy"])
async def test_a_port_at_which_nothing_listens_is_refused_with_the_reason(client, way, monkeypatch):
    if way == "spdy":
        monkeypatch.setattr(portforward, "TUNNEL", "unheard.of")
    duplex = await client.transport.forward(FORWARD, 81)

    with pytest.raises(ConnectionRefusedError, match="error forwarding port 81 to pod p: nobody at 81"):
        await duplex.receive()
    await duplex.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not an HTTP/1.1 response"),
        (b"", "not an HTTP/1.1 response"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\n", "upgrades to 'tcp'"),
        (b'HTTP/1.1 403 Forbidden\r\nContent-Length: 37\r\n\r\n{"kind":"Status","message":"not you"}', "not you"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 999999999\r\n\r\nabc", "abc"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000, "not an HTTP/1.1 response"),
    ],
    ids=["other", "nothing", "other upgrade", "refusal", "cut off", "endless"],
)
async def test_servers_that_do_not_upgrade_are_refused_in_words(answer, why):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        served.set()

    served = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x")
    with pytest.raises(ApiError, match=why):
        await portforward.upgrade(url, [], None, "")
    await served.wait()
    server.close()
    with pytest.raises(ApiError, match="more than one line"):
        await portforward.upgrade(url, [("Authorization", "Bearer x\r\nImpersonate-User: admin")], None, "")


async def test_a_reason_without_end_is_cut(client):
    async def complain(namespace, pod, port):
        raise ConnectionRefusedError("no" * 100_000)

    client.http.server.forward_handler = complain
    duplex = await client.transport.forward(FORWARD, 80)
    with pytest.raises(ConnectionRefusedError) as refused:
        await duplex.receive()
    assert len(str(refused.value)) < 5000
    await duplex.close()


async def test_a_connection_that_ends_ends_the_port(client):
    duplex = await client.transport.forward(FORWARD, 2379)
    assert await said(duplex, b"hello") == b"hello"

    await client.http.stop()

    with pytest.raises(ConnectionResetError):
        await duplex.receive()
    await duplex.close()


async def test_a_forward_that_is_refused_is_the_error_that_it_means(client):
    with pytest.raises(NotFound, match='pods "q" not found'):
        await client.transport.forward(Request(method="POST", path="/api/v1/namespaces/default/pods/q/portforward"), 80)
    client.http.server.forward_handler = None
    with pytest.raises(ApiError) as caught:
        await client.transport.forward(FORWARD, 80)
    assert caught.value.code == 404


class _Closing(Fence):
    """Open when it is asked first, closed from then on: as when the process stood still between the question and the sending."""

    def __init__(self, asks: int) -> None:
        super().__init__(SystemClock())
        self.asks = asks

    @property
    def is_open(self) -> bool:
        self.asks -= 1
        return self.asks >= 0


@pytest.mark.parametrize(("asks", "arrives"), [(2, True), (1, False), (0, False)])
async def test_a_write_leaves_only_while_the_fence_is_open(asks, arrives):
    received = bytearray()
    served = []

    async def serve(reader, writer):
        served.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            received.extend(await reader.readexactly(len(request.body)))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fence = _Closing(asks)
    inner = HttpTransport(Connection(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), SystemClock(), fence=fence)
    transport = Fenced(inner, fence)
    request = Request(method="PATCH", path="/x", body=b'{"spec":{}}', headers={"content-type": "application/merge-patch+json"})
    try:
        if arrives:
            assert (await transport.send(request)).status == 200
        else:
            with pytest.raises(NotLeading):
                await transport.send(request)
    finally:
        await transport.close()
        await asyncio.wait([task for task in served if task is not None] or [asyncio.ensure_future(asyncio.sleep(0))])
        server.close()
        await server.wait_closed()

    assert bytes(received) == (request.body if arrives else b"")
