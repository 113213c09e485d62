"""Measure the runtime: events through informer and queue, reconciles with a status write, and a cache of many Machines
side by side with kubernetes_asyncio and kopf.

    python -m bench.runtime [--objects 20000] [--peers PYTHON]

The clients list over HTTP from one server in a process of its own, with the same pages of 500; each client is measured in a process
of its own. The peers (requirements/bench.txt) keep what they decode, as their users do; kopf runs its list layer only, which is
the cheapest part of it. CPU is user plus system time of the client; memory is what its resident set grew by.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import time
from random import Random
from typing import Any

from clusterwright.api.copying import replace

PATH = "/apis/cluster.x-k8s.io/v1beta2/machines"
PAGE = 500


def machine(n: int) -> dict[str, Any]:
    """A Machine as a live cluster has it: all conditions, managedFields, 4.5 kB."""
    now = "2026-05-01T12:00:00Z"
    types = (
        "Available",
        "Ready",
        "UpToDate",
        "BootstrapConfigReady",
        "InfrastructureReady",
        "NodeHealthy",
        "NodeReady",
        "Paused",
        "Deleting",
    )
    conditions = [
        {
            "type": t,
            "status": "True",
            "reason": t,
            "message": "* something to say" * (n % 2),
            "lastTransitionTime": now,
            "observedGeneration": 2,
        }
        for t in types
    ]
    owned = {f"f:{t}": {".": {}, "f:status": {}, "f:reason": {}, "f:message": {}, "f:lastTransitionTime": {}} for t in types}
    manager = {"manager": "manager", "operation": "Update", "apiVersion": "cluster.x-k8s.io/v1beta2", "time": now, "fieldsType": "FieldsV1"}
    name = f"cluster-{n // 50}-md-0-{n:05}"
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{n:012}",
            "resourceVersion": str(1000 + n),
            "generation": 2,
            "creationTimestamp": now,
            "labels": {
                "cluster.x-k8s.io/cluster-name": f"cluster-{n // 50}",
                "cluster.x-k8s.io/set-name": f"md-{n // 50}",
                "machine": name,
            },
            "annotations": {"cluster.x-k8s.io/cloned-from-name": "template", "note": "x" * 100},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [
                {
                    "apiVersion": "cluster.x-k8s.io/v1beta2",
                    "kind": "MachineSet",
                    "name": f"md-{n // 50}",
                    "uid": f"set-{n // 50}",
                    "controller": True,
                }
            ],
            "managedFields": [{**manager, "fieldsV1": {"f:metadata": {"f:labels": owned}, "f:status": {"f:conditions": owned}}}],
        },
        "spec": {
            "clusterName": f"cluster-{n // 50}",
            "version": "v1.34.1",
            "providerID": f"dev:////{name}",
            "bootstrap": {
                "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name},
                "dataSecretName": name,
            },
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name},
        },
        "status": {
            "observedGeneration": 2,
            "phase": "Running",
            "nodeRef": {"name": name},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "initialization": {"bootstrapDataSecretCreated": True, "infrastructureProvisioned": True},
            "conditions": conditions,
        },
    }


# The server that everybody lists from.


def serve(objects: int) -> None:
    pages: list[bytes] = []
    size = 0
    for start in range(0, objects, PAGE):
        items = [json.dumps(machine(n), separators=(",", ":")).encode() for n in range(start, min(start + PAGE, objects))]
        size += sum(map(len, items))
        token = str(start // PAGE + 1) if start + PAGE < objects else ""
        head = json.dumps({"resourceVersion": "99999", "continue": token}).encode()
        pages.append(
            b'{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineList","metadata":' + head + b',"items":[' + b",".join(items) + b"]}"
        )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split(b" ", 2)[1].decode()
                query = dict(part.partition("=")[::2] for part in target.partition("?")[2].split("&"))
                if query.get("watch"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                    await writer.drain()
                    continue
                body = pages[int(query.get("continue") or 0)]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], size // objects, flush=True)
        await server.serve_forever()

    asyncio.run(main())


# The clients. Each answers how many objects it holds.


async def hold_ours(server: str) -> Any:
    from clusterwright.api.core import Machine
    from clusterwright.runtime.cache import Cache
    from clusterwright.runtime.clock import SystemClock
    from clusterwright.runtime.http import HttpTransport
    from clusterwright.runtime.kubeconfig import Connection
    from clusterwright.runtime.rest import RestClient

    rest = RestClient(HttpTransport(Connection(server=server), SystemClock()))
    cache = Cache(rest, random=Random(1))
    informer = await cache.informer(Machine)
    running = asyncio.ensure_future(cache.run())
    await cache.synced()
    running.cancel()
    await asyncio.wait([running])
    await rest.close()
    return informer


async def hold_kubernetes_asyncio(server: str) -> Any:
    from kubernetes_asyncio import client

    configuration = client.Configuration(host=server)
    held: list[Any] = []
    async with client.ApiClient(configuration) as api:
        custom = client.CustomObjectsApi(api)
        token = ""
        while True:
            page = await custom.list_cluster_custom_object("cluster.x-k8s.io", "v1beta2", "machines", limit=PAGE, _continue=token)
            held += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return held


async def hold_kopf(server: str) -> Any:
    from kopf._cogs.clients import auth, fetching
    from kopf._cogs.configs.configuration import OperatorSettings
    from kopf._cogs.structs import credentials, references

    vault = credentials.Vault({"bench": credentials.ConnectionInfo(server=server)})
    auth.vault_var.set(vault)
    settings = OperatorSettings()
    settings.watching.chunk_size = PAGE
    resource = references.Resource("cluster.x-k8s.io", "v1beta2", "machines", namespaced=True)
    held: list[Any] = []
    async for items, _ in fetching.fetch_objs(settings=settings, resource=resource, namespace=None, logger=logging.getLogger("bench")):
        held += items
    await vault.close()
    return held


CLIENTS = {"clusterwright": hold_ours, "kubernetes_asyncio": hold_kubernetes_asyncio, "kopf": hold_kopf}


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_client(name: str, server: str) -> None:
    async def main() -> None:
        await CLIENTS[name](server.replace(server.rsplit(":", 1)[1], WARM.rsplit(":", 1)[1]) if WARM else server)
        gc.collect()
        before, started = resident(), time.process_time()
        held = await CLIENTS[name](server)
        cpu = time.process_time() - started
        gc.collect()
        print(json.dumps({"cpu": cpu, "mb": (resident() - before) / 1e6, "objects": len(held)}))

    asyncio.run(main())


WARM = os.environ.get("BENCH_WARM", "")
"""A server with few objects, listed once before measuring: imports and first connections are nobody's running cost."""


