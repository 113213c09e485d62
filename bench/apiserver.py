"""Measure the API server, side by side with a real kube-apiserver where KUBEBUILDER_ASSETS names one.

python -m bench.apiserver [--objects 20000] [--seconds 2]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from clusterwright.api.crds import crds
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.http import ssl_context
from clusterwright.runtime.kubeconfig import Kubeconfig

BASE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"
MERGE = "application/merge-patch+json"
Send = Callable[[str, str, Any, str], Awaitable[tuple[int, bytes]]]


def machine(number: int) -> dict[str, Any]:
    """A Machine of about 4 kB as a controller would write it."""
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": f"m-{number}",
            "labels": {"cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/deployment-name": f"md-{number % 100}"},
            "annotations": {"example.com/notes": "x" * 400},
            "finalizers": ["machine.cluster.x-k8s.io"],
        },
        "spec": {
            "clusterName": "c1",
            "version": "v1.33.0",
            "failureDomain": "a",
            "providerID": f"dev:////m-{number}",
            "bootstrap": {"dataSecretName": f"m-{number}"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": f"m-{number}"},
        },
    }


def status(number: int, turn: int) -> dict[str, Any]:
    types = ("Ready", "Available", "UpToDate", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "NodeReady", "Deleting")
    conditions = [
        {
            "type": t,
            "status": "True" if (number + turn) % 7 else "False",
            "reason": f"Because{t}",
            "message": f"turn {turn}",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for t in types
    ]
    addresses = [{"type": "InternalIP", "address": f"10.0.{number % 250}.{turn % 250}"}, {"type": "Hostname", "address": f"m-{number}"}]
    return {"status": {"phase": "Running", "observedGeneration": 1, "conditions": conditions, "addresses": addresses}}


def rss() -> float:
    """Resident memory, MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def rate(act: Callable[[int], Awaitable[None]], seconds: float, concurrency: int = 1) -> float:
    """Actions per second: of CPU time when they run one after the other in this process, else of wall time."""
    deadline = time.perf_counter() + seconds
    done = 0

    async def worker(offset: int) -> None:
        nonlocal done
        number = offset
        while time.perf_counter() < deadline:
            await act(number)
            number += concurrency
            done += 1

    clock = time.process_time if concurrency == 1 else time.perf_counter  # alone on a core, or with others to wait for
    begin = clock()
    await asyncio.gather(*(worker(i) for i in range(concurrency)))
    return done / (clock() - begin)


async def measure(send: Send, seconds: float, concurrency: int, prefix: int) -> dict[str, float]:
    """Creates, status patches and gets per second through any transport."""
    made: list[int] = []

    async def create(number: int) -> None:
        code, body = await send("POST", BASE, machine(prefix + number), "application/json")
        assert code == 201, body[:300]
        made.append(number)

    async def patch(number: int) -> None:
        target = made[number % len(made)]
        code, body = await send("PATCH", f"{BASE}/m-{prefix + target}/status", status(target, number), MERGE)
        assert code == 200, body[:300]

    async def get(number: int) -> None:
        code, _ = await send("GET", f"{BASE}/m-{prefix + made[number % len(made)]}", None, "")
        assert code == 200

    creates = await rate(create, seconds, concurrency)
    patches = await rate(patch, seconds, concurrency)
    gets = await rate(get, seconds, concurrency)
    return {"creates/s": creates, "status patches/s": patches, "gets/s": gets}


def in_process(server: ApiServer) -> Send:
    transport = InProcessTransport(server)

    async def send(method: str, path: str, body: Any, content_type: str) -> tuple[int, bytes]:
        headers = {"content-type": content_type, "user-agent": "bench/1"} if body is not None else {"user-agent": "bench/1"}
        raw = json.dumps(body, separators=(",", ":")).encode() if body is not None else b""
        response = await transport.send(Request(method=method, path=path, headers=headers, body=raw))
        return response.status, response.body

    return send


