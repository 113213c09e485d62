from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from apiserver.apiserver_testing import Api, Clock, Hook, make_server, widget_crds
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.tls import make_authority


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Any:
    server = make_server(clock)
    server.ensure(widget_crds())
    yield server
    server.close()


@pytest.fixture
def api(server: Any) -> Api:
    return Api.of(server)


@pytest_asyncio.fixture
async def hook() -> Any:
    """A webhook over TLS."""
    async with Hook.serving(make_authority(datetime.now(UTC))) as made:
        yield made


class HttpTransport:
    """Just enough HTTP to run the store tests against any API server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session, self._url, self._token = session, url, token

    def _arguments(self, request: Request) -> dict[str, Any]:
        headers = {**request.headers, "authorization": f"Bearer {self._token}"}
        return {"params": list(request.query), "headers": headers, "data": request.body or None}

    async def send(self, request: Request) -> Response:
        async with self._session.request(request.method, self._url + request.path, **self._arguments(request)) as response:
            return Response(status=response.status, headers=dict(response.headers), body=await response.read())

    async def stream(self, request: Request) -> Any:
        response = await self._session.request(request.method, self._url + request.path, **self._arguments(request))
        head = Response(status=response.status, headers=dict(response.headers))

        async def lines() -> Any:
            try:
                async for line in response.content:
                    yield line
            finally:
                response.close()

        return head, lines()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def kube_apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A real kube-apiserver, by the envtest convention."""
    assets = Path(os.environ.get("KUBEBUILDER_ASSETS", ""))
    if not os.environ.get("KUBEBUILDER_ASSETS") or not (assets / "kube-apiserver").exists() or not (assets / "etcd").exists():
        pytest.skip("not compared with a real kube-apiserver: KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
    if shutil.which("openssl") is None:
        pytest.skip("not compared with a real kube-apiserver: openssl is missing")
    folder = tmp_path_factory.mktemp("kube")
    client, peer, secure = (_free_port() for _ in range(3))
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text("test-token,admin,admin,system:masters\n")
    url = f"http://127.0.0.1:{client}"
    etcd = subprocess.Popen(
        [assets / "etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
         f"--listen-peer-urls=http://127.0.0.1:{peer}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    server = subprocess.Popen(
        [assets / "kube-apiserver", f"--etcd-servers={url}", f"--cert-dir={folder}/certs", "--bind-address=127.0.0.1",
         f"--secure-port={secure}", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
         f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key",
         "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
         "--disable-admission-plugins=ServiceAccount"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", secure)) == 0:
                    break
            time.sleep(0.2)
        yield f"https://127.0.0.1:{secure}", "test-token"
    finally:
        for process in (server, etcd):  # in this order: without its etcd the server would wait for it
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest_asyncio.fixture(params=["ours", "kube-apiserver"])
async def any_api(request: pytest.FixtureRequest) -> Any:
    """The store tests run against our server and, where there is one, a real kube-apiserver."""
    if request.param == "ours":
        server = make_server()
        server.ensure(widget_crds())
        yield Api.of(server)
        server.close()
        return
    url, token = request.getfixturevalue("kube_apiserver")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        api = Api(HttpTransport(session, url, token))  # type: ignore[arg-type]
        await _prepare(api)
        yield api


async def _prepare(api: Api) -> None:
    import asyncio

    from apiserver.apiserver_testing import CRDS, WIDGETS

    for _ in range(300):
        if (await api.get("/readyz")).status == 200 and (await api.get("/api/v1/namespaces/default")).status == 200:
            break
        await asyncio.sleep(0.2)
    for crd in widget_crds():
        await api.post(CRDS, crd)
    for _ in range(100):
        if (await api.get(WIDGETS)).status == 200:
            break
        await asyncio.sleep(0.2)
    await api.delete(WIDGETS)
    await api.delete("/api/v1/namespaces/default/configmaps")