class Server:
    def __init__(self, objects: int) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "bench.runtime", "--serve", str(objects)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        port, size = self.process.stdout.readline().split()
        self.address, self.object_size = f"http://127.0.0.1:{port}", int(size)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def compare_clients(objects: int, peers: str) -> None:
    server, small = Server(objects), Server(10)
    try:
        print(f"list and hold {objects} Machines of {server.object_size} bytes over HTTP, best of 3")
        results: dict[str, dict[str, float]] = {}
        for name in CLIENTS:
            python = sys.executable if name == "clusterwright" else peers
            runs = []
            for _ in range(3):
                done = subprocess.run(
                    [python, "-m", "bench.runtime", "--client", name, server.address],
                    capture_output=True, text=True, check=False, env={**os.environ, "BENCH_WARM": small.address},
                )  # fmt: skip
                if done.returncode:
                    print(f"  {name:20} not measured: {done.stderr.strip().splitlines()[-1]}")
                    break
                runs.append(json.loads(done.stdout))
            else:
                assert all(run["objects"] == objects for run in runs)
                results[name] = {"cpu": min(run["cpu"] for run in runs), "mb": min(run["mb"] for run in runs)}
                print(f"  {name:20} {results[name]['cpu']:7.2f} s CPU {results[name]['mb']:8.0f} MB")
        others = {name: result for name, result in results.items() if name != "clusterwright"}
        if others:
            cpu, mb = (min(result[what] for result in others.values()) for what in ("cpu", "mb"))
            ours = results["clusterwright"]
            print(f"  against the better one: {cpu / ours['cpu']:.1f}x less CPU, {ours['mb'] / mb:.2f} of its memory (targets: 4x, 0.5)")
    finally:
        server.stop()
        small.stop()


# In this process.