def over_http(session: aiohttp.ClientSession, url: str, token: str = "") -> Send:
    async def send(method: str, path: str, body: Any, content_type: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = content_type
        data = json.dumps(body, separators=(",", ":")).encode() if body is not None else None
        async with session.request(method, url + path, data=data, headers=headers) as response:
            return response.status, await response.read()

    return send


def new_server() -> ApiServer:
    server = ApiServer(now=lambda: datetime.now(UTC), random=random.Random(1))
    server.ensure(crds())
    return server


async def fan_out(session: aiohttp.ClientSession, url: str, send: Send, watchers: int, token: str = "", sentinel: str = "m-fan") -> float:
    """Milliseconds until one change has reached all watchers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    ready, seen = 0, 0
    everyone = asyncio.Event()

    async def watch() -> None:
        nonlocal ready, seen
        async with session.get(url + BASE + "?watch=true&resourceVersion=0&labelSelector=fan=out", headers=headers) as response:
            ready += 1
            async for line in response.content:
                if sentinel.encode() in line:
                    seen += 1
                    if seen == watchers:
                        everyone.set()
                    return

    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    while ready < watchers:  # noqa: ASYNC110 - a thousand tasks report by counting
        await asyncio.sleep(0.05)
    obj = machine(0)
    obj["metadata"]["name"], obj["metadata"]["labels"] = sentinel, {"fan": "out"}
    begin = time.perf_counter()
    code, body = await send("POST", BASE, obj, "application/json")
    assert code == 201, body[:300]
    await everyone.wait()
    took = (time.perf_counter() - begin) * 1000
    await asyncio.gather(*tasks)
    return took


async def beside_a_list(session: aiohttp.ClientSession, url: str, send: Send, objects: int, token: str = "") -> dict[str, float]:
    """The longest GET of one client, in ms, while another lists so many objects, three times; and how long the list takes."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    path = "/api/v1/namespaces/default/configmaps"
    numbers = iter(range(objects))

    async def create() -> None:
        for number in numbers:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"listed-{number}"}, "data": {"text": "x" * 1000}}
            code, answer = await send("POST", path, body, "application/json")
            assert code == 201, answer[:300]

    await asyncio.gather(*(create() for _ in range(16)))
    waits: list[float] = []
    done = asyncio.Event()

    async def get() -> None:
        while not done.is_set():
            begun = time.perf_counter()
            code, _ = await send("GET", f"{path}/listed-0", None, "")
            assert code == 200
            waits.append((time.perf_counter() - begun) * 1000)

    getting = asyncio.create_task(get())
    begun = time.perf_counter()
    for _ in range(3):
        async with session.get(url + path, headers=headers) as response:
            async for _chunk in response.content.iter_any():
                pass
    took = (time.perf_counter() - begun) * 1000 / 3
    done.set()
    await getting
    return {f"ms to list {objects}": took, "ms of the longest GET meanwhile": max(waits)}


async def workload_servers(count: int) -> dict[str, float]:
    """Many servers in one process, as simulated workload clusters have them: MB of each, and gets per second over all."""
    gc.collect()
    before = rss()
    servers = [
        HttpServer(ApiServer(now=lambda: datetime.now(UTC), random=random.Random(n), history=64), advertise=False) for n in range(count)
    ]
    urls = [f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}" for server in servers]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def get(number: int) -> None:
            async with session.get(f"{urls[number % count]}/api/v1/namespaces") as response:
                assert response.status == 200
                await response.read()

        gets = await rate(get, 2.0, 16)
    used = rss() - before
    for server in servers:
        await server.stop()
    return {f"MB of {count} servers": used, f"gets/s over {count} servers": gets}


async def memory(objects: int) -> float:
    """MB that many Machines with status take."""
    gc.collect()
    before = rss()
    server = new_server()
    send = in_process(server)
    for number in range(objects):
        await send("POST", BASE, machine(number), "application/json")
        await send("PATCH", f"{BASE}/m-{number}/status", status(number, 1), MERGE)
    gc.collect()
    return rss() - before


@asynccontextmanager
async def kube_apiserver() -> AsyncIterator[tuple[str, str, str] | None]:
    """A real one with our CRDs: URL, token, CA file; None when there is none."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not assets or not (Path(assets) / "kube-apiserver").exists() or not shutil.which("openssl"):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        ports = []
        for _ in range(3):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                ports.append(probe.getsockname()[1])
        etcd_url, peer = f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}"
        subprocess.run(["openssl", "genrsa", "-out", f"{folder}/sa.key", "2048"], check=True, capture_output=True)  # noqa: ASYNC221
        Path(folder, "tokens.csv").write_text("bench-token,admin,admin,system:masters\n")
        etcd = subprocess.Popen(  # noqa: ASYNC220
            [f"{assets}/etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={etcd_url}", f"--advertise-client-urls={etcd_url}",
             f"--listen-peer-urls={peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        server = subprocess.Popen(  # noqa: ASYNC220
            [f"{assets}/kube-apiserver", f"--etcd-servers={etcd_url}", f"--cert-dir={folder}/certs", "--bind-address=127.0.0.1",
             f"--secure-port={ports[2]}", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
             f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key",
             "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield f"https://127.0.0.1:{ports[2]}", "bench-token", f"{folder}/certs/apiserver.crt"
        finally:
            for process in (server, etcd):  # a graceful end waits for minutes, and there is nothing to save
                process.kill()
                process.wait()


@asynccontextmanager
async def own_apiserver() -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """Ours as `clusterwright up --no-controllers` runs it: a process of its own, TLS and RBAC on, nothing kept, as with the real one."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "kubeconfig")
        command = [sys.executable, "-m", "clusterwright.cli.main", "up", "--no-controllers", "--in-memory", "--kubeconfig", str(config)]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
        try:
            assert server.stdout is not None
            server.stdout.readline()  # the line that says it is ready
            connection = Kubeconfig.load([config]).resolve()
            yield connection.server, ssl_context(connection, (connection.client_certificate, connection.client_key))
        finally:
            server.terminate()
            server.wait()


async def _wait_ready(session: aiohttp.ClientSession, url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    for _ in range(600):
        try:
            async with session.get(url + "/readyz", headers=headers) as response:
                if response.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the kube-apiserver did not become ready")


async def main() -> None:
    from bench import budgets  # which is made of this module's parts

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=200)
    arguments = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    many = await workload_servers(arguments.servers)  # first: they would be given the memory that others have left
    size = await memory(arguments.objects)
    results["in process"] = await measure(in_process(new_server()), arguments.seconds, 1, 0)
    results["in process"][f"MB of {arguments.objects} Machines"] = size
    results["in process"] |= many
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:
        http = HttpServer(new_server())
        url = f"http://127.0.0.1:{await http.start('127.0.0.1', 0)}"
        results["HTTP, one process"] = await measure(over_http(session, url), arguments.seconds, 16, 0)
        send = over_http(session, url)
        results["HTTP, one process"][f"ms to {arguments.watchers} watchers"] = await fan_out(session, url, send, arguments.watchers)
        await http.stop()
        results["HTTP, one process"] |= await budgets.measure(10)
        async with own_apiserver() as (url, context), aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=context)) as apart:
            send = over_http(apart, url)
            results["HTTPS, apart"] = await measure(send, arguments.seconds, 16, 0)
            took = await fan_out(apart, url, send, arguments.watchers)
            results["HTTPS, apart"][f"ms to {arguments.watchers} watchers"] = took
            results["HTTPS, apart"] |= await beside_a_list(apart, url, send, arguments.objects)
        async with kube_apiserver() as real:
            if real is None:
                print("no kube-apiserver: set KUBEBUILDER_ASSETS to compare with one")
            else:
                url, token, _ = real
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                plain = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=context))
                async with plain:
                    await _wait_ready(plain, url, token)
                    send = over_http(plain, url, token)
                    for crd in crds():
                        await send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, "application/json")
                    await asyncio.sleep(3)
                    results["kube-apiserver"] = await measure(send, arguments.seconds, 16, 0)
                    took = await fan_out(plain, url, send, arguments.watchers, token)
                    results["kube-apiserver"][f"ms to {arguments.watchers} watchers"] = took
                    results["kube-apiserver"] |= await beside_a_list(plain, url, send, arguments.objects, token)
    rows = list(dict.fromkeys(name for column in results.values() for name in column))
    print(f"{'':32}" + "".join(f"{name:>19}" for name in results))
    for row in rows:
        cells = "".join(f"{results[c][row]:>19,.0f}" if row in results[c] else f"{'-':>19}" for c in results)
        print(f"{row:32}{cells}")


if __name__ == "__main__":
    asyncio.run(main())