def bench_events(count: int = 40_000, keys: int = 2_000) -> None:
    from clusterwright.api.core import Machine
    from clusterwright.api.wire import Response
    from clusterwright.runtime.cache import Cache
    from clusterwright.runtime.controller import Controller
    from clusterwright.runtime.reconcile import Result
    from clusterwright.runtime.rest import RestClient

    objects = [machine(n) for n in range(keys)]
    lines = []
    for n in range(count):
        obj = objects[n % keys]
        obj["metadata"]["resourceVersion"] = str(100_000 + n)
        lines.append(json.dumps({"type": "MODIFIED", "object": obj}, separators=(",", ":")).encode())
    finished = asyncio.Event()

    class Feed:
        async def send(self, request: Any) -> Response:
            return Response(status=200, body=b'{"metadata":{"resourceVersion":"1"},"items":[]}')

        async def stream(self, request: Any) -> Any:
            return Response(status=200), self.lines()

        async def lines(self) -> Any:
            for line in lines:
                yield line
            finished.set()
            await asyncio.Event().wait()

    class Nothing:
        async def reconcile(self, key: Any) -> Result:
            nonlocal passes
            passes += 1
            return Result.await_change()

    async def main() -> float:
        rest = RestClient(Feed())  # type: ignore[arg-type]
        cache = Cache(rest, random=Random(1))
        controller = Controller("bench", Machine, lambda _: Nothing(), cache=cache, reader=rest)  # type: ignore[arg-type]
        await controller.start()
        started = time.process_time()
        tasks = [asyncio.ensure_future(cache.run()), asyncio.ensure_future(controller.run())]
        await finished.wait()
        while not controller.is_idle:  # noqa: ASYNC110  # nobody tells when a controller is idle
            await asyncio.sleep(0)
        elapsed = time.process_time() - started
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return elapsed

    passes = 0
    elapsed = asyncio.run(main())
    print(f"events through informer and queue: {count / elapsed:,.0f}/s CPU ({len(lines[0])} bytes each, {keys} keys, {passes} passes)")


def bench_reconciles(objects: int = 2_000, rounds: int = 3) -> None:
    from datetime import UTC, datetime

    from clusterwright.api.meta import ObjectMeta
    from clusterwright.apiserver.server import ApiServer
    from clusterwright.apiserver.serving.inprocess import InProcessTransport
    from clusterwright.runtime.clock import SystemClock
    from clusterwright.runtime.manager import Manager
    from clusterwright.runtime.patch import Patcher
    from clusterwright.runtime.reconcile import Result
    from clusterwright.runtime.rest import RestClient
    from clusterwright.simulation.sample import Parent, ParentSpec, ParentStatus, crds

    async def main() -> float:
        server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1))
        user = RestClient(InProcessTransport(server))
        for crd in crds():
            await user.create(crd)
        for n in range(objects):
            await user.create(Parent(metadata=ObjectMeta(namespace="default", name=f"p{n}"), spec=ParentSpec(children=n)))
        manager = Manager(InProcessTransport(server), clock=SystemClock(), random=Random(1))
        patcher = Patcher(manager.client, SystemClock())
        finished = asyncio.Event()

        class Count:
            """Writes its status `rounds` times; its own event brings it back."""

            async def reconcile(self, key: Any) -> Result:
                nonlocal writes
                original = await manager.client.read(Parent, key)
                assert original is not None
                status = original.object.status or ParentStatus()
                if (status.children or 0) < rounds:
                    writes += 1
                    after = replace(original.object, status=replace(status, children=(status.children or 0) + 1))
                    await patcher.patch(original, after, observed_generation=True)
                if writes == objects * rounds:
                    finished.set()
                return Result.await_change()

        manager.add_controller("bench", Parent, lambda _: Count())
        started = time.process_time()
        task = asyncio.ensure_future(manager.run())
        await finished.wait()
        elapsed = time.process_time() - started
        manager.stop()
        await task
        return elapsed

    writes = 0
    elapsed = asyncio.run(main())
    print(f"reconciles with one status write, API server in process: {objects * rounds / elapsed:,.0f}/s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--peers", default=sys.executable, help="the Python that has the peers, if not this one")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
    elif arguments.client:
        measure_client(*arguments.client)
    else:
        bench_events()
        bench_reconciles()
        compare_clients(arguments.objects, arguments.peers)


if __name__ == "__main__":
    main()
